package backend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// written is a driver with files of one line.
func written(t *testing.T, names ...string) backend.Driver {
	t.Helper()
	d := state.New(state.Options{Now: noon})
	for _, name := range names {
		if err := d.Write(t.Context(), name, []byte("hit\n"), backend.None); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// A search that takes too long returns what it has.
func TestSearchesStopInTime(t *testing.T) {
	d := written(t, "d/a", "d/b", "d/c", "d/d")
	// A search looks at the clock when it begins and at each entry: it is late at the
	// third file.
	slow := func(timeout time.Duration) *backend.Backend {
		at := noon()
		return backend.New(d, func() time.Time { at = at.Add(timeout / 3); return at })
	}
	matches, err := slow(backend.GrepTimeout).Grep(t.Context(), backend.Query{Pattern: "hit"})
	if err != nil || len(matches.Items) != 2 || !matches.Truncated {
		t.Errorf("Grep: %+v, error %v, want two matches, truncated", matches, err)
	}
	found, err := slow(backend.GlobTimeout).Glob(t.Context(), "*", "", nil)
	if err != nil || len(found.Items) != 2 || !found.Truncated {
		t.Errorf("Glob: %+v, error %v, want two files, truncated", found, err)
	}
}

// A search ends soon after its context, in the middle of a tree.
func TestSearchesStopWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	files := backend.New(written(t, "a", "b", "c"), func() time.Time {
		if seen++; seen == 3 {
			cancel()
		}
		return noon()
	})
	_, err := files.Grep(ctx, backend.Query{Pattern: "hit"})
	if !errors.Is(err, context.Canceled) || seen != 3 {
		t.Errorf("Grep: error %v after %d looks at the clock, want that of the context after 3", err, seen)
	}
}

// A driver whose files or directories fail to be read.
type failing struct {
	backend.Driver
	list, open map[string]error
}

func (d failing) List(ctx context.Context, dir string) ([]backend.Info, error) {
	if err := d.list[dir]; err != nil {
		return nil, err
	}
	return d.Driver.List(ctx, dir)
}

func (d failing) Open(ctx context.Context, path string) (*backend.File, error) {
	if err := d.open[path]; err != nil {
		return nil, err
	}
	return d.Driver.Open(ctx, path)
}

// Below its start a search passes over what is gone or may not be read, but not a
// failure of the driver.
func TestWhatASearchPassesOver(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, tc := range map[string]struct {
		err, want error
	}{
		"gone":               {err: backend.ErrNotFound},
		"no longer a file":   {err: backend.ErrIsDir},
		"replaced by a link": {err: backend.ErrLink},
		"not permitted":      {err: &backend.ReadOnlyError{}},
		"a failure":          {err: broken, want: broken},
		"too many files":     {err: backend.ErrTooLarge, want: backend.ErrTooLarge},
	} {
		d := failing{Driver: written(t, "a", "d/b"), list: map[string]error{"d": tc.err}}
		_, err := backend.New(d, noon).Glob(t.Context(), "*", ".", nil)
		var of *backend.PathError
		if !errors.Is(err, tc.want) || err != nil && (!errors.As(err, &of) || of.Path != "d") {
			t.Errorf("Glob over a directory that is %s: error %v, want %v at its path", name, err, tc.want)
		}
	}
	for err, want := range map[error]error{broken: broken, backend.ErrDenied: nil, backend.ErrTooLarge: nil} {
		d := failing{Driver: written(t, "a", "b"), open: map[string]error{"a": err}}
		found, got := backend.New(d, noon).Grep(t.Context(), backend.Query{Pattern: "hit"})
		if !errors.Is(got, want) || want == nil && (got != nil || len(found.Items) != 1) {
			t.Errorf("Grep over a file that fails with %v: %+v, error %v, want %v", err, found, got, want)
		}
	}
}
