package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// runWithTruncatedArgs returns a Run that asks for approval of a call whose arguments the status
// truncates, and the line of the log that has the request.
func runWithTruncatedArgs(t *testing.T) (run *v1alpha1.Run, line string) {
	t.Helper()
	run = runWithRequests()
	whole := `{"command":"echo ` + strings.Repeat("x", 2000) + `; rm -rf / #hidden; echo ` + strings.Repeat("y", 2000) + `"}`
	r := &run.Status.Progress.Pending[0]
	p := events.Pending{
		ID: r.ID, Kind: r.Kind, Question: r.Question, Tool: r.Tool, Args: whole, Digest: r.Digest, Rule: r.Rule,
		Approvers: &task.Approvers{Groups: r.Approvers.Groups}, AskedAt: "2030-01-01T12:00:00Z",
	}
	p.DisplayDigest = p.ComputeDisplayDigest()
	r.Args, r.ArgsTruncated, r.DisplayDigest = whole[:500]+"…"+whole[len(whole)-500:], true, p.DisplayDigest
	return run, pendingEvent(t, p)
}

// pendingEvent is the line of a log that has a request whole.
func pendingEvent(t *testing.T, p events.Pending) string {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(events.Line{V: events.LineVersion, N: 7, T: gen.Noon, Run: "fix", Attempt: 1, Type: step.EventPending, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

func TestArgumentsThatTheStatusCutsAreShownWhole(t *testing.T) {
	run, same := runWithTruncatedArgs(t)
	other := pendingEvent(t, events.Pending{ID: callID, Kind: requests.KindApproval, Tool: "Shell", Args: `{"command":"ls"}`, Digest: strings.Repeat("0", 64)})
	older := run.DeepCopy()
	older.Status.Progress.Pending[0].DisplayDigest = ""
	cases := map[string]struct {
		run       *v1alpha1.Run
		args      []string
		log       string
		code      int
		decisions int
		want      string
	}{
		"the log has them":                     {run, []string{"approve", "fix"}, other + same, exit.OK, 1, "#hidden"},
		"the log has another call":             {run, []string{"approve", "fix"}, other, exit.Error, 0, "only a part of the arguments is shown"},
		"they cannot be read and are denied":   {run, []string{"deny", "fix"}, "", exit.OK, 1, "Only a part of the arguments is shown: the logs"},
		"the user read them elsewhere":         {run, []string{"approve", "fix", callID, "--yes"}, "", exit.OK, 1, "Only a part of the arguments is shown: the logs"},
		"they are shown, and nothing is asked": {run, []string{"pending", "fix"}, same, exit.OK, 0, "#hidden"},
		"an older runner proves no text":       {older, []string{"approve", "fix"}, same, exit.Error, 0, "nothing proves what a log shows"},
		"nor is an unproven text shown":        {older, []string{"pending", "fix"}, same, exit.OK, 0, "nothing proves what a log shows"},
		"unproven text is approved knowingly":  {older, []string{"approve", "fix", callID, "--yes"}, same, exit.OK, 1, "nothing proves what a log shows"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := tc.run.DeepCopy()
			s := newSession(t, run, runnerPod(run, "1", corev1.PodRunning))
			s.types(t, "y\n")
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "pending") + tc.log}}}}).open
			code := s.run(t, tc.args...)
			if code != tc.code || !strings.Contains(s.text(), tc.want) || len(decisionsOf(t, s)) != tc.decisions {
				t.Errorf("exit code %d, %d Decisions: %s", code, len(decisionsOf(t, s)), s.text())
			}
		})
	}
}

// Whatever changes the text of a line, it is not what the runner reported.
func TestALogWithAnotherTextApprovesNothing(t *testing.T) {
	run, same := runWithTruncatedArgs(t)
	for name, change := range map[string][2]string{
		"other arguments":    {"; rm -rf / #hidden", ""},
		"another question":   {"May I?", "May I list?"},
		"another tool":       {`"tool":"Shell"`, `"tool":"list"`},
		"another rule":       {"approval of shell", "approval of list"},
		"fewer approvers":    {`"other",`, ""},
		"users for groups":   {`"approvers":{"groups":`, `"approvers":{"users":`},
		"no approvers":       {`"approvers":{"groups":["other","release-managers"]},`, ""},
		"a schema":           {`"rule":`, `"schema":"{}","rule":`},
		"a digest of itself": {"; rm -rf / #hidden", ""},
	} {
		forged := strings.Replace(same, change[0], change[1], 1)
		if forged == same {
			t.Fatalf("%s: the line is the same", name)
		}
		if name == "a digest of itself" {
			forged = strings.Replace(forged, run.Status.Progress.Pending[0].DisplayDigest, requestIn([]byte(forged)).ComputeDisplayDigest(), 1)
		}
		for _, args := range [][]string{{"approve", "fix"}, {"approve", "fix", callID, "--yes"}, {"pending", "fix"}} {
			run := run.DeepCopy()
			s := newSession(t, run, runnerPod(run, "1", corev1.PodRunning))
			s.types(t, "y\n")
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: forged}}}}).open
			code := s.run(t, args...)
			refused := code == exit.Error && strings.Contains(s.text(), "this request cannot be approved: a log shows this request with a text that the runner did not report")
			if args[0] == "pending" {
				refused = code == exit.OK && strings.Contains(s.text(), "Only a part of the arguments is shown: a log shows this request with a text that the runner did not report")
			}
			if !refused || len(decisionsOf(t, s)) > 0 {
				t.Errorf("%s: %v: exit code %d, %d Decisions: %s", name, args, code, len(decisionsOf(t, s)), s.text())
			}
		}
		run := run.DeepCopy()
		s := newSession(t, run, runnerPod(run, "1", corev1.PodRunning))
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: forged + same}}}}).open
		if code := s.run(t, "pending", "fix"); code != exit.OK || !strings.Contains(s.text(), "#hidden") {
			t.Errorf("%s: the line of the runner is not found behind another: %s", name, s.text())
		}
	}
}

