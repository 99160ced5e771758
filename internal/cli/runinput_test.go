package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// typed declares one value of each type.
func typed() *v1alpha1.Input {
	no := false
	return &v1alpha1.Input{Fields: []v1alpha1.Field{
		{Name: "version"},
		{Name: "count", Type: v1alpha1.FieldInteger, Required: &no},
		{Name: "dry", Type: v1alpha1.FieldBoolean, Required: &no},
		{Name: "hosts", Type: v1alpha1.FieldList, Required: &no},
		{Name: "bump", Schema: &runtime.RawExtension{Raw: []byte(`{"type":"string","enum":["1","2"]}`)}, Required: &no},
	}}
}

func TestInputHasTheTypesThatAreDeclared(t *testing.T) {
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Input = "typed", typed() })
	flow := &v1alpha1.Workflow{Spec: v1alpha1.WorkflowSpec{Input: typed()}}
	flow.Name, flow.Namespace = "typed", gen.Namespace
	for args, want := range map[string]string{
		"version=2":                        `{"version":"2"}`,
		"version=true":                     `{"version":"true"}`,
		"version={}":                       `{"version":"{}"}`,
		`version="2"`:                      `{"version":"2"}`,
		`version=1.4.0 count=3 dry=true`:   `{"count":3,"dry":true,"version":"1.4.0"}`,
		`version=a hosts=["x","y"] bump=2`: `{"bump":"2","hosts":["x","y"],"version":"a"}`,
	} {
		for _, target := range []string{"agent/typed", "workflow/typed"} {
			s := newSession(t, agent.DeepCopy(), flow.DeepCopy())
			line := []string{"run", target, "--name=x"}
			for pair := range strings.FieldsSeq(args) {
				line = append(line, "--input", pair)
			}
			if code := s.run(t, line...); code != exit.OK {
				t.Errorf("%s: %s", args, s.text())
				continue
			}
			var run v1alpha1.Run
			if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "x"}, &run); err != nil || string(run.Spec.Input.Raw) != want {
				t.Errorf("%s: %s, want %s (%v)", args, run.Spec.Input.Raw, want, err)
			}
		}
	}
}

// What the operator would refuse is refused before a Run is created.
func TestInputThatDoesNotFitIsRefusedBeforeARunIsCreated(t *testing.T) {
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Input = "typed", typed() })
	flow := &v1alpha1.Workflow{Spec: v1alpha1.WorkflowSpec{Input: typed()}}
	flow.Name, flow.Namespace = "typed", gen.Namespace
	for args, want := range map[string]string{
		"workflow/typed --input versin=2":                    "--input versin is not declared; did you mean version?",
		"workflow/typed":                                     "`version`",
		"workflow/typed --input version=2 --input dry=maybe": "--input dry=maybe: write true or false, for example --input dry=true",
		"agent/typed --input version=2 --input hosts=a,b":    `--input hosts=a,b: write a list in JSON, for example --input hosts='["a","b"]'`,
		"agent/typed --input version=2 --input dry=3":        "`dry` must be a boolean",
		"agent/typed":                                   "Agent typed needs a prompt or an input: add -p TEXT, or --input NAME=VALUE (version, ",
		"agent/typed --input versin=2":                  "--input versin is not declared; did you mean version?",
		"agent/typed --input version=2 --input count=x": "--input count=x: write a whole number, for example --input count=3",
		"fixer":                    "Agent fixer needs a prompt: add -p TEXT",
		"fixer -p Go. --input x=1": "declares no input",
		"agent/typed --input version=2 -p ${{input.y}}": "spec.prompt",
	} {
		s := newSession(t, agent.DeepCopy(), flow.DeepCopy())
		code := s.run(t, append([]string{"run"}, strings.Fields(args)...)...)
		var runs v1alpha1.RunList
		if err := s.client.List(t.Context(), &runs); err != nil {
			t.Fatal(err)
		}
		if code != exit.Usage || len(runs.Items) > 0 || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d, %d Runs: %s", args, code, len(runs.Items), s.text())
		}
	}
}

