package cli

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestMissingObjectsAreReportedWithTheNearestNames(t *testing.T) {
	run := namedRun("nightly-fix", v1alpha1.ReasonFinished)
	schedule := &v1alpha1.Schedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "nightly"},
		Spec:       v1alpha1.ScheduleSpec{RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "nosuchagent"}}},
	}
	deleted := namedRun("old", v1alpha1.ReasonFinished, func(r *v1alpha1.Run) { r.Spec = v1alpha1.RunSpec{Workflow: "relase", Prompt: "x"} })
	for line, want := range map[string]string{
		"run fixr":                     "agent fixr not found in namespace team-a. Did you mean fixer?",
		"run agent/fixr":               "agent fixr not found in namespace team-a. Did you mean fixer?",
		"run entirely-else":            "List Agents with: kubectl get agents.deckhand.dev -A",
		"run workflow/relase":          "workflow relase not found in namespace team-a. Did you mean release?",
		"run --from schedule/nightl":   "schedule nightl not found in namespace team-a. Did you mean nightly?",
		"run --from run/nightly-fixes": "run nightly-fixes not found in namespace team-a. Did you mean nightly-fix?",
		"run --from schedule/nightly":  "agent nosuchagent not found in namespace team-a",
		"run --from run/old":           "workflow relase not found in namespace team-a. Did you mean release?",
		"logs agent/fixer":             `"agent/fixer" is no Run: write the name of a Run`,
		"result workflow/release":      `"workflow/release" is no Run: write the name of a Run`,
		"run dir/run.yaml":             "dir/run.yaml is a file: write -f dir/run.yaml",
		"run release":                  "there is no Agent release in namespace team-a, but workflow/release: write workflow/release",
		"run workflow/fixer":           "there is no Workflow fixer in namespace team-a, but agent/fixer: write agent/fixer",
		"run -f run.yaml hi":           "run.yaml says what to run, and hi does, too: leave out one of them. If hi is the prompt, write -p hi",
		"run --from run/old x":         "run/old says what to run, and x does, too: leave out one of them. If x is the prompt, write -p x",
		"why agent":                    "agent is a kind: write its name behind it, as in agent/NAME",
		"why Workflow":                 "Workflow is a kind: write its name behind it, as in workflow/NAME",
		"get pods":                     "why explains one object, and pods is a kind",
		"describe agents":              "why explains one object, and agents is a kind",
		"get pod fix-1":                "kubectl describe pod fix-1",
		"why configmap/rules":          "kubectl describe configmap rules",
		"message old a b c":            "a message is one text, and these are 3 words: write it in quotes",
		"cp a.txt old:b":               "files cannot be copied into a Run: only RUN:PATH LOCAL copies",
		"cp a.txt b":                   `"a.txt": write RUN:PATH`,
		"logs nightly-fixes":           "Did you mean nightly-fix?",
		"logs -f run/nightly-fixes":    "Did you mean nightly-fix?",
		"why nightly-fixes":            "Did you mean nightly-fix?",
		"cp nightly-fixes:a .":         "Did you mean nightly-fix?",
		"hosts fixr":                   "Did you mean fixer?",
		"tree nightly-fixes":           "Did you mean nightly-fix?",
	} {
		s := newSession(t, run.DeepCopy(), schedule.DeepCopy(), deleted.DeepCopy())
		s.openLog = (&fakeLogs{}).open
		if code := s.run(t, strings.Fields(line)...); code == exit.OK || !strings.Contains(s.text(), want) {
			t.Errorf("%s: exit code %d, printed %q, want %q", line, code, s.text(), want)
		}
	}
}

// A user may create Runs without reading Agents.
func TestRunDoesNotNeedToReadAgents(t *testing.T) {
	s := newSession(t)
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, is := o.(*v1alpha1.Agent); is {
			return apierrors.NewForbidden(schema.GroupResource{Group: "deckhand.dev", Resource: "agents"}, key.Name, nil)
		}
		return c.Get(ctx, key, o, options...)
	}})
	if code := s.run(t, "run", "any", "--name", "mine"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestAnEmptyMessageIsNotSent(t *testing.T) {
	for _, text := range []string{"", " \n"} {
		s := newSession(t, namedRun("fix", v1alpha1.ReasonRunning))
		if code := s.run(t, "message", "fix", text); code != exit.Usage || len(decisionsOf(t, s)) != 0 || !strings.Contains(s.err.String(), "the message is empty") {
			t.Errorf("%q: exit code %d: %s", text, code, s.text())
		}
	}
}

// This program prints run.deckhand.dev/NAME, and kubectl runs.deckhand.dev/NAME.
func TestARunIsNamedInAnyFormThatIsPrinted(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	run.Spec.Agent = "fixer"
	pod := runnerPod(run, "1", corev1.PodSucceeded)
	for _, command := range []string{"result NAME", "logs NAME", "why NAME", "tree NAME", "pending NAME", "stop NAME", "resume NAME", "cp NAME:. .", "run --from NAME --name again"} {
		want := ""
		for _, name := range []string{"run/fix", "fix", "runs/fix", "run.deckhand.dev/fix", "runs.deckhand.dev/fix"} {
			if name == "fix" && strings.Contains(command, "--from") {
				continue
			}
			s := newSession(t, run.DeepCopy(), pod.DeepCopy())
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "one\n")}}}}).open
			code := s.run(t, strings.Fields(strings.ReplaceAll(command, "NAME", name))...)
			got := strconv.Itoa(code) + " " + s.text()
			if want = cmp.Or(want, got); got != want || strings.Contains(got, "not found") || strings.Contains(got, "is no Run") {
				t.Errorf("%s: %q, want %q", strings.ReplaceAll(command, "NAME", name), got, want)
			}
		}
	}
	for _, name := range []string{"runs.example.com/fix", "pods/fix", "schedule/fix", "a/b/c"} {
		s := newSession(t, run.DeepCopy())
		if code := s.run(t, "result", name); code != exit.Usage || !strings.Contains(s.err.String(), "is no Run") {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
	}
}
