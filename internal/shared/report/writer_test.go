package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A server is an API server in memory: it gives its answers one by one, the
// last for ever, and keeps what it was sent and when.
type server struct {
	mu      sync.Mutex
	answers []reply
	got     []task.Progress
	checks  int
	at      []time.Duration
	began   time.Time
}

type reply struct {
	status int
	body   string
	header http.Header
	err    error
	hang   bool
}

func recorded() reply                    { return reply{status: http.StatusConflict} }
func ok() reply                          { return reply{status: 200, body: "{}"} }
func says(status int, body string) reply { return reply{status: status, body: body} }

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var ops []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	var p task.Progress
	if err := json.Unmarshal(body, &ops); err != nil {
		return nil, err
	}
	last := ops[len(ops)-1]
	isCheck := last.Path == "/metadata/resourceVersion"
	if !isCheck {
		if err := json.Unmarshal(last.Value, &p); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	if isCheck {
		s.checks++
	} else {
		s.got = append(s.got, p)
	}
	s.at = append(s.at, time.Since(s.began))
	r := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	s.mu.Unlock()
	if r.hang {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(strings.NewReader(r.body)), Request: req}, nil
}

// writes is how many were sent; times is when.
func (s *server) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.at...)
}

// open starts a Writer against a server, with no jitter.
func open(s *server, ended func(error), change ...func(*Options)) *Writer {
	s.began = time.Now()
	o := Options{
		Target: Target{
			URL: "http://api", Run: task.Run{Namespace: "ns", Name: "r"}, PodUID: "pod",
			Token: func() (string, error) { return "t", nil }, Client: &http.Client{Transport: s},
		},
		Now:    time.Now,
		Jitter: func(d time.Duration) time.Duration { return d },
		Ended:  ended, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	return New(o)
}

func step(n int64) task.Progress {
	return task.Progress{Version: 1, Attempt: 1, Counts: task.Counts{Steps: n}}
}

// just is progress that stands still.
func just(p task.Progress) func() task.Progress { return func() task.Progress { return p } }

func TestCommitIsTriedUntilItIsAccepted(t *testing.T) {
	failed := says(422, `{"kind":"Status","message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{},"code":422}`)
	cases := map[string]struct {
		answers []reply
		want    []time.Duration
	}{
		"at once":                                {[]reply{ok()}, []time.Duration{0}},
		"when the operator has recorded the pod": {[]reply{failed, failed, ok()}, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond}},
		"when the policy lets it through":        {[]reply{says(403, "fenced: not the current attempt"), ok()}, []time.Duration{0, 50 * time.Millisecond}},
		"when the right to write is there":       {[]reply{says(403, "cannot patch"), ok()}, []time.Duration{0, 50 * time.Millisecond}},
		"when the token is known":                {[]reply{says(401, ""), ok()}, []time.Duration{0, 50 * time.Millisecond}},
		"after a conflict":                       {[]reply{says(409, ""), ok()}, []time.Duration{0, 50 * time.Millisecond}},
		"after a connection that broke":          {[]reply{{err: errors.New("reset")}, ok()}, []time.Duration{0, 50 * time.Millisecond}},
		"after a server that does not answer":    {[]reply{{hang: true}, ok()}, []time.Duration{0, requestTimeout + 50*time.Millisecond}},
		"after as long as the server asks": {
			[]reply{{status: 429, header: http.Header{"Retry-After": {"3"}}}, ok()},
			[]time.Duration{0, 3 * time.Second},
		},
		"but not for as long as it likes": {
			[]reply{{status: 503, header: http.Header{"Retry-After": {"3600"}}}, ok()},
			[]time.Duration{0, maxRetryAfter},
		},
		"with pauses of no more than a second": {
			[]reply{says(500, ""), says(500, ""), says(500, ""), says(500, ""), says(500, ""), says(500, ""), says(500, ""), ok()},
			[]time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond, 750 * time.Millisecond, 1550 * time.Millisecond, 2550 * time.Millisecond, 3550 * time.Millisecond},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: tc.answers}
				w := open(s, nil)
				defer w.Close()
				if err := w.Commit(t.Context(), just(step(1))); err != nil {
					t.Errorf("Commit: %v", err)
				}
				if diff := cmp.Diff(tc.want, s.times()); diff != "" {
					t.Errorf("writes -want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestAnotherAttemptTakesOver(t *testing.T) {
	cases := map[string]struct {
		answers []reply
		want    string
	}{
		"the policy says so": {
			[]reply{ok(), says(403, `{"kind":"Status","message":"runs.deckhand.dev \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: fenced: the Run is finished"}`)},
			"The API server takes no more reports of this pod: the Run is finished",
		},
		"the test fails":            {[]reply{ok(), says(422, `{"kind":"Status","reason":"Invalid","details":{},"code":422}`)}, "Another attempt has taken over"},
		"the Run is gone":           {[]reply{ok(), says(404, `{"kind":"Status","reason":"NotFound","code":404}`)}, "The Run was deleted (HTTP 404)"},
		"the token stays refused":   {[]reply{ok(), says(401, `{"kind":"Status","message":"Unauthorized","code":401}`)}, "The API server has not accepted the token of this pod for 1m0s (HTTP 401): the pod or its ServiceAccount was deleted, or the token is not renewed"},
		"after answers of all kind": {[]reply{ok(), says(500, ""), says(409, ""), says(403, "fenced: x")}, "The API server takes no more reports of this pod: x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endsFenced(t, tc.answers, tc.want) })
		})
	}
}

// endsFenced asserts that every Commit after the first fails, and with which message.
func endsFenced(t *testing.T, answers []reply, want string) {
	t.Helper()
	var told error
	w := open(&server{answers: answers}, func(err error) { told = err })
	defer w.Close()
	if err := w.Commit(t.Context(), just(step(1))); err != nil {
		t.Fatalf("the first Commit: %v", err)
	}
	second, third := w.Commit(t.Context(), just(step(2))), w.Commit(t.Context(), just(step(3)))
	synctest.Wait()
	for what, err := range map[string]error{"the second Commit": second, "the third Commit": third, "told": told} {
		end, is := errors.AsType[*task.EndError](err)
		if !is || end.Reason != task.ReasonFenced || end.Message != want {
			t.Errorf("%s: %v, want Fenced: %s", what, err, want)
		}
	}
}

func TestCadence(t *testing.T) {
	cases := map[string]struct {
		report func(w *Writer)
		want   []time.Duration
	}{
		"nothing is written when nothing changes": {
			report: func(w *Writer) {
				p := step(1)
				for range 100 {
					p.Usage.DurationSeconds++
					w.Report(just(p))
					time.Sleep(time.Second)
				}
			},
			want: []time.Duration{0},
		},
		"a young Run is told every second, an older one every ten": {
			report: func(w *Writer) {
				for n := range int64(300) {
					w.Report(just(step(n + 2)))
					time.Sleep(100 * time.Millisecond)
				}
			},
			want: []time.Duration{
				0, 1 * time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second,
				6 * time.Second, 7 * time.Second, 8 * time.Second, 9 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: []reply{ok()}}
				w := open(s, nil)
				defer w.Close()
				if err := w.Commit(t.Context(), just(step(1))); err != nil {
					t.Fatal(err)
				}
				tc.report(w)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, s.times()); diff != "" {
					t.Errorf("writes -want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestAnOutageIsMetByTheLatestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{ok()}}
		w := open(s, nil)
		defer w.Close()
		if err := w.Commit(t.Context(), just(step(1))); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.answers = []reply{says(503, "")}
		s.mu.Unlock()
		for n := range int64(300) {
			w.Report(just(step(n + 2)))
			time.Sleep(time.Second)
		}
		if got := len(s.times()); got > 45 {
			t.Errorf("%d tries in five minutes", got)
		}
		s.mu.Lock()
		s.answers = []reply{ok()}
		s.mu.Unlock()
		before := time.Now()
		if err := w.Commit(t.Context(), just(step(999))); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took > 2*time.Second {
			t.Errorf("the end waited %s behind a pause that nobody waited for", took)
		}
		if last := s.got[len(s.got)-1]; last.Counts.Steps != 999 {
			t.Errorf("the last write has %d steps", last.Counts.Steps)
		}
	})
}

func TestASequenceNeverFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{ok()}}
		var back atomic.Int64 // how far the clock was set back
		w := open(s, nil, func(o *Options) {
			o.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
		})
		defer w.Close()
		for n := range int64(5) {
			if err := w.Commit(t.Context(), just(step(n))); err != nil {
				t.Fatal(err)
			}
			if n == 2 {
				back.Store(int64(time.Hour))
			}
		}
		for i := 1; i < len(s.got); i++ {
			if s.got[i].Sequence <= s.got[i-1].Sequence {
				t.Errorf("write %d has sequence %d after %d", i, s.got[i].Sequence, s.got[i-1].Sequence)
			}
		}
	})
}