// A Run whose log the user may not read would work, and cost, while the command ends with an error.
func TestARunThatCannotBeWatchedIsNotCreated(t *testing.T) {
	for _, right := range []string{"list pods", "get pods/log"} {
		s := newSession(t)
		s.forbidden = []string{right}
		code := s.run(t, "run", "fixer", "-p", "Fix it.", "--wait")
		var runs v1alpha1.RunList
		if err := s.client.List(t.Context(), &runs); err != nil {
			t.Fatal(err)
		}
		if code != exit.Error || len(runs.Items) > 0 || !strings.Contains(s.err.String(), "you may not "+right+" in namespace team-a") || !strings.Contains(s.err.String(), "deckhand-user") {
			t.Errorf("%s: exit code %d, %d Runs: %s", right, code, len(runs.Items), s.text())
		}
	}
}

// A prompt that the schema of a Run accepts may not fit the pod.
func TestATaskThatDoesNotFitItsPodIsRefusedBeforeARunIsCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		size int
		args string
		want string
	}{
		"a prompt that fits":      {47 << 10, "run fixer -p -", ""},
		"a prompt that does not":  {49 << 10, "run fixer -p -", "at most 49152 fit a pod. Shorten spec.prompt"},
		"a prompt of a Schedule":  {65000, "run --from schedule/nightly -p -", "at most 49152 fit a pod"},
		"a dry run":               {49 << 10, "run fixer -p - --dry-run", "at most 49152 fit a pod"},
		"a prompt with escapes":   {9000, "run fixer -p -", "at most 49152 fit a pod"},
		"a message of a Workflow": {10, "run workflow/release -p -", ""},
	} {
		text := strings.Repeat("x", tc.size)
		if strings.Contains(name, "escapes") {
			text = strings.Repeat("\x01", tc.size) // six bytes of JSON each
		}
		s := newSession(t, &v1alpha1.Schedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "nightly"},
			Spec:       v1alpha1.ScheduleSpec{RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "fixer"}}},
		})
		s.In = strings.NewReader(text)
		code := s.run(t, strings.Fields(tc.args)...)
		if isRefused := code == exit.Usage && len(runsOf(t, s)) == 0; isRefused != (tc.want != "") || !strings.Contains(s.err.String(), tc.want) {
			t.Errorf("%s: exit code %d, %d Runs: %s", name, code, len(runsOf(t, s)), s.text())
		}
	}
}

// A Run waits for an Agent that is not Ready, which the user does not see.
func TestARunOfWhatIsNotReadyIsCreatedWithANote(t *testing.T) {
	condition := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Message: "Model \"m\" not found."}}
	}
	for name, tc := range map[string]struct {
		status metav1.ConditionStatus
		args   string
		want   string
	}{
		"an Agent that is Ready":       {metav1.ConditionTrue, "run tmpa hi", ""},
		"an Agent that is not":         {metav1.ConditionFalse, "run tmpa hi", "Agent tmpa is not ready: Model \"m\" not found; the Run waits until then\n"},
		"an Agent that is unknown":     {metav1.ConditionUnknown, "run tmpa hi -o name", "Agent tmpa is not ready: Model \"m\" not found; the Run waits until then\n"},
		"a Workflow that is not":       {metav1.ConditionFalse, "run workflow/tmpw", "Workflow tmpw is not ready: Model \"m\" not found; the Run waits until then\n"},
		"an Agent that was just made":  {"", "run tmpa hi", ""},
		"a manifest without its Agent": {"", "run -f -", "Agent gone not found in namespace team-a; the Run waits until it exists\n"},
	} {
		agent := gen.Agent(func(a *v1alpha1.Agent) { a.Name = "tmpa" })
		flow := &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "tmpw"}}
		if tc.status != "" {
			agent.Status.Conditions, flow.Status.Conditions = condition(tc.status), condition(tc.status)
		}
		s := newSession(t, agent, flow)
		s.In = strings.NewReader("{apiVersion: deckhand.dev/v1alpha1, kind: Run, metadata: {name: a}, spec: {agent: gone, prompt: x}}")
		if code := s.run(t, strings.Fields(tc.args)...); code != exit.OK || s.err.String() != tc.want || len(runsOf(t, s)) != 1 {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
	}
}
