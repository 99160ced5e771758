package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// fakeLogs answers each request for the log of a pod with the next of its streams.
type fakeLogs struct {
	mu      sync.Mutex
	streams map[string][]fakeStream
	asked   []string
}

type fakeStream struct {
	lines string
	// cut is the error at the end of the stream.
	cut error
	// refused is why there is no stream.
	refused error
}

func (l *fakeLogs) open(_ context.Context, _, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	request := pod
	if o.SinceTime != nil {
		request += " since " + o.SinceTime.UTC().Format(time.TimeOnly)
	}
	l.asked = append(l.asked, request)
	streams := l.streams[pod]
	if len(streams) == 0 {
		return nil, fmt.Errorf("the log of %s was asked for too often", pod)
	}
	l.streams[pod] = streams[1:]
	if streams[0].refused != nil {
		return nil, streams[0].refused
	}
	return io.NopCloser(io.MultiReader(strings.NewReader(streams[0].lines), errorReader{streams[0].cut})), nil
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}

// runnerPod returns the pod of an attempt of a Run, and records the attempt in the status unless that has a later one.
func runnerPod(run *v1alpha1.Run, attempt string, phase corev1.PodPhase) *corev1.Pod {
	pod := forgedPod(run, attempt, phase)
	n, err := strconv.Atoi(attempt)
	if err != nil {
		panic(err)
	}
	pod.Name = run.Name + "-" + attempt
	pod.UID = types.UID("uid-of-pod-" + pod.Name)
	pod.Spec.ServiceAccountName = v1alpha1.RunnerServiceAccount
	pod.Annotations = map[string]string{v1alpha1.AnnotationTask: string(runnerpod.ToJSON(task.Task{Attempt: n, Run: task.Run{Name: run.Name, UID: string(run.UID)}}))}
	if run.Status.Attempt == nil {
		run.Status.Attempt = &v1alpha1.Attempt{}
	}
	if a := run.Status.Attempt; int(a.Number) <= n {
		a.Number, a.Pod, a.PodUID = int32(n), pod.Name, string(pod.UID)
	}
	return pod
}

// forgedPod returns a pod that a user created who may create pods: with the owner and the labels of a pod of a Run.
func forgedPod(run *v1alpha1.Run, attempt string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: "forged-" + attempt, UID: types.UID("uid-of-forged-" + attempt),
			Labels:          map[string]string{v1alpha1.LabelRun: run.Name, v1alpha1.LabelAttempt: attempt},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// textEvent is an event of text. Its number is also its second.
func textEvent(attempt, n int, text string) string {
	return fmt.Sprintf(`{"v":1,"n":%d,"t":"2030-01-01T12:00:%02dZ","run":"fix","attempt":%d,"type":"text.delta","data":{"step":1,"text":%q}}`+"\n", n, n, attempt, text)
}

func finished(run *v1alpha1.Run) {
	meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionFinished, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished})
	meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished})
}

