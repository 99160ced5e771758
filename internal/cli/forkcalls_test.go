package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An eventLog is the log of a Run's first attempt, event by event.
type eventLog struct {
	strings.Builder
	n int
}

func (l *eventLog) event(kind, scope, data string) {
	l.n++
	fmt.Fprintf(l, `{"v":1,"n":%d,"attempt":1,"scope":{"parent":%q},"type":%q,"data":%s}`+"\n", l.n, scope, kind, data)
}

// answer is a step with the answer of the model, with calls or without.
func (l *eventLog) answer(seq int, calls ...string) {
	var all []string
	for _, id := range calls {
		all = append(all, fmt.Sprintf(`{"id":%q,"name":"Shell","args":{}}`, id))
	}
	l.event("step.finished", "", fmt.Sprintf(`{"step":{"seq":%d,"role":"assistant","calls":[%s]}}`, seq, strings.Join(all, ",")))
}

// call is a call that begins, result the step with its result.
func (l *eventLog) call(id, tool, args string) {
	session := ""
	if i := strings.LastIndexByte(id, '.'); i > 0 {
		session = id[:i]
	}
	l.event("call.started", session, fmt.Sprintf(`{"id":%q,"name":%q,"args":%s}`, id, tool, args))
}

func (l *eventLog) result(seq int, id string) {
	l.event("step.finished", "", fmt.Sprintf(`{"step":{"seq":%d,"role":"tool","callID":%q}}`, seq, id))
}

func (l *eventLog) end() { l.event("run.finished", "", `{"reason":"Finished"}`) }

// worked is a log of two turns with parallel calls, and of an answer. The results of the first turn are in the order in
// which they came.
func worked() *eventLog {
	l := &eventLog{}
	l.event("step.finished", "", `{"step":{"seq":1,"role":"user"}}`)
	l.answer(2, "s2c1", "s2c2", "s2c3")
	l.call("s2c1", "Shell", `{"command":"make"}`)
	l.call("s2c2", "Write", `{"path":"/workspace/a"}`)
	l.result(3, "s2c2")
	l.event("call.denied", "", `{"id":"s2c3","name":"Shell","by":"Policy"}`)
	l.result(4, "s2c3")
	l.result(5, "s2c1")
	l.answer(6, "s6c1", "s6c2", "s6c3", "s6c4")
	l.call("s6c1", "Read", `{"path":"/workspace/a"}`)
	l.call("s6c2", "helper", `{"prompt":"Push."}`)
	l.call("s6c2.s2c1", "Shell", `{"command":"git push\u001b[2J"}`)
	l.event("step.finished", "s6c2", `{"step":{"seq":3,"role":"tool","callID":"s6c2.s2c1"}}`)
	l.call("s6c3", "HTTPRequest", `{"method":"GET","url":"https://a.example"}`)
	l.call("s6c4", "HTTPRequest", `{"method":"POST","url":"https://a.example"}`)
	for i, id := range []string{"s6c1", "s6c2", "s6c3", "s6c4"} {
		l.result(7+i, id)
	}
	l.answer(11)
	l.end()
	return l
}

func TestCallsAfterAStep(t *testing.T) {
	run, _ := durableRun()
	for step, want := range map[int64]string{
		1:  "s2c1 s2c2 s6c2 s6c2.s2c1 s6c4",
		2:  "s2c1 s2c2 s6c2 s6c2.s2c1 s6c4", // its calls have no results yet
		3:  "s2c1 s6c2 s6c2.s2c1 s6c4",      // one of its parallel calls has
		5:  "s6c2 s6c2.s2c1 s6c4",
		8:  "s6c4",
		10: "",
		11: "",
	} {
		after := newCallsAfter(step, run)
		for line := range strings.Lines(worked().String()) {
			after.add([]byte(line))
		}
		var got []string
		for _, call := range after.list() {
			got = append(got, call.ID)
		}
		if text := strings.Join(got, " "); text != want || after.missing() || after.last != 11 || after.isAnswer != (step == 11) {
			t.Errorf("step %d: %s, want %s: %+v", step, text, want, after)
		}
	}
}

// A step that the log lacks is no reason to say that nothing would be repeated.
func TestCallsOfAnIncompleteLog(t *testing.T) {
	run, _ := durableRun()
	lines := strings.SplitAfter(worked().String(), "\n")
	for name, log := range map[string][]string{
		"without its beginning": lines[5:],
		"without a step":        append(append([]string{}, lines[:7]...), lines[8:]...),
		"without its end":       lines[:len(lines)-2],
	} {
		after := newCallsAfter(2, run)
		for _, line := range log {
			after.add([]byte(line))
		}
		if !after.missing() {
			t.Errorf("%s: the log counts as whole", name)
		}
	}
	run.Status.Attempt.Number = 2 // the log has the end of the first alone
	after := newCallsAfter(2, run)
	for _, line := range lines {
		after.add([]byte(line))
	}
	if !after.missing() {
		t.Error("the log of an earlier attempt counts as whole")
	}
}

func TestToolsThatChangeNothingExist(t *testing.T) {
	for _, name := range readingTools {
		if _, is := task.BuiltinArguments[name]; !is && name != task.ToolFinish && name != task.ToolReject {
			t.Errorf("there is no tool %s", name)
		}
	}
}

