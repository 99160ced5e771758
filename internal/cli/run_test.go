package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestRunCreatesARun(t *testing.T) {
	old := namedRun("old", "Stopped", func(r *v1alpha1.Run) {
		r.Spec = v1alpha1.RunSpec{Agent: "again", Prompt: "Fix it.", User: "ann", DesiredState: v1alpha1.DesiredStopped, Input: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}
	})
	nightly := &v1alpha1.Schedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "nightly"},
		Spec:       v1alpha1.ScheduleSpec{RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Workflow: "open"}}},
	}
	open := &v1alpha1.Workflow{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "open"},
		Spec:       v1alpha1.WorkflowSpec{Input: &v1alpha1.Input{Schema: &runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}}},
	}
	again := gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Input = "again", open.Spec.Input })
	file := filepath.Join(t.TempDir(), "run.yaml")
	manifest := "apiVersion: deckhand.dev/v1alpha1\nkind: Run\nmetadata: {name: named}\nspec: {agent: fixer, prompt: Fix it.}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		name string
		want v1alpha1.RunSpec
	}{
		"an Agent":                   {[]string{"fixer", "-p", "Hello."}, "fixer-", v1alpha1.RunSpec{Agent: "fixer", Prompt: "Hello."}},
		"a prompt behind the Agent":  {[]string{"fixer", "Hello."}, "fixer-", v1alpha1.RunSpec{Agent: "fixer", Prompt: "Hello."}},
		"a prompt behind a flag":     {[]string{"--from", "run/old", "Fix more."}, "again-", v1alpha1.RunSpec{Agent: "again", Prompt: "Fix more.", Input: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}},
		"- behind the Agent":         {[]string{"fixer", "-"}, "fixer-", v1alpha1.RunSpec{Agent: "fixer", Prompt: "From a pipe."}},
		"a prompt of standard input": {[]string{"agent/a.b", "-p", "-", "--name", "mine"}, "mine", v1alpha1.RunSpec{Agent: "a.b", Prompt: "From a pipe."}},
		"files to show":              {[]string{"fixer", "Look.", "--image", "docs/a.png", "--image", "b.pdf"}, "fixer-", v1alpha1.RunSpec{Agent: "fixer", Prompt: "Look.", Images: []string{"docs/a.png", "b.pdf"}}},
		"a Workflow":                 {[]string{"workflow/open", "--input", "n=3", "--input", "text=a=b", "--input", `digits="3"`}, "open-", v1alpha1.RunSpec{Workflow: "open", Input: &runtime.RawExtension{Raw: []byte(`{"digits":"3","n":3,"text":"a=b"}`)}}},
		"a Run again":                {[]string{"--from", "run/old", "--input", "b=x"}, "again-", v1alpha1.RunSpec{Agent: "again", Prompt: "Fix it.", Input: &runtime.RawExtension{Raw: []byte(`{"a":1,"b":"x"}`)}}},
		"a Schedule":                 {[]string{"--from", "schedule/nightly"}, "open-", v1alpha1.RunSpec{Workflow: "open"}},
		"a manifest":                 {[]string{"-f", file}, "named", v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it."}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, old.DeepCopy(), nightly.DeepCopy(), open.DeepCopy(), again.DeepCopy())
			s.In = strings.NewReader("From a pipe.")
			if code := s.run(t, append([]string{"run"}, tc.args...)...); code != exit.OK {
				t.Fatal(s.text())
			}
			created := strings.TrimSuffix(strings.TrimPrefix(s.out.String(), "run.deckhand.dev/"), " created\n")
			if !strings.HasPrefix(created, tc.name) {
				t.Errorf("the name is %q, want %q", created, tc.name)
			}
			var run v1alpha1.Run
			if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: created}, &run); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, run.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunRefusesWhatIsNotClear(t *testing.T) {
	for _, args := range [][]string{{}, {"fixer", "--from", "run/old"}, {"--from", "old"}, {"model/x"}, {"fixer", "--input", "novalue"}, {"fix", "it", "please"}, {"fix it"}, {"fixer", "a", "-p", "b"}} {
		s := newSession(t)
		if code := s.run(t, append([]string{"run"}, args...)...); code != exit.Usage {
			t.Errorf("%v: exit code %d: %s", args, code, s.text())
		}
	}
	s := newSession(t)
	s.In = strings.NewReader("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
	if code := s.run(t, "run", "-f", "-"); code != exit.Error || !strings.Contains(s.err.String(), "not a Run") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// A flag or an object that would be ignored is refused.
func TestRunOfAFileRefusesWhatItWouldIgnore(t *testing.T) {
	const manifest = "apiVersion: deckhand.dev/v1alpha1\nkind: Run\nmetadata: {name: %s}\nspec: {agent: fixer, prompt: Fix it.}\n"
	for name, tc := range map[string]struct {
		text string
		code int
		want string
	}{
		"two Runs":               {fmt.Sprintf("---\n"+manifest+"---\n"+manifest, "a", "b"), exit.Usage, "has 2 objects"},
		"nothing":                {"# a comment\n---\n", exit.Usage, "has 0 objects"},
		"another namespace":      {fmt.Sprintf(manifest, "a, namespace: other"), exit.Usage, "says namespace other, and --namespace says team-a"},
		"another kind":           {"apiVersion: v1\nkind: Secret\nstringData: {a: b}\n", exit.Error, "not a Run of deckhand.dev/v1alpha1 but Secret of v1"},
		"a Run and comments":     {fmt.Sprintf("# a comment\n---\n"+manifest+"---\n", "a"), exit.OK, ""},
		"the namespace in force": {fmt.Sprintf(manifest, "a, namespace: team-a"), exit.OK, ""},
	} {
		s := newSession(t)
		s.In = strings.NewReader(tc.text)
		code := s.run(t, "run", "-f", "-")
		var runs v1alpha1.RunList
		if err := s.client.List(t.Context(), &runs); err != nil {
			t.Fatal(err)
		}
		if created := len(runs.Items) > 0; code != tc.code || created != (code == exit.OK) || !strings.Contains(s.err.String(), tc.want) {
			t.Errorf("%s: exit code %d, %d Runs: %s", name, code, len(runs.Items), s.text())
		}
	}
}

func TestRunSaysThatItsNameIsTaken(t *testing.T) {
	s := newSession(t, namedRun("fix", "Running"))
	if code := s.run(t, "run", "fixer", "-p", "Fix it.", "--name=fix"); code != exit.Error || !strings.Contains(s.err.String(), "choose another name with --name") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestDesiredStateIsSet(t *testing.T) {
	for command, want := range map[string]v1alpha1.DesiredState{"pause": "Paused", "resume": "Running", "stop": "Stopped"} {
		s := newSession(t, namedRun("fix", "Running", func(r *v1alpha1.Run) {
			if command == "resume" {
				r.Spec.DesiredState = v1alpha1.DesiredPaused
			}
		}))
		if code := s.run(t, command, "fix"); code != exit.OK {
			t.Fatal(s.text())
		}
		var run v1alpha1.Run
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "fix"}, &run); err != nil {
			t.Fatal(err)
		}
		if run.Spec.DesiredState != want || run.Spec.Prompt == "" {
			t.Errorf("%s: the spec is %+v", command, run.Spec)
		}
	}
	ended := namedRun("fix", "Finished", func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} })
	s := newSession(t, ended)
	if code := s.run(t, "stop", "fix"); code != exit.Error || !strings.Contains(s.err.String(), "has ended (Finished)") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
