package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// returned sets what a Run returned.
func returned(result v1alpha1.Result) func(*v1alpha1.Run) {
	return func(run *v1alpha1.Run) { run.Status.Progress = &v1alpha1.RunProgress{Result: &result} }
}

func TestResultIsForPipes(t *testing.T) {
	both := v1alpha1.Result{Text: "Done <b>.\n\nTwo lines", Output: `{"approved": true}`}
	fixed := v1alpha1.Result{Text: "Fixed", Published: &v1alpha1.Published{Branch: "deckhand/fix", Commit: "c0ffee"}, Files: []v1alpha1.File{{Path: "/workspace/a.go", Size: 7}}}
	for name, tc := range map[string]struct {
		reason, args string
		result       v1alpha1.Result
		code         int
		out, err     string
	}{
		"the text":                           {v1alpha1.ReasonFinished, "", v1alpha1.Result{Text: both.Text}, exit.OK, both.Text + "\n", ""},
		"the output, without the text":       {v1alpha1.ReasonFinished, "", both, exit.OK, both.Output + "\n", ""},
		"the text, beside an output":         {v1alpha1.ReasonFinished, "-o text", both, exit.OK, both.Text + "\n", ""},
		"nothing":                            {v1alpha1.ReasonFinished, "", v1alpha1.Result{}, exit.OK, "", "Run fix has no result: Agent fixer ended without a text. See: kubectl deckhand logs fix -n team-a\n"},
		"an output, where the text is asked": {v1alpha1.ReasonFinished, "-o text", v1alpha1.Result{Output: "3"}, exit.OK, "", "Run fix has no text, but an output. See: kubectl deckhand result fix -n team-a\n"},
		"the text of a Run that failed":      {v1alpha1.ReasonInvalidOutput, "", v1alpha1.Result{Text: "half"}, exit.Failed, "half\n", "run.deckhand.dev/fix InvalidOutput: So it ended\nFor more: kubectl deckhand why fix -n team-a\n"},
		"the text of a Run that was stopped": {v1alpha1.ReasonStopped, "", v1alpha1.Result{}, exit.Stopped, "", "run.deckhand.dev/fix Stopped: So it ended\nFor more: kubectl deckhand why fix -n team-a\n"},
		"all of it": {v1alpha1.ReasonFinished, "-o json", fixed, exit.OK, `{
    "run": "fix",
    "reason": "Finished",
    "message": "So it ended",
    "text": "Fixed",
    "branch": "deckhand/fix",
    "commit": "c0ffee",
    "files": [
        {
            "path": "/workspace/a.go",
            "size": 7
        }
    ]
}
`, ""},
		"an output that is no JSON": {v1alpha1.ReasonStepLimit, "-o json", v1alpha1.Result{Output: `{"a"`}, exit.Limit, `{
    "run": "fix",
    "reason": "StepLimit",
    "message": "So it ended",
    "output": "{\"a\""
}
`, "run.deckhand.dev/fix StepLimit: So it ended\nFor more: kubectl deckhand why fix -n team-a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, namedRun("fix", tc.reason, endedWith(tc.reason), returned(tc.result)))
			code := s.run(t, append([]string{"result", "fix"}, strings.Fields(tc.args)...)...)
			if code != tc.code || s.out.String() != tc.out || s.err.String() != tc.err {
				t.Errorf("exit code %d, printed %q, said %q", code, s.out.String(), s.err.String())
			}
		})
	}
}

