package cli

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// finalReasons are the reasons with which a Run ends, as conditions.go groups them.
func finalReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "api", "v1alpha1", "conditions.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, d := range file.Decls {
		group, is := d.(*ast.GenDecl)
		if !is || !strings.HasPrefix(group.Doc.Text(), "Reasons of Succeeded=False") {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit)
			reason, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

func TestExitCodeSaysHowARunEnded(t *testing.T) {
	reasons := finalReasons(t)
	if len(reasons) < 20 {
		t.Fatalf("only %q", reasons)
	}
	for _, reason := range reasons {
		want := exit.Failed
		switch {
		case reason == v1alpha1.ReasonStopped:
			want = exit.Stopped
		case strings.HasSuffix(reason, "Limit"), reason == v1alpha1.ReasonDeadlineExceeded, reason == v1alpha1.ReasonPendingTimeout:
			want = exit.Limit
		}
		if got := exit.CodeOf(reason); got != want {
			t.Errorf("%s: exit code %d, want %d", reason, got, want)
		}
	}
	if got := exit.CodeOf(v1alpha1.ReasonFinished); got != exit.OK {
		t.Errorf("Finished: exit code %d", got)
	}
}

// whenWaiting is called whenever a log is waited for, with the Run as it is stored.
func (s *session) whenWaiting(t *testing.T, name string, do func(*v1alpha1.Run)) {
	t.Helper()
	s.wait = func(ctx context.Context) error {
		runtime.Gosched()
		run := &v1alpha1.Run{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: gen.Namespace, Name: name}, run); err != nil {
			return err
		}
		do(run)
		return ctx.Err()
	}
}

func (s *session) update(t *testing.T, run *v1alpha1.Run) {
	t.Helper()
	if err := s.client.Update(t.Context(), run); err != nil {
		t.Error(err)
	}
}

// endedWith is a Run that has ended with a reason.
func endedWith(reason string) func(*v1alpha1.Run) {
	return func(run *v1alpha1.Run) {
		finished(run)
		for i := range run.Status.Conditions {
			run.Status.Conditions[i].Reason, run.Status.Conditions[i].Message = reason, "So it ended"
		}
	}
}

func TestWaitPrintsTheConversationAndExitsAsTheRunEnded(t *testing.T) {
	for reason, want := range map[string]int{v1alpha1.ReasonFinished: 0, v1alpha1.ReasonStuck: 3, v1alpha1.ReasonStopped: 4, v1alpha1.ReasonCostLimit: 5} {
		s := newSession(t)
		logs := &fakeLogs{streams: map[string][]fakeStream{"haiku-1": {{lines: textEvent(1, 1, "Harbor lamps")}}}}
		s.openLog = logs.open
		s.whenWaiting(t, "haiku", func(run *v1alpha1.Run) {
			endedWith(reason)(run)
			if err := s.client.Create(t.Context(), runnerPod(run, "1", corev1.PodSucceeded)); err != nil {
				t.Error(err)
			}
			s.update(t, run)
		})
		if code := s.run(t, "run", "poet", "-p", "Work.", "--name=haiku", "-w"); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", reason, code, want, s.text())
		}
		if s.out.String() != "● Harbor lamps\n" {
			t.Errorf("%s: printed %q", reason, s.out.String())
		}
		said := "run.deckhand.dev/haiku " + reason + ": So it ended\n"
		if !strings.Contains(s.err.String(), said) || strings.Contains(s.err.String(), "deckhand why haiku") != (want != 0) {
			t.Errorf("%s: said %q", reason, s.err.String())
		}
	}
}

func TestWaitPrintsTheRunThatEnded(t *testing.T) {
	s := newSession(t)
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"haiku-1": {{lines: textEvent(1, 1, "Harbor lamps")}}}}).open
	s.whenWaiting(t, "haiku", func(run *v1alpha1.Run) {
		endedWith(v1alpha1.ReasonFinished)(run)
		if err := s.client.Create(t.Context(), runnerPod(run, "1", corev1.PodSucceeded)); err != nil {
			t.Error(err)
		}
		s.update(t, run)
	})
	code := s.run(t, "run", "poet", "-p", "Work.", "--name=haiku", "-w", "-o", "json")
	var printed v1alpha1.Run
	if err := json.Unmarshal(s.out.Bytes(), &printed); err != nil || code != exit.OK || printed.Kind != "Run" || reason(&printed) != v1alpha1.ReasonFinished {
		t.Errorf("exit code %d, %v: %s", code, err, s.out.String())
	}
	if !strings.Contains(s.err.String(), "Harbor lamps") {
		t.Errorf("the conversation is missing: %s", s.err.String())
	}
}