// newForked returns a session with a Run whose pod has a log.
func newForked(t *testing.T, log string) *session {
	t.Helper()
	run, claim := source(func(r *v1alpha1.Run) { r.Spec.Input, r.Spec.Limits = nil, nil })
	pod := runnerPod(run, "1", corev1.PodSucceeded)
	s := newSession(t, run, claim, pod)
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: log}}}}).open
	return s
}

func TestForkListsTheCallsAndAsks(t *testing.T) {
	for answer, want := range map[string]int{"y\n": 1, "yes\n": 1, "\n": 0, "n\n": 0} {
		s := newForked(t, worked().String())
		s.types(t, answer)
		if code := s.run(t, "fork", "fix", "--step", "2"); code != exit.OK || len(s.created(t, "fix")) != want {
			t.Errorf("%q: exit code %d: %s", answer, code, s.text())
		}
		text := s.err.String()
		if want == 0 {
			golden(t, "fork.txt", strings.ReplaceAll(text, "\r", ""))
		}
	}
}

func TestForkWithoutATerminalNeedsYes(t *testing.T) {
	s := newForked(t, worked().String())
	if code := s.run(t, "fork", "fix", "--step", "2"); code != exit.Usage || len(s.created(t, "fix")) != 0 || !strings.Contains(s.err.String(), "s2c1") || !strings.HasSuffix(s.err.String(), "there is no terminal: add --yes\n") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	s = newForked(t, worked().String())
	if code := s.run(t, "fork", "fix", "--step", "2", "--yes"); code != exit.OK || len(s.created(t, "fix")) != 1 || strings.Contains(s.err.String(), "s2c1") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// Nothing is created that a user could be asked about.
func TestADryRunOfAForkListsTheCalls(t *testing.T) {
	s := newForked(t, worked().String())
	if code := s.run(t, "fork", "fix", "--step", "2", "--dry-run"); code != exit.OK || len(s.created(t, "fix")) != 0 || !strings.Contains(s.err.String(), "s2c1") || s.out.String() != "run.deckhand.dev/fixer- created (dry run)\n" {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestForkSaysWhatItKnows(t *testing.T) {
	many := &eventLog{}
	many.answer(2, "s2c1")
	for i := range 25 {
		many.call(fmt.Sprintf("s2c%d", i+1), "Shell", "{}")
		many.result(3+i, fmt.Sprintf("s2c%d", i+1))
	}
	many.end()
	unended := strings.Join(strings.SplitAfter(worked().String(), "\n")[:5], "")
	for name, tc := range map[string]struct {
		log, step, want string
		code            int
	}{
		"more calls than are listed": {many.String(), "2", "fix made 25 calls that may have changed something", exit.Usage},
		"how many more":              {many.String(), "2", "s2c20   Shell   {}\nand 5 more\n", exit.Usage},
		"no calls":                   {worked().String(), "10", "Run fix made no calls after step 10 that may have changed something.\n", exit.Usage},
		"a step beyond the last":     {worked().String(), "12", "run fix has no step 12: its last is 11", exit.Usage},
		"an answer":                  {worked().String(), "11", "step 11 of Run fix is an answer without calls, so there is nothing left to do: say with -p", exit.Usage},
		"a step that the log of a lost pod lacks": {unended, "12", "calls may be missing here", exit.Usage},
		"a log without steps":                     {`{"v":1,"n":1,"attempt":1,"type":"run.finished","data":{}}` + "\n", "2", "cannot be listed, because the conversation of Run fix was not read: the log has no numbered steps", exit.Usage},
	} {
		s := newForked(t, tc.log)
		if code := s.run(t, "fork", "fix", "--step", tc.step); code != tc.code || !strings.Contains(s.err.String(), tc.want) || len(s.created(t, "fix")) > 0 {
			t.Errorf("%s: exit code %d, want %q in: %s", name, code, tc.want, s.text())
		}
	}
}

// Without the right to read the log, a user is told so and asked the same.
func TestForkOfARunWhoseLogCannotBeRead(t *testing.T) {
	s := newForked(t, "")
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: errors.New("pods is forbidden")}}}}).open
	s.types(t, "y\n")
	if code := s.run(t, "fork", "fix", "--step", "2"); code != exit.OK || len(s.created(t, "fix")) != 1 || !strings.Contains(s.err.String(), "The calls after step 2 cannot be listed, because the conversation of Run fix was not read: pods is forbidden") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestForkReadsTheVolumeIfThePodsAreDeleted(t *testing.T) {
	x := newStoredLog(t, worked().String())
	if code := x.s.run(t, "fork", "fix", "--step", "5"); code != exit.Usage || !strings.Contains(x.s.err.String(), "After step 5, Run fix made 3 calls") {
		t.Errorf("exit code %d: %s", code, x.s.text())
	}
	if left := x.filesPods(t.Context()); len(left) > 0 || x.pod == nil {
		t.Errorf("%d pods are left", len(left))
	}
	x = newStoredLog(t, worked().String())
	x.s.forbidden = []string{"create pods/exec"}
	if code := x.s.run(t, "fork", "fix", "--step", "5"); code != exit.Usage || !strings.Contains(x.s.err.String(), "was not read: you may not create pods/exec in namespace team-a") {
		t.Errorf("exit code %d: %s", code, x.s.text())
	}
}
