package report

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestTheStartIsWrittenWithWhatIsReportedFirst(t *testing.T) {
	cases := map[string]struct {
		after  time.Duration
		report func(*Writer, task.Progress)
		want   []int64 // the steps of each write
		at     []time.Duration
	}{
		"a result within a second": {
			after:  300 * time.Millisecond,
			report: func(w *Writer, p task.Progress) { _ = w.Commit(context.Background(), just(p)) },
			want:   []int64{1}, at: []time.Duration{0, 300 * time.Millisecond},
		},
		"a step within a second": {
			after:  300 * time.Millisecond,
			report: func(w *Writer, p task.Progress) { w.Report(just(p)) },
			want:   []int64{1}, at: []time.Duration{0, time.Second},
		},
		"nothing within a second": {
			after:  time.Minute,
			report: func(w *Writer, p task.Progress) { _ = w.Commit(context.Background(), just(p)) },
			want:   []int64{0, 1}, at: []time.Duration{0, time.Second, time.Minute},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: []reply{recorded(), ok()}}
				w := open(s, nil)
				defer w.Close()
				if err := w.Begin(t.Context(), just(step(0))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tc.after)
				tc.report(w, step(1))
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, s.steps()); diff != "" || s.checks != 1 {
					t.Errorf("%d checks; steps -want +got:\n%s", s.checks, diff)
				}
				if diff := cmp.Diff(tc.at, s.times()); diff != "" {
					t.Errorf("requests -want +got:\n%s", diff)
				}
			})
		})
	}
}

// A Begin waits as a first Commit does, and writes nothing.
func TestBeginWaitsUntilThePodIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{says(422, `{"details":{}}`), says(403, "cannot patch"), says(401, ""), {err: errors.New("reset")}, recorded(), ok()}}
		w := open(s, nil)
		defer w.Close()
		if err := w.Begin(t.Context(), just(step(0))); err != nil {
			t.Fatal(err)
		}
		if len(s.got) != 0 || s.checks != 5 {
			t.Errorf("%d checks and %d writes, want 5 and 0", s.checks, len(s.got))
		}
	})
}

// After a Begin, what says that another attempt took over is final.
func TestAFenceAfterBeginIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(&server{answers: []reply{recorded(), says(422, `{"details":{}}`)}}, nil)
		defer w.Close()
		if err := w.Begin(t.Context(), just(step(0))); err != nil {
			t.Fatal(err)
		}
		end, is := errors.AsType[*task.EndError](w.Commit(t.Context(), just(step(1))))
		if !is || end.Reason != task.ReasonFenced {
			t.Errorf("Commit: %v, want Fenced", end)
		}
	})
}

// first makes a Writer that of the first attempt.
func first(o *Options) { o.First = true }

func testFailed() reply { return says(422, `{"details":{}}`) }

// steps are those of each report.
func (s *server) steps() []int64 {
	var out []int64
	for _, p := range s.got {
		out = append(out, p.Counts.Steps)
	}
	return out
}

// commitsFirst begins a first attempt, which commits after a while. It returns the server, which
// gave these answers.
func commitsFirst(t *testing.T, answers []reply, after time.Duration) *server {
	t.Helper()
	s := &server{answers: answers}
	w := open(s, nil, first)
	defer w.Close()
	if err := w.Begin(t.Context(), just(step(0))); err != nil || len(s.times()) > 0 || w.Accepted() {
		t.Fatalf("Begin: %v after %d requests; accepted: %t", err, len(s.times()), w.Accepted())
	}
	time.Sleep(after)
	if err := w.Commit(t.Context(), just(step(1))); err != nil || !w.Accepted() {
		t.Fatalf("Commit: %v; accepted: %t", err, w.Accepted())
	}
	return s
}