// awaitsDecision is a Run that asks for an approval and ends when there is a Decision.
func awaitsDecision(t *testing.T, s *session) {
	t.Helper()
	s.openLog = (&fakeLogs{}).open
	asked := runWithRequests()
	s.whenWaiting(t, "fix", func(run *v1alpha1.Run) {
		switch {
		case run.Status.Progress == nil:
			run.Status.Progress = asked.Status.Progress
			run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
			s.update(t, run)
		case len(decisionsOf(t, s)) > 0 && !isFinished(run):
			endedWith(v1alpha1.ReasonFinished)(run)
			now := metav1.NewTime(gen.Noon)
			run.Status.CompletionTime = &now
			s.update(t, run)
		}
	})
}

func TestWaitAsksWhatTheRunAsks(t *testing.T) {
	for answer, want := range map[string]v1alpha1.DecisionType{"y\n": v1alpha1.DecisionApprove, "n\n": v1alpha1.DecisionDeny} {
		s := newSession(t)
		awaitsDecision(t, s)
		s.types(t, answer)
		if code := s.run(t, "run", "fixer", "-p", "Work.", "--name=fix", "-w"); code != exit.OK {
			t.Fatalf("%q: exit code %d: %s", answer, code, s.text())
		}
		made := decisionsOf(t, s)
		if len(made) != 1 || made[0].Spec.Type != want || made[0].Spec.Request != callID || made[0].Spec.By != "ann" {
			t.Fatalf("%q: Decisions are %+v", answer, made)
		}
		if digest := made[0].Spec.Digest; want == v1alpha1.DecisionApprove && digest != callDigest {
			t.Errorf("the digest is %q", digest)
		}
		if !strings.Contains(s.err.String(), `"command": "rm -rf dist\ngit push"`) || strings.Contains(s.out.String(), "decision.deckhand.dev") {
			t.Errorf("%q: printed %q and said %q", answer, s.out.String(), s.err.String())
		}
	}
}

func TestWaitEndsWhereNobodyCanBeAsked(t *testing.T) {
	s := newSession(t)
	awaitsDecision(t, s)
	code := s.run(t, "run", "fixer", "-p", "Work.", "--name=fix", "-w")
	if code != exit.NeedsUser || !strings.Contains(s.err.String(), "kubectl deckhand approve fix "+callID) || !strings.Contains(s.err.String(), "there is no terminal to ask one. The Run continues.") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// Another user may decide until the timeout.
func TestWaitWithATimeoutNamesTheCommandWhereNobodyCanBeAsked(t *testing.T) {
	s := newSession(t)
	awaitsDecision(t, s)
	s.Err = writerFunc(func(text []byte) (int, error) {
		if strings.Contains(string(text), "kubectl deckhand approve fix "+callID) {
			d := &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "elsewhere"}}
			if err := s.client.Create(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
		return s.err.Write(text)
	})
	if code := s.run(t, "run", "fixer", "-p", "Work.", "--name=fix", "-w", "--timeout=1h"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestWaitSaysThatTheRunWasDeleted(t *testing.T) {
	s := newSession(t)
	s.openLog = (&fakeLogs{}).open
	s.whenWaiting(t, "haiku", func(run *v1alpha1.Run) {
		if err := s.client.Delete(t.Context(), run); err != nil {
			t.Error(err)
		}
	})
	if code := s.run(t, "run", "poet", "-p", "Work.", "--name=haiku", "-w"); code != exit.Error || !strings.Contains(s.err.String(), "run haiku was deleted while it was watched") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestInterruptedWaitLeavesTheRun(t *testing.T) {
	s := newSession(t)
	s.openLog = (&fakeLogs{}).open
	ctx, interrupt := context.WithCancel(t.Context())
	s.wait = func(ctx context.Context) error {
		interrupt()
		return ctx.Err()
	}
	code := Main(ctx, s.Factory, "", []string{"run", "poet", "-p", "Work.", "--name=haiku", "-w", "--namespace", gen.Namespace})
	if code != exit.Interrupted || !strings.Contains(s.err.String(), "kubectl deckhand logs -f haiku -n team-a") || !strings.Contains(s.err.String(), "kubectl deckhand stop haiku") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestWaitGoesOnWhenTheAPIServerFailsAfterTheRunWasCreated(t *testing.T) {
	s := newSession(t)
	s.openLog = (&fakeLogs{}).open
	var reads atomic.Int32
	stored := s.client
	s.client = interceptor.NewClient(stored.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		run, is := o.(*v1alpha1.Run)
		if is && reads.Add(1) == 1 {
			return apierrors.NewServiceUnavailable("the API server is restarting")
		}
		err := c.Get(ctx, key, o, options...)
		if is {
			endedWith(v1alpha1.ReasonFinished)(run)
		}
		return err
	}})
	if code := s.run(t, "run", "poet", "-p", "Write.", "--name=haiku", "-w"); code != exit.OK || !strings.Contains(s.err.String(), "tries again: ") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