func TestLogsPrintAttemptsInOrder(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	logs := &fakeLogs{streams: map[string][]fakeStream{"fix-9": {{lines: textEvent(9, 1, "first")}}, "fix-10": {{lines: textEvent(10, 1, "second")}}}}
	s := newSession(t, run, runnerPod(run, "10", corev1.PodSucceeded), runnerPod(run, "9", corev1.PodFailed))
	s.openLog = logs.open
	if code := s.run(t, "logs", "fix"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if diff := cmp.Diff("● first\n── Attempt 10\n● second\n", s.out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogsOfOneAttempt(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodFailed), runnerPod(run, "2", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-2": {{lines: textEvent(2, 2, "second")}}}}).open
	if code := s.run(t, "logs", "fix", "--attempt=2", "--json"); code != exit.OK || s.text() != textEvent(2, 2, "second") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
	if code := s.run(t, "logs", "fix", "--attempt=3"); code != exit.Error || !strings.Contains(s.err.String(), "run fix has ended (Finished), and has no attempt 3: its last is 2") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestLogsOfARunThatTookTheNameAreNotFollowed(t *testing.T) {
	s := newSession(t, runWithRequests())
	s.openLog = (&fakeLogs{}).open
	s.wait = func(context.Context) error {
		replace(t, s)
		return nil
	}
	if code := s.run(t, "logs", "fix", "-f"); code != exit.Error || !strings.Contains(s.err.String(), "another Run has its name now") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestFollowedLogsGoOnAfterACutAndWithTheNextAttempt(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonPending)
	notStarted := apierrors.NewBadRequest("container runner is waiting to start")
	logs := &fakeLogs{streams: map[string][]fakeStream{
		"fix-1": {
			{refused: notStarted},
			{lines: textEvent(1, 1, "a") + textEvent(1, 2, "b") + `{"v":1,"n":3,`, cut: errors.New("connection reset")},
			{lines: textEvent(1, 2, "b") + textEvent(1, 3, "c")},
			{lines: textEvent(1, 3, "c")},
		},
		"fix-2": {{lines: textEvent(2, 1, "done")}},
	}}
	first := runnerPod(run, "1", corev1.PodPending)
	s := newSession(t, run)
	s.openLog = logs.open
	second := runnerPod(run, "2", corev1.PodRunning)
	changes := []func() error{
		func() error { return s.client.Create(t.Context(), first) },
		func() error { return nil }, // the container starts
		func() error { return nil }, // the stream was cut
		func() error {
			first.Status.Phase = corev1.PodFailed
			return s.client.Status().Update(t.Context(), first)
		},
		func() error {
			finished(run)
			return errors.Join(s.client.Create(t.Context(), second), s.client.Update(t.Context(), run))
		},
	}
	s.wait = func(context.Context) error {
		next := changes[0]
		changes = changes[1:]
		return next()
	}
	if code := s.run(t, "logs", "-f", "fix"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if diff := cmp.Diff("● abc\n── Attempt 2\n● done\n", s.out.String()); diff != "" {
		t.Errorf("output -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fix-1", "fix-1", "fix-1 since 12:00:02", "fix-1 since 12:00:03", "fix-2"}, logs.asked); diff != "" {
		t.Errorf("requests -want +got:\n%s", diff)
	}
	for _, want := range []string{"Waiting for a pod of Run fix", "Waiting for pod fix-1 to start"} {
		if strings.Count(s.err.String(), want) != 1 {
			t.Errorf("does not say once %q: %s", want, s.err.String())
		}
	}
}

// A kubelet answers that it does not find a pod that was just scheduled to its node.
func TestLogsWaitForAPodThatTheKubeletDoesNotKnowYet(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonPending)
	unknown := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "fix-1")
	pod := runnerPod(run, "1", corev1.PodPending)
	s := newSession(t, run, pod)
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: unknown}, {lines: textEvent(1, 1, "a")}}}}).open
	s.wait = func(context.Context) error {
		finished(run)
		return s.client.Update(t.Context(), run)
	}
	if code := s.run(t, "logs", "-f", "fix"); code != exit.OK || s.out.String() != "● a\n" {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// The kubelet may have removed the containers of a pod that has ended.
func TestLogsOfAPodThatHasEndedAreNotWaitedFor(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	unknown := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "fix-1")
	s := newSession(t, run, runnerPod(run, "1", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: unknown}}}}).open
	if code := s.run(t, "logs", "-f", "fix"); code != exit.OK || strings.Contains(s.err.String(), "Waiting") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestLogsOfARunWhosePodsAreDeletedPrintTheResult(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished, func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Text: "All is \x1b[1mfixed"}}
	})
	s := newSession(t, run)
	s.openLog = (&fakeLogs{}).open
	code := s.run(t, "logs", "fix")
	if code != exit.OK || s.out.String() != `All is \x1b[1mfixed`+"\n" || !strings.Contains(s.err.String(), "retention.pod") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

