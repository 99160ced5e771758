package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// ofWorkflow is the Run of a Workflow.
func ofWorkflow(run *v1alpha1.Run) { run.Spec.Agent, run.Spec.Workflow = "", "release" }

// child returns a child Run of a Run with labels.
func child(parent *v1alpha1.Run, name string, minute int, labels map[string]string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	return namedRun(name, v1alpha1.ReasonRunning, append([]func(*v1alpha1.Run){func(run *v1alpha1.Run) {
		run.Labels = labels
		run.CreationTimestamp = metav1.NewTime(gen.Noon.Add(time.Duration(minute) * time.Minute))
		run.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind("Run"))}
	}}, mods...)...)
}

func nodeOf(parent, node string) map[string]string {
	return map[string]string{v1alpha1.LabelWorkflowRun: parent, v1alpha1.LabelWorkflowNode: node}
}

// released are the Runs of a Workflow with two nodes, of which one has items and delegates.
func released() (*v1alpha1.Run, []client.Object) {
	ship := namedRun("ship", v1alpha1.ReasonFinished, ofWorkflow, finished)
	item := nodeOf("ship", "test")
	item[v1alpha1.LabelItemIndex] = "1"
	test := child(ship, "ship-test-1", 2, item, finished, func(run *v1alpha1.Run) { run.Status.Internal.Delegated = []string{"x"} })
	helper := child(test, "ship-test-1-helper", 3, map[string]string{v1alpha1.LabelParentRun: test.Name}, finished, func(run *v1alpha1.Run) { run.Spec.Agent = "helper" })
	build := child(ship, "ship-build", 1, nodeOf("ship", "build"), finished)
	foreign := namedRun("foreign", v1alpha1.ReasonFinished, finished, func(run *v1alpha1.Run) { run.Labels = nodeOf("ship", "build") })
	var objects []client.Object
	for _, run := range []*v1alpha1.Run{test, helper, build, foreign} {
		objects = append(objects, run, runnerPod(run, "1", corev1.PodSucceeded))
	}
	return ship, append(objects, ship)
}

func TestLogsOfAWorkflowAreThoseOfItsChildRuns(t *testing.T) {
	_, objects := released()
	for _, args := range [][]string{{"logs", "ship"}, {"logs", "ship", "-f"}} {
		s := newSession(t, objects...)
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{
			"ship-build-1":         {{lines: textEvent(1, 1, "Built\ntwice")}},
			"ship-test-1-1":        {{lines: textEvent(1, 1, "Tested")}},
			"ship-test-1-helper-1": {{lines: textEvent(1, 1, "Helped")}},
		}}).open
		if code := s.run(t, args...); code != exit.OK {
			t.Fatalf("%v: exit code %d: %s", args, code, s.text())
		}
		want := "[build] ● Built\n[build]   twice\n[test[1]] ● Tested\n[test[1]/helper] ● Helped\n"
		if len(args) == 3 { // at the same time, so in any order
			for line := range strings.Lines(want) {
				if strings.Count(s.out.String(), line) != 1 {
					t.Errorf("%v: not once %q in %q", args, line, s.out.String())
				}
			}
		} else if diff := cmp.Diff(want, s.text()); diff != "" {
			t.Errorf("%v: -want +got:\n%s", args, diff)
		}
	}
}

func TestManyChildRunsAreFollowedSomeAtATime(t *testing.T) {
	const runs = 3 * maxStreams
	ship := namedRun("ship", v1alpha1.ReasonFinished, ofWorkflow, finished)
	objects, logs := []client.Object{ship}, &fakeLogs{streams: map[string][]fakeStream{}}
	for i := range runs {
		run := child(ship, fmt.Sprintf("ship-%02d", i), i, nodeOf("ship", fmt.Sprintf("n%02d", i)), finished)
		objects = append(objects, run, runnerPod(run, "1", corev1.PodSucceeded))
		logs.streams[run.Name+"-1"] = []fakeStream{{lines: textEvent(1, 1, run.Name)}}
	}
	s := newSession(t, objects...)
	counted := &countedLogs{fakeLogs: logs}
	s.openLog = counted.open
	if code := s.run(t, "logs", "-f", "ship"); code != exit.OK || strings.Count(s.out.String(), "\n") != runs {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if counted.most > maxStreams {
		t.Errorf("%d logs were open at the same time", counted.most)
	}
}

// countedLogs counts how many logs are open at the same time.
type countedLogs struct {
	*fakeLogs
	mu        sync.Mutex
	now, most int
}

func (l *countedLogs) open(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	l.most = max(l.most, l.now)
	log, err := l.fakeLogs.open(ctx, namespace, pod, o)
	return &countedLog{log, l}, err
}

type countedLog struct {
	io.ReadCloser
	logs *countedLogs
}

func (l *countedLog) Close() error {
	l.logs.mu.Lock()
	defer l.logs.mu.Unlock()
	l.logs.now--
	return l.ReadCloser.Close()
}

// A user who is asked sees the request where it is asked, with the proof of the status.
func TestARequestIsPrintedOnce(t *testing.T) {
	run, line := runWithTruncatedArgs(t)
	for name, tc := range map[string]struct {
		asks, atTerminal bool
		want             int
	}{
		"the user is asked":         {true, true, 0},
		"there is no terminal":      {true, false, 1},
		"the log is only read":      {false, true, 1},
		"a log is read by a script": {false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, run.DeepCopy())
			if tc.atTerminal {
				s.types(t)
			}
			s.openLog = (&fakeLogs{}).open
			s.run(t, "version") // reads the flags
			s.out.Reset()
			w, err := s.newFollower("fix", logsOptions{follow: true, window: logWindow{ConversationFlags: terminal.ConversationFlags{Color: terminal.ColorNever}}}, &s.out)
			if err != nil {
				t.Fatal(err)
			}
			if tc.asks {
				w.asker = s.newAsker(podReaderOf(s.Factory, w.client), &w.console)
			}
			if _, err := w.reader(t.Context(), treeRun{Run: run}).printer.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(s.out.String(), "#hidden"); got != tc.want || !strings.Contains(s.out.String(), callID+" waits for a Decision") {
				t.Errorf("printed %q", s.out.String())
			}
		})
	}
}

