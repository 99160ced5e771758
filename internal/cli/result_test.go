package cli

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
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
		"the text":                           {v1alpha1.ReasonFinished, "", v1alpha1.Result{Text: both.Text}, exitOK, both.Text + "\n", ""},
		"the output, without the text":       {v1alpha1.ReasonFinished, "", both, exitOK, both.Output + "\n", ""},
		"the text, beside an output":         {v1alpha1.ReasonFinished, "-o text", both, exitOK, both.Text + "\n", ""},
		"nothing":                            {v1alpha1.ReasonFinished, "", v1alpha1.Result{}, exitOK, "", ""},
		"the text of a Run that failed":      {v1alpha1.ReasonInvalidOutput, "", v1alpha1.Result{Text: "half"}, exitFailed, "half\n", "run.deckhand.dev/fix InvalidOutput: So it ended\nFor more: kubectl deckhand why fix -n team-a\n"},
		"the text of a Run that was stopped": {v1alpha1.ReasonStopped, "", v1alpha1.Result{}, exitStopped, "", "run.deckhand.dev/fix Stopped: So it ended\nFor more: kubectl deckhand why fix -n team-a\n"},
		"all of it": {v1alpha1.ReasonFinished, "-o json", fixed, exitOK, `{
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
		"an output that is no JSON": {v1alpha1.ReasonStepLimit, "-o json", v1alpha1.Result{Output: `{"a"`}, exitLimit, `{
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
	run := runWithRequests()
	run.Status.Progress.Result = &v1alpha1.Result{Text: "of an attempt that another follows"}
	s := newSession(t, run)
	code := s.run(t, "result", "fix")
	if code != exitError || s.out.Len() > 0 || !strings.Contains(s.err.String(), "run fix has not ended (AwaitingApproval)") || !strings.Contains(s.err.String(), "kubectl wait --for=condition=Finished --timeout=-1s run/fix -n team-a") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
