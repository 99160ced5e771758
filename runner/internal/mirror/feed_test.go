package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/mirror"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/step"
)

var errDown = errors.New("the store is down")

// A shaky store is down at times, or answers late.
type shaky struct {
	session.Store
	mu      sync.Mutex
	down    bool
	hangs   bool
	appends int
}

func (s *shaky) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *shaky) Append(ctx context.Context, row session.Row, after int64, steps ...step.Step) error {
	s.mu.Lock()
	s.appends++
	down := s.down
	s.mu.Unlock()
	switch {
	case s.hangs:
		<-ctx.Done()
		return ctx.Err()
	case down:
		return errDown
	}
	return s.Store.Append(ctx, row, after, steps...)
}

// textSteps are steps from a number on, each with a text.
func textSteps(from int64, texts ...string) []step.Step {
	all := make([]step.Step, len(texts))
	for i, text := range texts {
		all[i] = step.Step{Seq: from + int64(i), Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
	}
	return all
}

// source has steps as a journal has them; of none it is none.
func source(steps []step.Step) func(string, int64) iter.Seq2[step.Step, error] {
	if steps == nil {
		return nil
	}
	return func(_ string, from int64) iter.Seq2[step.Step, error] {
		return func(yield func(step.Step, error) bool) {
			for _, s := range steps {
				if s.Seq >= from && !yield(s, nil) {
					return
				}
			}
		}
	}
}

var run = session.Row{ID: "run", App: "default", Agent: "scout", Status: "Running"}

// storedText is what a store has, session by session.
func storedText(t *testing.T, s session.Store) map[string]string {
	t.Helper()
	page, err := s.List(t.Context(), session.Query{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range page.Rows {
		words := []string{r.Agent + " " + r.Status + ":"}
		for one, err := range s.Read(t.Context(), r.ID, 1) {
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, one.Text())
		}
		id := r.ID
		if r.Origin.Session != "" {
			id = fmt.Sprintf("fork of %s through %d", r.Origin.Session, r.Origin.Through)
		}
		all[id] = strings.Join(words, " ")
	}
	return all
}

func TestFeed(t *testing.T) {
	all := textSteps(1, "a", "b", "c", "d", "e")
	cases := map[string]struct {
		before []step.Step // what the store has of the session
		add    []step.Step
		source []step.Step
		want   map[string]string
		stored int64
	}{
		"what is added": {
			add:  all,
			want: map[string]string{"run": "scout Done: a b c d e"}, stored: 5,
		},
		"what did not reach the store before a crash": {
			before: all[:1], add: all[3:], source: all,
			want: map[string]string{"run": "scout Done: a b c d e"}, stored: 4,
		},
		"what the store has lost altogether": {
			add: all[3:], source: all,
			want: map[string]string{"run": "scout Done: a b c d e"}, stored: 5,
		},
		"what the store has already": {
			before: all[:4], add: all[2:],
			want: map[string]string{"run": "scout Done: a b c d e"}, stored: 1,
		},
		"all of it again": {
			before: all, add: all,
			want: map[string]string{"run": "scout Done: a b c d e"},
		},
		"what a replaced attempt wrote is kept beside it": {
			before: textSteps(1, "a", "b", "x", "y"), add: all,
			want: map[string]string{"run": "scout Before: a b x y", "fork of run through 2": "scout Done: a b c d e"}, stored: 3,
		},
		"what a replaced attempt wrote beyond the end": {
			before: textSteps(1, "a", "b", "x"), add: all[:2],
			want: map[string]string{"run": "scout Before: a b x", "fork of run through 2": "scout Done: a b"},
		},
	}
	closes := map[string]func(){
		"closed at once":              func() {},
		"closed after all was copied": synctest.Wait,
	}
	for name, tc := range cases {
		for when, wait := range closes {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := memory.New(memory.Options{})
					before(t, store, tc.before)
					f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run, Source: source(tc.source)})
					f.Add("", tc.add...)
					wait()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					got := f.Close(ctx, "Done")
					if got.Stored != tc.stored || got.Missing != 0 || got.Err != nil {
						t.Errorf("Close() = %+v, want %d stored", got, tc.stored)
					}
					if diff := cmp.Diff(tc.want, storedText(t, store)); diff != "" {
						t.Errorf("the store -want +got:\n%s", diff)
					}
				})
			})
		}
	}
}

// before has an earlier attempt write steps.
func before(t *testing.T, s session.Store, steps []step.Step) {
	t.Helper()
	row := run
	row.Status = "Before"
	if steps == nil {
		return
	}
	if err := s.Append(t.Context(), row, 0, steps...); err != nil {
		t.Fatal(err)
	}
}

func TestSessionsBelowARunAreCopiedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run})
		child := textSteps(1, "x", "y")
		child[0].Scope.Agent = "helper"
		f.Add("", textSteps(1, "a")...)
		f.Add("s1c1", child...)
		f.Add("", textSteps(2, "b")...)
		synctest.Wait()
		want := map[string]string{"run": "scout Running: a b", "run/s1c1": "helper : x y"}
		if diff := cmp.Diff(want, storedText(t, store)); diff != "" {
			t.Errorf("before the end -want +got:\n%s", diff)
		}
		f.Close(t.Context(), "Failed")
		want["run"] = "scout Failed: a b"
		if diff := cmp.Diff(want, storedText(t, store)); diff != "" {
			t.Errorf("after the end -want +got:\n%s", diff)
		}
	})
}