// What a Workflow asks is in no log.
func TestARequestOfAWorkflowIsPrintedOnce(t *testing.T) {
	pending := []v1alpha1.PendingRequest{{ID: "approval-gate", Kind: requests.KindApproval, Tool: "approval", Question: "Deploy?", Digest: callDigest}}
	run := namedRun("ship", v1alpha1.ReasonAwaitingApproval, ofWorkflow, func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Pending: pending}
		r.Status.Conditions[0].Message = decisions.PendingMessage("ship", pending, nil)
	})
	s := newSession(t)
	s.run(t, "version") // reads the flags
	s.openLog = (&fakeLogs{}).open
	w, err := s.newFollower("ship", logsOptions{follow: true, window: logWindow{ConversationFlags: terminal.ConversationFlags{Color: terminal.ColorNever}}}, &s.out)
	if err != nil {
		t.Fatal(err)
	}
	w.sayState(run)
	if got, want := s.err.String(), "Run ship: It asks: “Deploy?” To decide: kubectl deckhand approve ship approval-gate -n team-a\n"; got != want {
		t.Errorf("logs -f: -want +got:\n%s", cmp.Diff(want, got))
	}
	s.err.Reset()
	w.asker = s.newAsker(podReaderOf(s.Factory, w.client), &w.console)
	w.asker.isShown, w.asker.waits = true, true
	for range 2 {
		w.sayState(run)
		if err := w.asker.ask(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.err.String(), "Run ship asks: Deploy? To decide: kubectl deckhand approve ship approval-gate -n team-a\n"; got != want {
		t.Errorf("run --wait: -want +got:\n%s", cmp.Diff(want, got))
	}
}

func TestLogsOfAWorkflowAreInTheOrderOfItsNodes(t *testing.T) {
	_, objects := released()
	for name, tc := range map[string]struct {
		args   []string
		reason string
		want   string
		err    string
	}{
		"a Run that succeeded": {nil, v1alpha1.ReasonFinished, "[test[1]] ● Tested\n[test[1]/helper] ● Helped\n[gate] ── Succeeded, Approve by ann\n[lost] ── Succeeded, Decision ship.approval-lost\n[build] ● Built\n[tell] ── NotReached: NodeFailed\nShipped\n", ""},
		"a Run that failed":    {nil, v1alpha1.ReasonNodeFailed, "[test[1]] ● Tested\n[test[1]/helper] ● Helped\n[gate] ── Succeeded, Approve by ann\n[lost] ── Succeeded, Decision ship.approval-lost\n[build] ● Built\n[tell] ── NotReached: NodeFailed\nShipped\n", "Run ship ended: NodeFailed: So it ended\n"},
		"events":               {[]string{"--json"}, v1alpha1.ReasonFinished, textEvent(1, 1, "Tested") + textEvent(1, 1, "Helped") + textEvent(1, 1, "Built"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, append(objects, &v1alpha1.Decision{
				ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "ship.approval-gate", CreationTimestamp: metav1.NewTime(gen.Noon)},
				Spec:       v1alpha1.DecisionSpec{Run: "ship", Request: "approval-gate", Type: v1alpha1.DecisionApprove, By: "ann"},
			})...)
			s.edit(t, "ship", endedWith(tc.reason), func(run *v1alpha1.Run) {
				run.Status.Nodes = []v1alpha1.NodeStatus{{Name: "test", State: "Succeeded"}, {Name: "gate", State: "Succeeded"}, {Name: "lost", State: "Succeeded"}, {Name: "build", State: "Failed"}, {Name: "tell", State: "NotReached", Reason: "NodeFailed"}, {Name: "never", State: "Waiting"}}
				run.Status.Progress = &v1alpha1.RunProgress{
					Result: &v1alpha1.Result{Text: "Shipped"},
					Decided: []v1alpha1.DecidedRequest{
						{Name: "ship.approval-gate", Request: "approval-gate", Type: v1alpha1.DecisionApprove},
						{Name: "ship.approval-lost", Request: "approval-lost", Type: v1alpha1.DecisionApprove},
					},
				}
			})
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{
				"ship-build-1":         {{lines: textEvent(1, 1, "Built")}},
				"ship-test-1-1":        {{lines: textEvent(1, 1, "Tested")}},
				"ship-test-1-helper-1": {{lines: textEvent(1, 1, "Helped")}},
			}}).open
			code := s.run(t, append([]string{"logs", "ship"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, s.out.String()); code != exit.OK || diff != "" || s.err.String() != tc.err {
				t.Errorf("exit code %d, said %q, -want +got:\n%s", code, s.err.String(), diff)
			}
		})
	}
}
