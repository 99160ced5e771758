package policy_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/report"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// writer is the runner's own, as it runs in a pod: with its token, the
// certificate of the API server and nothing of Kubernetes' libraries.
func (s *fixture) writer(t *testing.T, pod *corev1.Pod) (*report.Writer, listener) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{"token": []byte(s.Token(t, s.account, pod)), "ca.crt": s.Config.CAData} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err := url.Parse(s.Config.Host)
	if err != nil || server.Host == "" {
		server = &url.URL{Host: s.Config.Host}
	}
	host, port, err := net.SplitHostPort(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	t.Setenv(task.EnvPodUID, string(pod.UID))
	target, err := report.InCluster(task.Run{Namespace: s.namespace, Name: s.run.Name, UID: string(s.run.UID)}, dir)
	if err != nil {
		t.Fatal(err)
	}
	heard := listener{target.Client.Transport, make(chan int, 1000), &atomic.Bool{}}
	target.Client.Transport = heard
	w := report.New(report.Options{
		Target: target,
		Now:    time.Now,
		Jitter: func(d time.Duration) time.Duration { return d },
		Ended:  func(error) {},
		Log:    slog.New(slog.DiscardHandler),
	})
	t.Cleanup(w.Close)
	return w, heard
}

// A listener tells the status of each answer, as long as somebody listens, and
// loses one when told to.
type listener struct {
	http.RoundTripper
	answers chan int
	lose    *atomic.Bool
}

var errLost = errors.New("the answer is lost")

func (l listener) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	select {
	case l.answers <- response.StatusCode:
	default:
	}
	if l.lose.CompareAndSwap(true, false) {
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, nil
}

// The runner begins only once its report is accepted, which is when the
// operator has recorded its pod.
func TestRunnersWriterWaitsToBeRecorded(t *testing.T) {
	s := newFixture(t)
	s.patch(t, s.run, `[{"op":"remove","path":"/status/attempt/podUID"}]`)
	w, heard := s.writer(t, s.pod)
	accepted := make(chan error, 1)
	go func() {
		accepted <- w.Commit(t.Context(), func() task.Progress { return task.Progress{Version: task.Version, Attempt: 2} })
	}()
	for range 3 {
		select {
		case err := <-accepted:
			t.Fatalf("it was accepted too early: %v", err)
		case status := <-heard.answers:
			if status < 400 {
				t.Fatalf("a try was answered %d", status)
			}
		}
	}
	s.patch(t, s.run, `[{"op":"add","path":"/status/attempt/podUID","value":"`+string(s.pod.UID)+`"}]`)
	if err := <-accepted; err != nil {
		t.Fatalf("it is not accepted: %v", err)
	}
	var got v1alpha1.Run
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status.Progress == nil || got.Status.Progress.Attempt != 2 {
		t.Errorf("progress is %+v", got.Status.Progress)
	}
}

// pendingThatFit are as many of the first requests as a report has room for.
func pendingThatFit(open []task.Pending) []task.Pending {
	size := 0
	for i, p := range open {
		if size += p.Size(); i == task.MaxPending || size > task.MaxAsked {
			return open[:i]
		}
	}
	return open
}

