package attempt

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A fakeReporter is a reporter that remembers what was reported last.
type fakeReporter struct{ last task.Progress }

func (d *fakeReporter) Report(now func() task.Progress) { d.last = now() }

func (*fakeReporter) Accepted() bool { return true }

func (d *fakeReporter) Begin(ctx context.Context, now func() task.Progress) error {
	return d.Commit(ctx, now)
}

func (d *fakeReporter) Commit(_ context.Context, now func() task.Progress) error {
	d.last = now()
	return nil
}

func (*fakeReporter) Close() {}

// What is asked stays in the status while the pod goes, and only then.
func TestWhatIsAskedStaysWhileThePodGoes(t *testing.T) {
	asked := task.Progress{State: "AwaitingApproval", Pending: []task.Pending{{ID: "s2c1"}}}
	done := task.Progress{Result: &task.Result{Committed: true}}
	cases := map[string]struct {
		before, last task.Progress
		leaving      bool
		want         task.Progress
	}{
		"nothing was asked":            {task.Progress{}, task.Progress{}, true, task.Progress{}},
		"something is asked":           {asked, task.Progress{}, true, asked},
		"it is asked still":            {asked, asked, true, asked},
		"the Run is done":              {asked, done, true, done},
		"it was answered, and goes on": {asked, task.Progress{}, false, task.Progress{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, leaving := &fakeReporter{}, false
			k := &statusReporter{to: at, leaving: func() bool { return leaving }}
			k.Report(func() task.Progress { return tc.before })
			leaving = tc.leaving
			k.Report(func() task.Progress { return tc.last })
			if diff := cmp.Diff(tc.want, at.last); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whatever the engine says, no report has control characters.
func TestReportsArePrintable(t *testing.T) {
	at := &fakeReporter{}
	k := &statusReporter{to: at}
	hostile := task.Progress{Recent: []task.Recent{{Summary: "a\x1b[2Jb"}}, Result: &task.Result{Text: "c\u009bd", Output: "\"\u009b\""}}
	say := func() task.Progress { return hostile }
	want := task.Progress{Recent: []task.Recent{{Summary: "a[2Jb"}}, Result: &task.Result{Text: "cd", Output: `"\u009b"`}}
	k.Report(say)
	if diff := cmp.Diff(want, at.last, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Report -want +got:\n%s", diff)
	}
	if err := k.Commit(t.Context(), say); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, at.last, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Commit -want +got:\n%s", diff)
	}
}

// The termination message reports whether the runner gave up waiting for a model. It has no field for any other end.
func TestTheTerminationSaysWhetherTheRunnerGaveUp(t *testing.T) {
	wait := task.Progress{ModelWait: &task.ModelWait{Model: "m"}}
	for name, tc := range map[string]struct {
		out  engine.Outcome
		want *bool
	}{
		"it gave up":                {engine.Outcome{Reason: task.ReasonModelUnavailable, Progress: wait}, new(true)},
		"a model that failed":       {engine.Outcome{Reason: task.ReasonModelUnavailable}, new(false)},
		"it leaves during the wait": {engine.Outcome{Reason: task.ReasonWaiting, Progress: wait}, nil},
		"the work is done":          {engine.Outcome{Reason: task.ReasonFinished}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestPod(t)
			a := newAttempt(p.Environment)
			a.writeTermination(task.Result{Committed: true, Reason: tc.out.Reason}, tc.out)
			if diff := cmp.Diff(tc.want, p.termination(t).GaveUp); diff != "" {
				t.Errorf("gaveUp -want +got:\n%s", diff)
			}
			if data, _ := os.ReadFile(p.terminationLog); tc.want == nil && strings.Contains(string(data), "gaveUp") {
				t.Errorf("the message is %s", data)
			}
		})
	}
}