func TestARunThatHasNotEndedHasNoResult(t *testing.T) {
	asks := newSession(t, runWithRequests())
	if code := asks.run(t, "result", "fix"); code != exit.Error || !strings.Contains(asks.err.String(), "so it has no result: it asks "+callID+". To decide: kubectl deckhand approve fix "+callID+" -n team-a") {
		t.Errorf("of a Run that asks: exit code %d: %s", code, asks.text())
	}
	run := runWithRequests()
	run.Status.Progress.Pending = nil
	run.Status.Progress.Result = &v1alpha1.Result{Text: "of an attempt that another follows"}
	s := newSession(t, run)
	code := s.run(t, "result", "fix")
	if code != exit.Error || s.out.Len() > 0 || !strings.Contains(s.err.String(), "run fix has not ended (AwaitingApproval)") || !strings.Contains(s.err.String(), "kubectl wait --for=condition=Finished --timeout=-1s run/fix -n team-a") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestAWorkflowWithoutOutputHasNoResult(t *testing.T) {
	s := newSession(t, namedRun("gate1", v1alpha1.ReasonFinished, endedWith(v1alpha1.ReasonFinished), func(r *v1alpha1.Run) { r.Spec = v1alpha1.RunSpec{Workflow: "gate"} }))
	const want = "Run gate1 has no result: Workflow gate declares no output. See: kubectl deckhand logs gate1 -n team-a\n"
	if code := s.run(t, "result", "gate1"); code != exit.OK || s.out.Len() > 0 || s.err.String() != want {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// A model reads a denial as the result of its call, and may end its work as if it was done.
func TestDeniedCallsOfAFinishedRunAreSaid(t *testing.T) {
	tools := []v1alpha1.DeniedTool{{Name: "Write", Count: 1}, {Name: "Ls", Count: 1}, {Name: "Ls", By: "Hook", Count: 1}, {Name: "Read", Count: 1}}
	for name, tc := range map[string]struct {
		refused *v1alpha1.Refused
		want    string
	}{
		"nothing was refused":    {nil, ""},
		"only connections were":  {&v1alpha1.Refused{Connections: 2}, ""},
		"a call of one tool":     {&v1alpha1.Refused{ToolCalls: 1, Tools: tools[:1]}, "1 tool call was denied (Write)"},
		"calls of several tools": {&v1alpha1.Refused{ToolCalls: 4, Tools: tools}, "4 tool calls were denied (Ls, Read, Write)"},
		"calls of unknown tools": {&v1alpha1.Refused{ToolCalls: 4}, "4 tool calls were denied"},
	} {
		run := namedRun("fix", v1alpha1.ReasonFinished, endedWith(v1alpha1.ReasonFinished), returned(v1alpha1.Result{Text: "Done."}))
		run.Status.Progress.Refused = tc.refused
		want := ""
		if tc.want != "" {
			want = tc.want + ". See: kubectl deckhand logs fix -n team-a\n"
		}
		s := newSession(t, run)
		if code := s.run(t, "result", "fix"); code != exit.OK || s.out.String() != "Done.\n" || s.err.String() != want {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
		if err := (runCreator{Factory: s.Factory}).printEnd(t.Context(), s.client, run); err != nil || !strings.HasSuffix(s.err.String(), "fix Finished: So it ended\n"+want) {
			t.Errorf("%s: run --wait printed %q, %v", name, s.err.String(), err)
		}
	}
}

func TestReferencesOfAnotherToolInThePromptAreSaid(t *testing.T) {
	const want = "Warning: spec.prompt: column 15: {{ input.city }} is sent to the model as text; write ${{ input.city }}; the same for $(params.day)\n"
	isController := true
	owned := func(r *v1alpha1.Run) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "parent", Controller: &isController}}
	}
	for name, tc := range map[string]struct {
		mod  func(*v1alpha1.Run)
		want string
	}{
		"of a user":      {func(*v1alpha1.Run) {}, want},
		"of a child Run": {owned, ""},
		"beside another": {func(r *v1alpha1.Run) { returned(v1alpha1.Result{Text: "Done.", Warning: "cut"})(r) }, want},
	} {
		run := namedRun("fix", v1alpha1.ReasonFinished, endedWith(v1alpha1.ReasonFinished), returned(v1alpha1.Result{Text: "Done."}), tc.mod)
		run.Spec.Prompt = "A haiku about {{ input.city }} on $(params.day)."
		s := newSession(t, run)
		if code := s.run(t, "result", "fix"); code != exit.OK || s.err.String() != tc.want {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
		if err := (runCreator{Factory: s.Factory}).printEnd(t.Context(), s.client, run); err != nil || !strings.HasSuffix(s.err.String(), "fix Finished: So it ended\n"+tc.want) {
			t.Errorf("%s: run --wait printed %q, %v", name, s.err.String(), err)
		}
		own := run.Status.Progress.Result.Warning
		warning := strings.TrimPrefix(own+"\n", "\n") + strings.TrimSuffix(strings.TrimPrefix(tc.want, "Warning: "), "\n")
		if got := resultOf(run, run.Status.Progress.Result).Warning; got != strings.TrimSuffix(warning, "\n") {
			t.Errorf("%s: -o json has the warning %q, want %q", name, got, warning)
		}
	}
}