// A Run that cannot start has no pods that could have been deleted.
func TestLogsOfARunThatNeverHadAPod(t *testing.T) {
	s := newSession(t, namedRun("fix", v1alpha1.ReasonMisconfigured, finished))
	s.openLog = (&fakeLogs{}).open
	code := s.run(t, "logs", "fix")
	if code != exit.OK || !strings.HasPrefix(s.err.String(), "Run fix ended before it had a pod.") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestLogsNameTheMissingRight(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonPending)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods/log"}, "fix-1", errors.New(`User "ann" cannot get resource "pods/log" in API group "" in the namespace "team-a"`))
	s := newSession(t, run, runnerPod(run, "1", corev1.PodRunning))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: refused}}}}).open
	code := s.run(t, "logs", "fix")
	if code != exit.Error || !strings.Contains(s.err.String(), `cannot get resource "pods/log"`) || !strings.Contains(s.err.String(), "ClusterRole view") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestFollowedLogsGoOnWhenAServerFailsForATime(t *testing.T) {
	unreachable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: `Get "https://10.0.0.1:10250/containerLogs": connection refused`}}
	run := namedRun("fix", v1alpha1.ReasonRunning)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: unreachable}, {lines: textEvent(1, 1, "a")}}}}).open
	var reads atomic.Int32
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if reads.Add(1) == 2 {
			return apierrors.NewServiceUnavailable("the API server is restarting")
		}
		return c.Get(ctx, key, o, options...)
	}})
	waits := 0
	s.wait = func(ctx context.Context) error {
		if waits++; waits != 2 {
			return nil
		}
		finished(run)
		return s.client.Update(ctx, run)
	}
	if code := s.run(t, "logs", "-f", "fix"); code != exit.OK || s.out.String() != "● a\n" || !strings.Contains(s.err.String(), "tries again: ") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestFollowedLogsOfAFinishedRunEndWhenTheyCannotBeRead(t *testing.T) {
	unreachable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "connection refused"}}
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: unreachable}}}}).open
	if code := s.run(t, "logs", "-f", "fix"); code != exit.Error || !strings.Contains(s.err.String(), "connection refused") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestInterruptedLogsSayHowToWatchAgain(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonPending)
	s := newSession(t, run)
	ctx, interrupt := context.WithCancel(t.Context())
	s.openLog = (&fakeLogs{}).open
	s.wait = func(ctx context.Context) error {
		interrupt()
		return ctx.Err()
	}
	code := Main(ctx, s.Factory, "", []string{"logs", "-f", "fix", "--namespace", gen.Namespace})
	if want := "kubectl deckhand logs -f fix -n team-a"; code != exit.OK || !strings.Contains(s.err.String(), want) {
		t.Errorf("exit code %d, does not say %q: %s", code, want, s.text())
	}
}

func TestUnknownColorIsAUsageError(t *testing.T) {
	s := newSession(t, namedRun("fix", v1alpha1.ReasonPending))
	s.openLog = (&fakeLogs{}).open
	if code := s.run(t, "logs", "fix", "--color=blue"); code != exit.Usage || !strings.Contains(s.err.String(), "auto, always or never") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestACutLogLosesNothingOfTheNextAttempt(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodFailed), runnerPod(run, "2", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{
		"fix-1": {{lines: textEvent(1, 1, "a") + "out of mem"}}, // the runner was killed
		"fix-2": {{lines: textEvent(2, 1, "b")}},
	}}).open
	if code := s.run(t, "logs", "fix"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if diff := cmp.Diff("● a\n· out of mem\n── Attempt 2\n● b\n", s.out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogsSayWhichAttemptsAreMissing(t *testing.T) {
	third := func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 3} }
	for missing, run := range map[string]*v1alpha1.Run{
		"1, 3. Their pods were deleted": namedRun("fix", v1alpha1.ReasonFinished, finished, third),
		"1. Their pods were deleted":    namedRun("fix", v1alpha1.ReasonRunning, third), // the third begins
	} {
		s := newSession(t, run, runnerPod(run, "2", corev1.PodFailed))
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-2": {{lines: textEvent(2, 1, "second")}}}}).open
		if code := s.run(t, "logs", "fix"); code != exit.OK || !strings.Contains(s.err.String(), "no logs of these attempts: "+missing) {
			t.Errorf("exit code %d, printed %q", code, s.text())
		}
	}
}