func TestAReportThatTheSchemaRefusesBecomesSmaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{says(422, `{"kind":"Status","reason":"Invalid","details":{"causes":[{"field":"status.progress.recent[0].summary"}]},"code":422}`), ok()}}
		w := open(s, nil)
		defer w.Close()
		p := step(1)
		p.Recent = []task.Recent{{ID: "s2"}}
		if err := w.Commit(t.Context(), just(p)); err != nil {
			t.Fatal(err)
		}
		if len(s.got) != 2 || len(s.got[1].Recent) != 0 || s.got[1].Counts.Steps != 1 {
			t.Errorf("sent %+v", s.got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := open(&server{answers: []reply{says(422, `{"kind":"Status","reason":"Invalid","details":{"causes":[{"field":"status.progress"}]},"code":422}`)}}, nil)
		defer w.Close()
		var end *task.EndError
		if err := w.Commit(t.Context(), just(step(1))); !errors.As(err, &end) || end.Reason != task.ReasonRunnerFailed {
			t.Errorf("a server that takes nothing: %v", err)
		}
	})
}

// An older schema, which a cluster has again after a rollback, knows the wait by its older name.
func TestAStateThatAnOlderSchemaRefusesIsReportedByItsOlderName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{says(422, `{"kind":"Status","reason":"Invalid","details":{"causes":[{"field":"status.progress.state"}]},"code":422}`), ok()}}
		w := open(s, nil)
		defer w.Close()
		p := step(1)
		p.State = "WaitingForModel"
		if err := w.Commit(t.Context(), just(p)); err != nil {
			t.Fatal(err)
		}
		if len(s.got) != 2 || s.got[1].State != "RateLimited" {
			t.Errorf("sent %+v", s.got)
		}
	})
}

func TestCommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(&server{answers: []reply{says(500, "")}}, nil)
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := w.Commit(ctx, just(step(1))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Commit: %v", err)
		}
	})
}

func TestTheRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		fmt.Fprint(w, "{}")
	}))
	defer api.Close()
	token := "first"
	target := Target{
		URL: api.URL, Run: task.Run{Namespace: "team-a", Name: "fix-1"}, PodUID: "uid-1",
		Token: func() (string, error) { return token, nil }, Client: api.Client(),
	}
	for _, token = range []string{"first", "second"} {
		if ans, err := target.patch(t.Context(), step(1)); err != nil || classify(ans.status, ans.body) != accepted {
			t.Fatalf("patch: %v %v", ans, err)
		}
		if got.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("Authorization %q, want the token of the day", got.Header.Get("Authorization"))
		}
	}
	if got.Method != http.MethodPatch || got.URL.Path != "/apis/deckhand.dev/v1alpha1/namespaces/team-a/runs/fix-1/status" {
		t.Errorf("%s %s", got.Method, got.URL.Path)
	}
	if ct := got.Header.Get("Content-Type"); ct != "application/json-patch+json" {
		t.Errorf("Content-Type %q", ct)
	}
	want := `[{"op":"test","path":"/status/attempt/podUID","value":"uid-1"},{"op":"add","path":"/status/progress","value":{"version":1,"attempt":1,"sequence":0,` +
		`"counts":{"steps":1,"modelCalls":0,"toolCalls":0,"errors":0},"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"durationSeconds":0}}}]`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("body -want +got:\n%s", diff)
	}
}