// A store that is down for a while costs nothing but the wait, and is told all
// once it is back, more than waits in memory included.
func TestAStoreThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shaky{Store: memory.New(memory.Options{}), down: true}
		var all []step.Step
		for i := range int64(100) {
			all = append(all, textSteps(i+1, strings.Repeat("x", 1000))...)
		}
		f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run, Source: source(all), Waiting: 10_000})
		for _, s := range all {
			f.Add("", s)
		}
		time.Sleep(time.Minute)
		store.set(false)
		time.Sleep(time.Minute)
		if got := f.Close(t.Context(), "Done"); got.Missing != 0 || got.Stored != 100 || got.Err != nil || got.Failures < 3 || got.Failures > 10 {
			t.Errorf("when it is back: %+v", got)
		}
		page, err := store.List(t.Context(), session.Query{})
		if err != nil || len(page.Rows) != 1 || page.Rows[0].Last != 100 || page.Rows[0].Status != "Done" {
			t.Errorf("rows %+v, error %v", page.Rows, err)
		}
	})
}

func TestWithoutASourceWhatDoesNotFitIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shaky{Store: memory.New(memory.Options{}), down: true}
		f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run, Waiting: 1500})
		f.Add("", textSteps(1, "a", "b", "c", "d")...)
		store.set(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := f.Close(ctx, "Done")
		if got.Missing != 4 || got.Err == nil || !strings.Contains(got.Err.Error(), "step 1 is no longer there") {
			t.Errorf("Close() = %+v", got)
		}
	})
}

// A forgetful store makes a fork and does not answer, the first time.
type forgetful struct {
	session.Store
	forks int
}

func (s *forgetful) Fork(ctx context.Context, id string, upTo int64, row session.Row) error {
	err := s.Store.Fork(ctx, id, upTo, row)
	if s.forks++; s.forks == 1 && err == nil {
		return errDown
	}
	return err
}

func TestAForkWhoseAnswerIsLostIsNotMadeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &forgetful{Store: memory.New(memory.Options{})}
		before(t, store, textSteps(1, "a", "b", "x"))
		f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run})
		f.Add("", textSteps(1, "a", "b", "c")...)
		time.Sleep(time.Minute)
		if got := f.Close(t.Context(), "Done"); got.Missing != 0 || got.Err != nil {
			t.Errorf("Close() = %+v", got)
		}
		want := map[string]string{"run": "scout Before: a b x", "fork of run through 2": "scout Done: a b c"}
		if diff := cmp.Diff(want, storedText(t, store)); diff != "" || store.forks != 2 {
			t.Errorf("%d forks; the store -want +got:\n%s", store.forks, diff)
		}
		page, err := store.List(t.Context(), session.Query{})
		if err != nil || len(page.Rows) != 2 || !mirror.IsOfRun(page.Rows[0].ID, "run") || mirror.IsOfRun("run2", "run") {
			t.Errorf("rows %+v, error %v", page.Rows, err)
		}
	})
}

// Closing waits no longer than it may, whatever the store does.
func TestCloseIsBounded(t *testing.T) {
	for name, store := range map[string]*shaky{"down": {down: true}, "hanging": {hangs: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run})
				f.Add("", textSteps(1, "a")...)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				got := f.Close(ctx, "Done")
				if took := time.Since(began); took != 5*time.Second || got.Missing != 1 {
					t.Errorf("Close took %v and says %+v", took, got)
				}
				if again := f.Close(t.Context(), "Done"); again.Missing != 1 {
					t.Errorf("Close again says %+v", again)
				}
			})
		})
	}
}

// A store that is down at the end but not for long is told all.
func TestCloseTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shaky{Store: memory.New(memory.Options{}), down: true}
		f := mirror.NewFeed(mirror.FeedOptions{Store: store, Row: run})
		f.Add("", textSteps(1, "a")...)
		time.AfterFunc(3*time.Second, func() { store.set(false) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if got := f.Close(ctx, "Done"); got.Missing != 0 || got.Err != nil {
			t.Errorf("Close() = %+v", got)
		}
		if diff := cmp.Diff(map[string]string{"run": "scout Done: a"}, storedText(t, store)); diff != "" {
			t.Errorf("the store -want +got:\n%s", diff)
		}
	})
}

// Whoever adds never waits: not for a store that hangs, nor for one that many
// speak to.
func TestAddNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := mirror.NewFeed(mirror.FeedOptions{Store: &shaky{hangs: true}, Row: run})
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				for n := range int64(200) {
					f.Add(fmt.Sprint("s", i), textSteps(n+1, "x")...)
				}
			})
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("adding took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := f.Close(ctx, "Done"); got.Missing != 2000 {
			t.Errorf("Close() = %+v", got)
		}
	})
}