// The first attempt begins without asking, and writes its start with what it reports first.
func TestTheFirstAttemptBeginsAtOnce(t *testing.T) {
	cases := map[string]struct {
		answers []reply
		after   time.Duration
		want    []int64 // the steps of each write
		at      []time.Duration
	}{
		"a result within a second":       {[]reply{ok()}, 300 * time.Millisecond, []int64{1}, []time.Duration{300 * time.Millisecond}},
		"nothing within a second":        {[]reply{ok()}, time.Minute, []int64{0, 1}, []time.Duration{time.Second, time.Minute}},
		"it was recorded":                {[]reply{testFailed(), ok()}, 300 * time.Millisecond, []int64{1, 1}, []time.Duration{300 * time.Millisecond, 300 * time.Millisecond}},
		"it was recorded after a report": {[]reply{ok(), testFailed(), ok()}, time.Minute, []int64{0, 1, 1}, []time.Duration{time.Second, time.Minute, time.Minute}},
		"it is reserved, then recorded": {
			[]reply{testFailed(), testFailed(), ok()},
			300 * time.Millisecond,
			[]int64{1, 1, 1},
			[]time.Duration{300 * time.Millisecond, 300 * time.Millisecond, 350 * time.Millisecond},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := commitsFirst(t, tc.answers, tc.after)
				if diff := cmp.Diff(tc.want, s.steps()); diff != "" || s.checks > 0 {
					t.Errorf("%d checks; steps -want +got:\n%s", s.checks, diff)
				}
				if diff := cmp.Diff(tc.at, s.times()); diff != "" {
					t.Errorf("requests -want +got:\n%s", diff)
				}
			})
		})
	}
}

// A runner whose first report is not accepted does not go on to ask the model.
func TestTheFirstAttemptWaitsForItsFirstReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := says(403, "cannot patch")
		s := &server{answers: []reply{refused, refused, refused, ok()}}
		w := open(s, nil, first) // its third pause would be 200 ms
		defer w.Close()
		for _, want := range []time.Duration{0, 500 * time.Millisecond} {
			time.Sleep(want)
			if err := w.Begin(t.Context(), just(step(0))); err != nil || len(s.times()) > 0 {
				t.Fatalf("after %s: %v, %d requests", want, err, len(s.times()))
			}
		}
		time.Sleep(700 * time.Millisecond)
		if w.Accepted() {
			t.Fatal("accepted too early")
		}
		if err := w.Begin(t.Context(), just(step(7))); err != nil || !w.Accepted() {
			t.Fatalf("Begin: %v; accepted: %t", err, w.Accepted())
		}
		if diff := cmp.Diff([]time.Duration{time.Second, 1050 * time.Millisecond, 1150 * time.Millisecond, 1200 * time.Millisecond}, s.times()); diff != "" {
			t.Errorf("requests -want +got:\n%s", diff)
		}
		if last := s.got[len(s.got)-1]; last.Counts.Steps != 0 || last.PodUID != "pod" {
			t.Errorf("its report is %+v", last)
		}
	})
}

func TestAReportOfTheFirstAttemptTestsThatThereIsNone(t *testing.T) {
	var bodies []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"details":{}}`)
	}))
	defer api.Close()
	s := &sender{opts: Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Target: Target{
		URL: api.URL, Run: task.Run{Namespace: "team-a", Name: "fix", UID: "run-1"}, PodUID: "uid-1",
		Token: func() (string, error) { return "t", nil }, Client: api.Client(),
	}}}
	if _, err := s.send(t.Context(), task.Progress{Version: 1, Attempt: 1, PodUID: "uid-1"}); err != nil || !s.recorded {
		t.Fatalf("send: %v; recorded: %t", err, s.recorded)
	}
	const add = `{"op":"add","path":"/status/progress","value":{"version":1,"attempt":1,"podUID":"uid-1",`
	want := []string{
		`[{"op":"test","path":"/metadata/uid","value":"run-1"},{"op":"test","path":"/status/attempt","value":null},` + add,
		`[{"op":"test","path":"/status/attempt/podUID","value":"uid-1"},` + add,
	}
	for i, body := range bodies {
		if i >= len(want) || !strings.HasPrefix(body, want[i]) {
			t.Errorf("request %d is %s", i, body)
		}
	}
	if len(bodies) != len(want) {
		t.Errorf("%d requests", len(bodies))
	}
}

func TestTheCheckWritesNothing(t *testing.T) {
	var body []byte
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusConflict)
	}))
	defer api.Close()
	target := Target{
		URL: api.URL, Run: task.Run{Namespace: "team-a", Name: "fix-1"}, PodUID: "uid-1",
		Token: func() (string, error) { return "t", nil }, Client: api.Client(),
	}
	if ans, err := target.check(t.Context(), 2); err != nil || classify(ans.status, ans.body) != accepted {
		t.Fatalf("check: %v %v", ans, err)
	}
	want := `[{"op":"test","path":"/status/attempt/podUID","value":"uid-1"},{"op":"test","path":"/status/attempt/number","value":2},` +
		`{"op":"test","path":"/status/completionTime","value":null},{"op":"replace","path":"/metadata/resourceVersion","value":"1"}]`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("body -want +got:\n%s", diff)
	}
}
