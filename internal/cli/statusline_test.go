package cli

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// eraseLine is what a terminal is sent before a status line is drawn, and at its end.
const eraseLine = "\r\x1b[2K"

func TestStatusOfARun(t *testing.T) {
	now := gen.Noon.Add(100 * time.Second)
	work := func(run *v1alpha1.Run) {
		started := metav1.NewTime(now.Add(-8 * time.Second))
		run.Status.Progress = &v1alpha1.RunProgress{Step: &v1alpha1.CurrentStep{ID: "s14c1", Kind: "Tool", Name: "shell\x1b[2J", StartedAt: &started}}
		run.Status.Progress.Usage.TotalTokens, run.Status.Progress.Usage.Cost = 4951, "0.02USD"
	}
	created := func(at time.Time) func(*v1alpha1.Run) {
		return func(run *v1alpha1.Run) { run.CreationTimestamp = metav1.NewTime(at) }
	}
	nodes := func(run *v1alpha1.Run) {
		run.Status.Nodes = []v1alpha1.NodeStatus{{State: v1alpha1.NodeRunning}, {State: "Succeeded"}, {State: v1alpha1.NodeWaiting}, {State: "Skipped"}}
	}
	for want, run := range map[string]*v1alpha1.Run{
		`Running · step s14c1, shell\x1b[2J 8s · 4951 tokens · 0.02USD · 1m40s`:       namedRun("fix", v1alpha1.ReasonRunning, created(gen.Noon), work),
		`AwaitingApproval · step s14c1, shell\x1b[2J · 4951 tokens · 0.02USD · 1m40s`: namedRun("fix", v1alpha1.ReasonAwaitingApproval, created(gen.Noon), work),
		"Pending · 1m40s":                namedRun("fix", v1alpha1.ReasonPending, created(gen.Noon)),
		"Pending · 0s":                   namedRun("fix", v1alpha1.ReasonPending, created(now.Add(time.Hour))), // the clock of the cluster
		"Running · 2 of 4 nodes · 1m40s": namedRun("fix", v1alpha1.ReasonRunning, created(gen.Noon), ofWorkflow, nodes),
	} {
		if got := statusText(run, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// drawnAtATerminal is what is sent to a terminal while a Run is watched that works at first.
func drawnAtATerminal(t *testing.T, streams func(s *session, terminal io.Writer), args string) string {
	t.Helper()
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	text := make(chan string)
	go func() {
		data, _ := io.ReadAll(screen) // ends with an error when the terminal is closed
		text <- string(data)
	}()
	run := namedRun("fix", v1alpha1.ReasonRunning)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodRunning))
	again := fakeStream{lines: textEvent(1, 1, "All is well.")}
	logs := &fakeLogs{streams: map[string][]fakeStream{"fix-1": {again, again, again}}}
	// The clock is read for each status line. When it is read again, the line of before is drawn.
	var drawn atomic.Int32
	isDrawn, now := make(chan struct{}), s.Now
	s.Now = func() time.Time {
		if drawn.Add(1) == 2 {
			close(isDrawn)
		}
		return now()
	}
	s.openLog = func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		<-isDrawn
		return logs.open(ctx, namespace, pod, o)
	}
	streams(s, terminal)
	looks := 0
	s.wait = func(ctx context.Context) error {
		if looks++; looks == 2 {
			s.edit(t, "fix", finished)
		}
		return ctx.Err()
	}
	if code := s.run(t, strings.Fields(args)...); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	terminal.Close()
	return <-text + s.text()
}

func TestOnlyATerminalHasAStatusLine(t *testing.T) {
	t.Setenv("TERM", "xterm")
	both := func(s *session, terminal io.Writer) { s.Out, s.Err = terminal, terminal }
	const follow = "logs fix -f --color=never"
	for name, tc := range map[string]struct {
		streams func(s *session, terminal io.Writer)
		args    string
		want    bool
	}{
		"a terminal":                 {both, follow, true},
		"the output is a pipe":       {func(s *session, terminal io.Writer) { s.Err = terminal }, follow, false},
		"the errors go to a file":    {func(s *session, terminal io.Writer) { s.Out = terminal }, follow, false},
		"events":                     {both, "logs fix -f --json", false},
		"a log that is not followed": {both, "logs fix --color=never", false},
	} {
		t.Run(name, func(t *testing.T) {
			sent := drawnAtATerminal(t, tc.streams, tc.args)
			if got := strings.Contains(sent, eraseLine+"Running · "); got != tc.want || !strings.HasSuffix(sent, "\n") && !strings.HasSuffix(sent, eraseLine) {
				t.Errorf("sent %q", sent)
			}
		})
	}
	t.Setenv("TERM", "dumb")
	if sent := drawnAtATerminal(t, both, follow); strings.Contains(sent, "\x1b") {
		t.Errorf("a terminal that cannot erase was sent %q", sent)
	}
}