// The Run is deleted while the user thinks, and created again with the same question.
func TestAnAnswerIsNotForARunThatTookTheName(t *testing.T) {
	s := newSession(t, runWithRequests())
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	defer tty.Close()
	s.Interval = time.Hour // only the last look sees it
	s.In = tty
	s.Err = writerFunc(func(text []byte) (int, error) {
		if strings.HasSuffix(string(text), "[y/N] ") {
			replace(t, s)
			if _, err := io.WriteString(keyboard, "y\n"); err != nil {
				t.Error(err)
			}
		}
		return s.err.Write(text)
	})
	if code := s.run(t, "approve", "fix"); code != exit.Error || len(decisionsOf(t, s)) > 0 || !strings.Contains(s.text(), "another Run has its name now") {
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

// An earlier attempt may have been on a cluster node that is lost, or its pod has a log without line ends.
func TestALogThatIsNotReadHidesNoOther(t *testing.T) {
	run, same := runWithTruncatedArgs(t)
	lost := fakeStream{refused: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "no route to host"}}}
	long := fakeStream{lines: strings.Repeat("x", transcript.MaxLine+1)}
	for name, tc := range map[string]struct {
		first, second fakeStream
		code          int
		want          string
	}{
		"the first attempt's":       {lost, fakeStream{lines: same}, exit.OK, "#hidden"},
		"the second attempt's":      {fakeStream{lines: same}, lost, exit.OK, "#hidden"},
		"one with a long line":      {fakeStream{lines: long.lines + "\n" + same}, fakeStream{}, exit.OK, "#hidden"},
		"one with an endless line":  {long, fakeStream{lines: same}, exit.OK, "#hidden"},
		"the only one with it":      {fakeStream{}, lost, exit.Error, "only a part of the arguments is shown, so you cannot be asked to approve them: no route to host"},
		"beside one that is forged": {fakeStream{lines: strings.Replace(same, "#hidden", "#other", 1)}, lost, exit.Error, "this request cannot be approved"},
	} {
		t.Run(name, func(t *testing.T) {
			run := run.DeepCopy()
			s := newSession(t, run, runnerPod(run, "2", corev1.PodRunning), runnerPod(run, "1", corev1.PodFailed))
			s.types(t, "y\n")
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {tc.first}, "fix-2": {tc.second}}}).open
			if code := s.run(t, "approve", "fix"); code != tc.code || !strings.Contains(s.text(), tc.want) || len(decisionsOf(t, s)) != 1-tc.code {
				t.Errorf("exit code %d, %d Decisions: %s", code, len(decisionsOf(t, s)), s.text())
			}
		})
	}
}

// While a log cannot be read, the terminal is not filled with the same error.
func TestWaitAsksAgainWhenTheLogCanBeRead(t *testing.T) {
	run, same := runWithTruncatedArgs(t)
	run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
	pod := runnerPod(run, "1", corev1.PodRunning)
	s := newSession(t, run, pod)
	s.types(t, "y\n")
	busy := fakeStream{refused: apierrors.NewServiceUnavailable("the API server is restarting")}
	logs := &fakeLogs{streams: map[string][]fakeStream{pod.Name: {busy, busy, {lines: same}}}}
	s.openLog = logs.open
	asker := s.newAsker(podReaderOf(s.Factory, s.client), &terminal.Console{})
	for range 12 {
		if err := asker.ask(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if made := decisionsOf(t, s); len(made) != 1 || made[0].Spec.Digest != callDigest {
		t.Errorf("Decisions are %v: %s", made, s.err.String())
	}
	if n := strings.Count(s.err.String(), "Nothing was decided"); n != 1 || strings.Count(s.err.String(), "Only a part") != 1 || !strings.Contains(s.err.String(), "you are asked again") {
		t.Errorf("the error is printed %d times: %s", n, s.err.String())
	}
}
