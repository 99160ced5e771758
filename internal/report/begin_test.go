package report

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
				var steps []int64
				for _, p := range s.got {
					steps = append(steps, p.Counts.Steps)
				}
				if diff := cmp.Diff(tc.want, steps); diff != "" || s.checks != 1 {
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
