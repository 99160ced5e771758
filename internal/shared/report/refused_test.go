package report

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// committing is the refusal of whoever writes behind a committed result.
func committing() reply {
	return says(http.StatusForbidden, "fenced: the result of this attempt is committed")
}

func result() task.Progress {
	p := step(2)
	p.Result = &task.Result{Committed: true, Reason: task.ReasonFinished}
	return p
}

func TestATokenThatIsRefusedForAWhileIsNoFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{ok(), says(http.StatusUnauthorized, "")}}
		w := open(s, nil)
		defer w.Close()
		if err := w.Commit(t.Context(), just(step(1))); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(58*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answers = []reply{ok()}
		})
		if err := w.Commit(t.Context(), just(step(2))); err != nil {
			t.Errorf("Commit: %v", err)
		}
	})
}

func TestATokenThatStaysRefusedIsAFenceAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(&server{answers: []reply{ok(), says(http.StatusUnauthorized, "")}}, nil)
		defer w.Close()
		if err := w.Commit(t.Context(), just(step(1))); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		var end *task.EndError
		if err := w.Commit(t.Context(), just(step(2))); !errors.As(err, &end) || end.Reason != task.ReasonFenced {
			t.Errorf("Commit: %v, want Fenced", err)
		}
		if took := time.Since(before); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestAPodThatIsNeverRecordedEndsTheAttempt(t *testing.T) {
	cases := map[string]reply{
		"HTTP 403: fenced: this pod is not the current attempt": says(http.StatusForbidden, "fenced: this pod is not the current attempt"),
		"HTTP 403: may not patch":                               says(http.StatusForbidden, "may not patch"),
		"HTTP 404: not found":                                   says(http.StatusNotFound, "not found"),
		"HTTP 401: ":                                            says(http.StatusUnauthorized, ""),
		`HTTP 422: {"details":{}}`:                              says(http.StatusUnprocessableEntity, `{"details":{}}`),
		"connection refused":                                    {err: errors.New("connection refused")},
	}
	for last, answer := range cases {
		t.Run(last, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told error
				w := open(&server{answers: []reply{answer}}, func(err error) { told = err })
				defer w.Close()
				before := time.Now()
				err := w.Begin(t.Context(), just(step(1)))
				var end *task.EndError
				if !errors.As(err, &end) || end.Reason != task.ReasonRunnerFailed || !strings.Contains(end.Message, last) {
					t.Errorf("Begin: %v, want RunnerFailed that names %q", err, last)
				}
				if took := time.Since(before); took < maxFirst || took > maxFirst+longPause {
					t.Errorf("took %s", took)
				}
				synctest.Wait()
				if told == nil {
					t.Error("the attempt is not ended")
				}
			})
		})
	}
}

func TestRefusedReportsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := says(http.StatusForbidden, "may not patch")
		var log bytes.Buffer
		w := open(&server{answers: []reply{forbidden, forbidden, says(http.StatusServiceUnavailable, "later"), forbidden, ok(), forbidden, ok()}}, nil, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		defer w.Close()
		for i := range 2 {
			if err := w.Commit(t.Context(), just(step(int64(i)))); err != nil {
				t.Fatal(err)
			}
		}
		var statuses []string
		for line := range strings.Lines(log.String()) {
			_, rest, _ := strings.Cut(line, "status=")
			status, _, _ := strings.Cut(rest, " ")
			statuses = append(statuses, status)
		}
		if want := []string{"403", "503", "403", "403"}; !slices.Equal(statuses, want) || !strings.Contains(log.String(), "may not patch") {
			t.Errorf("logged %v, want %v:\n%s", statuses, want, log.String())
		}
	})
}

func TestALostAnswerToTheResultIsNoFence(t *testing.T) {
	cases := map[string]struct {
		answers []reply
		fenced  bool
	}{
		"a gateway that gave up":              {[]reply{ok(), says(http.StatusGatewayTimeout, ""), committing()}, false},
		"a connection that broke":             {[]reply{ok(), {err: errors.New("reset")}, committing()}, false},
		"a result that was never sent by us":  {[]reply{ok(), committing()}, true},
		"a refusal that is about another pod": {[]reply{ok(), says(http.StatusGatewayTimeout, ""), says(http.StatusForbidden, "fenced: not the current attempt")}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(&server{answers: tc.answers}, nil)
				defer w.Close()
				if err := w.Commit(t.Context(), just(step(1))); err != nil {
					t.Fatal(err)
				}
				if err := w.Commit(t.Context(), just(result())); (err != nil) != tc.fenced {
					t.Errorf("Commit: %v, want an error: %t", err, tc.fenced)
				}
			})
		})
	}
}

func TestWhatWasLeftOutOnceIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []reply{says(http.StatusRequestEntityTooLarge, ""), ok()}}
		w := open(s, nil)
		defer w.Close()
		for n := range int64(2) {
			p := step(n)
			p.Recent = []task.Recent{{ID: "s2"}}
			if err := w.Commit(t.Context(), just(p)); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.got) != 3 || len(s.got[1].Recent) != 0 || len(s.got[2].Recent) != 1 {
			t.Errorf("sent %+v", s.got)
		}
	})
}

// Two reports at once: the one that is taken over later was asked for later.
func TestAReportIsAskedForWhenItIsTakenOver(t *testing.T) {
	s := &server{answers: []reply{ok()}}
	w := open(s, nil)
	defer w.Close()
	held := false
	w.Report(func() task.Progress {
		if held = !w.mu.TryLock(); !held {
			w.mu.Unlock()
		}
		return step(1)
	})
	if !held {
		t.Error("the Writer asks without its lock")
	}
}
