package policy_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/report"
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

// The runner begins only when the operator has recorded its pod, as the attempt that the runner
// has as its task. To ask writes nothing.
func TestRunnersWriterWaitsToBeRecorded(t *testing.T) {
	cases := map[string]struct{ otherwise, recorded string }{
		"its pod is not recorded": {`{"op":"remove","path":"/status/attempt/podUID"}`, `{"op":"add","path":"/status/attempt/podUID","value":"POD"}`},
		"another attempt has it":  {`{"op":"replace","path":"/status/attempt/number","value":3}`, `{"op":"replace","path":"/status/attempt/number","value":2}`},
		"another pod is recorded": {`{"op":"replace","path":"/status/attempt/podUID","value":"another"}`, `{"op":"replace","path":"/status/attempt/podUID","value":"POD"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.patch(t, s.run, "["+tc.otherwise+"]")
			w, heard := s.writer(t, s.pod)
			accepted := begin(t, w)
			awaitRefusals(t, accepted, heard)
			var before, after v1alpha1.Run
			s.patch(t, s.run, "["+strings.ReplaceAll(tc.recorded, "POD", string(s.pod.UID))+"]")
			s.get(t, &before)
			if err := <-accepted; err != nil {
				t.Fatalf("it is not accepted: %v", err)
			}
			if s.get(t, &after); after.ResourceVersion != before.ResourceVersion || after.Status.Progress != nil {
				t.Errorf("the Run was written: progress is %+v", after.Status.Progress)
			}
			if err := w.Commit(t.Context(), ofAttempt2); err != nil {
				t.Fatalf("the first report: %v", err)
			}
			if s.get(t, &after); after.Status.Progress == nil || after.Status.Progress.Attempt != 2 {
				t.Errorf("progress is %+v", after.Status.Progress)
			}
		})
	}
}

// A runner does not begin when its Run has ended meanwhile.
func TestRunnersWriterDoesNotBeginAfterTheEnd(t *testing.T) {
	s := newFixture(t)
	s.patch(t, s.run, `[{"op":"add","path":"/status/completionTime","value":"2030-01-01T00:00:00Z"}]`)
	w, heard := s.writer(t, s.pod)
	awaitRefusals(t, begin(t, w), heard)
}

func ofAttempt2() task.Progress { return task.Progress{Version: task.Version, Attempt: 2} }

// begin asks in the background whether the pod is recorded.
func begin(t *testing.T, w *report.Writer) <-chan error {
	t.Helper()
	accepted := make(chan error, 1)
	go func() { accepted <- w.Begin(t.Context(), ofAttempt2) }()
	return accepted
}

// awaitRefusals fails the test unless a failed test of the patch is the answer three times.
func awaitRefusals(t *testing.T, accepted <-chan error, heard listener) {
	t.Helper()
	for range 3 {
		select {
		case err := <-accepted:
			t.Fatalf("it was accepted too early: %v", err)
		case status := <-heard.answers:
			if status != http.StatusUnprocessableEntity {
				t.Fatalf("a try was answered %d", status)
			}
		}
	}
}

func (s *fixture) get(t *testing.T, run *v1alpha1.Run) {
	t.Helper()
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), run); err != nil {
		t.Fatal(err)
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
			Question: strings.Repeat("ä", 50*(1+i%10)), Tool: "Shell", Args: strings.Repeat("ä", 50*(10-i%10)), ArgsTruncated: true,
			Digest: strings.Repeat("d", 64), DisplayDigest: strings.Repeat("d", 64), Rule: strings.Repeat("r", task.MaxRule), Approvers: &task.Approvers{Groups: []string{"leads", "owners"}},
			AskedAt: "2030-01-01T00:00:00Z", ExpiresAt: "2030-01-01T00:00:00Z",
		})
	}
	whole := task.Pending{ID: "s1c1", Kind: task.PendingApproval, Question: strings.Repeat("q", task.MaxMessage), Args: strings.Repeat("a", task.MaxArgs), DisplayDigest: strings.Repeat("d", 64), AskedAt: "2030-01-01T00:00:00Z"}
	whole.Approvers = &task.Approvers{}
	named := whole
	named.Approvers = &task.Approvers{}
	for i := range 8 {
		name := strings.Repeat(string(rune('a'+i)), 128)
		whole.Approvers.Groups, named.Approvers.Users = append(whole.Approvers.Groups, name), append(named.Approvers.Users, name)
	}
	for name, open := range map[string][]task.Pending{"many requests": asked, "large ones": {whole, whole, whole}, "large ones with users": {named, named, named}} {
		progress := task.Progress{
			Version: task.Version, Attempt: 2, Effects: task.EffectsBegun, State: v1alpha1.ReasonAwaitingApproval, Pending: pendingThatFit(open),
			Decided:     []task.Decided{{Name: "mine.s1c1", Request: "s1c1", Digest: strings.Repeat("d", 64)}},
			Confinement: &task.Confinement{Process: "Enforced", Files: "Enforced", Network: "PortsOnly", LandlockABI: 6},
			Refused:     refusedAtMost(),
			Step:        &task.Current{ID: longestID, Kind: task.KindTool, Name: strings.Repeat("n", 64), StartedAt: "2030-01-01T00:00:00Z"},
			Recent:      slices.Repeat([]task.Recent{{ID: longestID, Kind: task.KindTool, Name: strings.Repeat("n", 64), Summary: strings.Repeat("s", task.MaxRecentText)}}, task.MaxRecent),
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
	if p := got.Status.Progress; p == nil || p.Confinement == nil || p.Confinement.Network != "PortsOnly" || len(p.Refused.Hosts) != task.MaxHosts || len(p.Refused.Tools) != task.MaxDeniedTools || p.Decided[0].Digest == "" || p.Result == nil || p.Result.Published == nil {
		t.Errorf("progress is %+v", got.Status.Progress)
	}
}

// longestID has the most bytes that an id of a step has in a status.
var longestID = strings.Repeat("s123c45.", 3) + "s12345c9"

// refusedAtMost is as much as a runner reports of refused connections.
func refusedAtMost() *task.Refused {
	r := &task.Refused{Connections: 1 << 50, ToolCalls: 1 << 50}
	for range task.MaxDeniedTools {
		r.Tools = append(r.Tools, task.DeniedTool{Name: strings.Repeat("t", task.MaxTool), By: task.DeniedByApprover, Count: 1 << 50, FirstID: longestID})
	}
	for range task.MaxHosts {
		r.Hosts = append(r.Hosts, task.RefusedHost{Host: strings.Repeat("h", task.MaxHost), Port: 65535, Reason: task.RefusedNotPublic, Count: 1 << 50, FirstID: longestID})
	}
	return r
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
