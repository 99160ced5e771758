package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// forms are both, each with the bounds given.
func forms(o Options) map[string]func(t *testing.T) backend.Driver {
	o.Now = noon
	return map[string]func(t *testing.T) backend.Driver{
		"in memory":      func(*testing.T) backend.Driver { return New(o) },
		"in a directory": func(t *testing.T) backend.Driver { return reopen(t, t.TempDir()+"/new", o) },
	}
}

func reopen(t *testing.T, dir string, o Options) backend.Driver {
	t.Helper()
	o.Now = noon
	d, err := Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestConformance(t *testing.T) {
	for name, form := range forms(Options{}) {
		t.Run(name, func(t *testing.T) { backendtest.Run(t, form) })
	}
}

func TestAllFilesTogetherAreBounded(t *testing.T) {
	for name, form := range forms(Options{Bytes: 1000, Files: 3}) {
		t.Run(name, func(t *testing.T) {
			b := backend.New(form(t), noon)
			write := func(path string, size int) error {
				_, err := b.Write(t.Context(), path, []byte(strings.Repeat("x", size)), backend.Any)
				return err
			}
			for _, call := range []struct {
				path string
				size int
				want error
			}{
				{"a", 400, nil},
				{"b", 700, backend.ErrNoSpace},
				{"b", 500, nil},
				{"a", 600, backend.ErrNoSpace},
				{"a", 100, nil},
				{"b", 700, nil}, // what a no longer has, b may have
				{"d/c", 0, nil},
				{"d/d", 0, backend.ErrNoSpace},
			} {
				if err := write(call.path, call.size); !errors.Is(err, call.want) {
					t.Errorf("Write(%q, %d bytes): error %v, want %v", call.path, call.size, err, call.want)
				}
			}
			_, err := b.Edit(t.Context(), "a", backend.Edit{Old: "x", New: "xxxx", All: true})
			if !errors.Is(err, backend.ErrNoSpace) {
				t.Errorf("Edit beyond the bound: error %v, want ErrNoSpace", err)
			}
			page, err := b.Read(t.Context(), "a", backend.Window{Limit: 1})
			if err != nil || page.Lines[0] != strings.Repeat("x", 100) {
				t.Errorf("after a refused Edit: %v, error %v", page.Lines, err)
			}
		})
	}
}

func TestFilesInADirectorySurvive(t *testing.T) {
	dir := t.TempDir()
	bounds := Options{Bytes: 100, Files: 5}
	first := backend.New(reopen(t, dir, bounds), noon)
	if _, err := first.Write(t.Context(), "d/notes", []byte(strings.Repeat("a", 90)), backend.Any); err != nil {
		t.Fatal(err)
	}
	second := backend.New(reopen(t, dir, bounds), noon)
	page, err := second.Read(t.Context(), "d/notes", backend.Window{Limit: 1})
	if err != nil || len(page.Lines) != 1 {
		t.Errorf("after a restart: %v, error %v", page.Lines, err)
	}
	// What is there counts.
	for i, want := range []error{nil, backend.ErrNoSpace} {
		_, err := second.Write(t.Context(), fmt.Sprint(i), []byte("123456"), backend.Any)
		if !errors.Is(err, want) {
			t.Errorf("Write %d after a restart: error %v, want %v", i, err, want)
		}
	}
}