// What a runner may tell at most the schema takes: a report that is refused would
// be the end of a good Run.
func TestRunnersLargestReportIsTaken(t *testing.T) {
	s := newFixture(t)
	w, _ := s.writer(t, s.pod)
	var asked []task.Pending
	for i := range 3 * task.MaxPending {
		asked = append(asked, task.Pending{
			ID: strings.Repeat("s", task.MaxRequest), Kind: task.PendingApproval, Agent: strings.Repeat("a", task.MaxAsker),
			Question: strings.Repeat("ä", 50*(1+i%10)), Tool: "shell", Args: strings.Repeat("ä", 50*(10-i%10)), ArgsTruncated: true,
			Digest: strings.Repeat("d", 64), Rule: strings.Repeat("r", task.MaxRule), Approvers: task.ApproversOf([]string{"leads", "owners"}),
			AskedAt: "2030-01-01T00:00:00Z", ExpiresAt: "2030-01-01T00:00:00Z",
		})
	}
	whole := task.Pending{ID: "s1c1", Kind: task.PendingApproval, Question: strings.Repeat("q", task.MaxMessage), Args: strings.Repeat("a", task.MaxArgs), AskedAt: "2030-01-01T00:00:00Z"}
	whole.Approvers = &task.Approvers{}
	for i := range 8 {
		whole.Approvers.Groups = append(whole.Approvers.Groups, strings.Repeat(string(rune('a'+i)), 128))
	}
	for name, open := range map[string][]task.Pending{"many requests": asked, "large ones": {whole, whole, whole}} {
		progress := task.Progress{
			Version: task.Version, Attempt: 2, Effects: task.EffectsBegun, State: v1alpha1.ReasonAwaitingApproval, Pending: pendingThatFit(open),
			Decided:     []task.Decided{{Name: "mine.s1c1", Request: "s1c1", Digest: strings.Repeat("d", 64)}},
			Confinement: &task.Confinement{Process: "Enforced", Files: "Enforced", Network: "PortsOnly", LandlockABI: 6},
			Result:      &task.Result{Reason: task.ReasonWaiting, Published: &task.Published{Branch: "deckhand/mine", Commit: strings.Repeat("c", 40)}},
		}
		if len(progress.Pending) == 0 || len(progress.Pending) == len(open) {
			t.Errorf("%s: %d of %d are shown", name, len(progress.Pending), len(open))
		}
		if err := w.Commit(t.Context(), func() task.Progress { return progress }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var got v1alpha1.Run
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), &got); err != nil {
		t.Fatal(err)
	}
	if p := got.Status.Progress; p == nil || p.Confinement == nil || p.Confinement.Network != "PortsOnly" || p.Decided[0].Digest == "" || p.Result == nil || p.Result.Published == nil {
		t.Errorf("progress is %+v", got.Status.Progress)
	}
}

// A runner that was replaced learns it, by its own test or by the policy.
func TestRunnersWriterIsFenced(t *testing.T) {
	s := newFixture(t)
	w, _ := s.writer(t, s.pod)
	if err := w.Commit(t.Context(), func() task.Progress { return task.Progress{Version: task.Version, Attempt: 2} }); err != nil {
		t.Fatalf("its first report: %v", err)
	}
	s.patch(t, s.run, `[{"op":"replace","path":"/status/attempt","value":{"number":3,"pod":"mine-3","podUID":"another","agentRevision":"h","startedAt":"2030-01-01T00:00:00Z"}}]`)
	err := w.Commit(t.Context(), func() task.Progress {
		return task.Progress{Version: task.Version, Attempt: 2, Effects: task.EffectsBegun}
	})
	if end, is := errors.AsType[*task.EndError](err); !is || end.Reason != task.ReasonFenced {
		t.Errorf("it goes on: %v", err)
	}
}

// The answer to a result may be lost. Sent again it is refused, because it is
// there: the runner knows that for what it is.
func TestRunnersWriterKnowsItsOwnResult(t *testing.T) {
	s := newFixture(t)
	w, heard := s.writer(t, s.pod)
	progress := task.Progress{Version: task.Version, Attempt: 2}
	if err := w.Commit(t.Context(), func() task.Progress { return progress }); err != nil {
		t.Fatalf("its first report: %v", err)
	}
	progress.Result = &task.Result{Committed: true, Reason: task.ReasonFinished}
	heard.lose.Store(true)
	if err := w.Commit(t.Context(), func() task.Progress { return progress }); err != nil {
		t.Errorf("its result: %v", err)
	}
	if heard.lose.Load() {
		t.Error("no answer was lost")
	}
}