func TestAnEarlierLogThatCannotBeReadHidesNoLaterOne(t *testing.T) {
	unreachable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: `Get "https://10.0.0.1:10250/containerLogs": no route to host`}}
	run := namedRun("fix", v1alpha1.ReasonFinished, finished, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 2} })
	for _, args := range [][]string{{"logs", "fix"}, {"logs", "fix", "-f"}} {
		s := newSession(t, run, runnerPod(run, "1", corev1.PodFailed), runnerPod(run, "2", corev1.PodSucceeded))
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{refused: unreachable}}, "fix-2": {{lines: textEvent(2, 1, "second")}}}}).open
		code := s.run(t, args...)
		if code != exit.OK || s.out.String() != "● second\n" || strings.Count(s.err.String(), "fix-1 is left out: ") != 1 || strings.Contains(s.err.String(), "no logs of these") {
			t.Errorf("%v: exit code %d, printed %q", args, code, s.text())
		}
	}
}

// windowed is a session with a Run of three texts, at 12:00:01, 12:00:02 and 12:00:03.
func windowed(t *testing.T) *session {
	t.Helper()
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: "a warning at the start\n" + textEvent(1, 1, "one\n") + textEvent(1, 2, "two\n") + textEvent(1, 3, "three\n")}}}}).open
	s.Now = func() time.Time { return gen.Noon.Add(time.Minute) }
	return s
}

func TestLogsPrintAPartOfTheConversation(t *testing.T) {
	for args, want := range map[string]string{
		"--tail=2":             "  two\n  three\n",
		"--tail=1":             "  three\n",
		"--tail=0":             "",
		"--tail=1 -f":          "  three\n",
		"--since=58s":          "! What happened before 12:00:02 UTC is left out (--since)\n● two\n  three\n",
		"--since=57s --tail=1": "● three\n",
		"--since=1s":           "",
		"--since=58s --json":   textEvent(1, 2, "two\n") + textEvent(1, 3, "three\n"),
		"--json --tail=1":      textEvent(1, 3, "three\n"),
	} {
		s := windowed(t)
		if code := s.run(t, append([]string{"logs", "fix"}, strings.Fields(args)...)...); code != exit.OK || s.out.String() != want {
			t.Errorf("%s: exit code %d, printed %q, want %q: %s", args, code, s.out.String(), want, s.err.String())
		}
	}
	for _, args := range []string{"--tail=-2", "--since=soon", "--since=-5m"} {
		if code := windowed(t).run(t, append([]string{"logs", "fix"}, strings.Fields(args)...)...); code != exit.Usage {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
}

func TestTailPassesWhatFollowsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := make(chanWriter, 8)
		w := (&logWindow{tail: 2}).writer(out, time.Second)
		for _, text := range []string{"one\ntw", "o\nthree\n", "fo"} {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if printed := out.text(); printed != "" {
				t.Fatalf("printed %q before the past has ended", printed)
			}
		}
		time.Sleep(2 * time.Second) // of the fake clock
		synctest.Wait()
		if _, err := w.Write([]byte("ur\nfive\n")); err != nil {
			t.Fatal(err)
		}
		if got, want := out.text(), "three\nfour\nfive\n"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	})
}

// Without -f the end of the log decides: a pause is that of a slow API server.
func TestTailDoesNotEndThePastByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := namedRun("fix", v1alpha1.ReasonFinished, finished)
		s := newSession(t, run, runnerPod(run, "1", corev1.PodFailed), runnerPod(run, "2", corev1.PodSucceeded))
		logs := &fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "one\n")}}, "fix-2": {{lines: textEvent(2, 2, "two\n")}}}}
		s.Interval = time.Second
		s.openLog = func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
			time.Sleep(time.Minute) // of the fake clock
			return logs.open(ctx, namespace, pod, o)
		}
		if code := s.run(t, "logs", "fix", "--tail=1"); code != exit.OK || s.out.String() != "● two\n" {
			t.Errorf("exit code %d, printed %q: %s", code, s.out.String(), s.err.String())
		}
	})
}

// A chanWriter holds what was written until it is read.
type chanWriter chan string

func (w chanWriter) Write(text []byte) (int, error) {
	w <- string(text)
	return len(text), nil
}

func (w chanWriter) text() string {
	var out strings.Builder
	for len(w) > 0 {
		out.WriteString(<-w)
	}
	return out.String()
}
