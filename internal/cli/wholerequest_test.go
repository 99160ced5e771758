package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// runWithTruncatedArgs returns a Run that asks for approval of a call whose arguments the status
// truncates, and the arguments.
func runWithTruncatedArgs() (*v1alpha1.Run, string) {
	run := runWithRequests()
	whole := `{"command":"echo ` + strings.Repeat("x", 2000) + `; rm -rf / #hidden; echo ` + strings.Repeat("y", 2000) + `"}`
	r := &run.Status.Progress.Pending[0]
	r.Args, r.ArgsTruncated = whole[:500]+"…"+whole[len(whole)-500:], true
	return run, whole
}

// pendingEvent is the line of a log that has a request whole.
func pendingEvent(t *testing.T, p events.Pending) string {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(step.Event{V: step.EventVersion, N: 7, T: gen.Noon, Run: "fix", Attempt: 1, Type: step.EventPending, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

func TestArgumentsThatTheStatusCutsAreShownWhole(t *testing.T) {
	run, whole := runWithTruncatedArgs()
	other := pendingEvent(t, events.Pending{ID: callID, Kind: kindApproval, Tool: "shell", Args: `{"command":"ls"}`, Digest: strings.Repeat("0", 64)})
	same := pendingEvent(t, events.Pending{ID: callID, Kind: kindApproval, Tool: "shell", Args: whole, Digest: callDigest})
	cases := map[string]struct {
		args      []string
		log       string
		code      int
		decisions int
		want      string
	}{
		"the log has them":                  {[]string{"approve", "fix"}, other + same, exitOK, 1, "#hidden"},
		"the log has another call":          {[]string{"approve", "fix"}, other, exitError, 0, "only a part of the arguments is shown"},
		"nobody can read them and denies":   {[]string{"deny", "fix"}, "", exitOK, 1, "Only a part of the arguments is shown"},
		"the user read them somewhere":      {[]string{"approve", "fix", callID, "--yes"}, "", exitOK, 1, ""},
		"they are shown, and nothing asked": {[]string{"pending", "fix"}, same, exitOK, 0, "#hidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, run.DeepCopy(), runnerPod(run, "1", corev1.PodRunning))
			s.types(t, "y\n")
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "pending") + tc.log}}}}).open
			code := s.run(t, tc.args...)
			if code != tc.code || !strings.Contains(s.text(), tc.want) || len(decisionsOf(t, s)) != tc.decisions {
				t.Errorf("exit code %d, %d Decisions: %s", code, len(decisionsOf(t, s)), s.text())
			}
		})
	}
}

// The Run is deleted while the user thinks, and created again with the same question.
func TestAnAnswerIsNotForARunThatTookTheName(t *testing.T) {
	s := newSession(t, runWithRequests())
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	defer terminal.Close()
	s.interval = time.Hour // only the last look sees it
	s.In = terminal
	s.Err = writerFunc(func(text []byte) (int, error) {
		if strings.HasSuffix(string(text), "[y/N] ") {
			replace(t, s)
			if _, err := io.WriteString(keyboard, "y\n"); err != nil {
				t.Error(err)
			}
		}
		return s.err.Write(text)
	})
	if code := s.run(t, "approve", "fix"); code != exitError || len(decisionsOf(t, s)) > 0 || !strings.Contains(s.text(), "another Run has its name now") {
		t.Errorf("exit code %d, %d Decisions: %s", code, len(decisionsOf(t, s)), s.text())
	}
}

// replace deletes Run fix and creates it again.
func replace(t *testing.T, s *session) {
	t.Helper()
	if err := s.client.Delete(t.Context(), runWithRequests()); err != nil {
		t.Error(err)
	}
	next := runWithRequests()
	next.UID = "another"
	if err := s.client.Create(t.Context(), next); err != nil {
		t.Error(err)
	}
}
