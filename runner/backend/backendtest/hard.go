package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// testNames checks that unusual but valid names are accepted, and that names which no backend can have are refused.
func testNames(t *testing.T, b *backend.Backend) {
	for _, name := range []string{
		"foo..bar", "...", "..x", "x..", "a/..b/c..", "f~", "a/~b", "-rf", "a b", " ", "*", "[a]", "{a,b}", "☃", "a:b", "c:/x",
		strings.Repeat("n", 255), strings.Repeat("é", 127), "a\\b", "%2e%2e", "con", ".hidden",
	} {
		put(t, b, name, name)
		page, err := b.Read(t.Context(), name, backend.Window{Limit: 1})
		if err != nil || strings.Join(page.Lines, "") != name {
			t.Errorf("the file %q has %q, error %v", name, page.Lines, err)
		}
	}
	for _, name := range []string{strings.Repeat("n", 256), "d/" + strings.Repeat("é", 128) + "/f", strings.Repeat("d/", 2500) + "f"} {
		for op, call := range operations(b, name) {
			wantError(t, op+" of a long name", call(t.Context()), backend.ErrBadName)
		}
	}
	for _, same := range []string{"./foo..bar", "foo..bar/", ".//foo..bar", "foo..bar/."} {
		page, err := b.Read(t.Context(), same, backend.Window{Limit: 1})
		if err != nil || len(page.Lines) != 1 {
			t.Errorf("Read of %q: %q, error %v", same, page.Lines, err)
		}
	}
}

// testWindows checks that a page is within the requested window, for any window, and reports its position.
func testWindows(t *testing.T, b *backend.Backend) {
	const total = 25
	var content strings.Builder
	for i := range total {
		fmt.Fprintf(&content, "line %d\n", i+1)
	}
	put(t, b, "f", content.String())
	edges := []int{-1 << 62, -1, 0, 1, 2, 10, 24, 25, 26, 1 << 62}
	for _, offset := range edges {
		for _, limit := range edges {
			w := backend.Window{Offset: offset, Limit: limit}
			page, err := b.Read(t.Context(), "f", w)
			if err != nil || page.Total != total {
				t.Fatalf("Read %+v: %d lines in all, error %v", w, page.Total, err)
			}
			w = w.Clamp()
			want := max(0, min(w.Limit, total-w.Offset))
			if len(page.Lines) != want || want > 0 && (page.Start != w.Offset+1 || page.Lines[0] != fmt.Sprint("line ", page.Start)) {
				t.Errorf("Read %+v: %d lines from %d, want %d", w, len(page.Lines), page.Start, want)
			}
		}
	}
	put(t, b, "long", strings.Repeat("\n", backend.MaxLines+5))
	page, err := b.Read(t.Context(), "long", backend.Window{Limit: 1 << 30})
	if err != nil || len(page.Lines) != backend.MaxLines || page.Total != backend.MaxLines+5 {
		t.Errorf("Read of many lines: %d of %d, error %v", len(page.Lines), page.Total, err)
	}
}

// testLarge checks that the size of an edit's result is bounded before it is built.
func testLarge(t *testing.T, b *backend.Backend) {
	const many = 200_000
	before := put(t, b, "f", strings.Repeat("a", many))
	var large *backend.TooLargeError
	_, err := b.Edit(t.Context(), "f", backend.Edit{Old: "a", New: strings.Repeat("b", 1<<20), All: true})
	if !errors.As(err, &large) || !errors.Is(err, backend.ErrTooLarge) || large.Size < many<<20-many {
		t.Errorf("Edit that makes 200 GB: error %v, want a TooLargeError", err)
	}
	got, err := b.Edit(t.Context(), "f", backend.Edit{Old: "a", New: "b", All: true, When: before})
	if err != nil || got.Replaced != many {
		t.Errorf("Edit after an edit that was too large: %+v, error %v", got, err)
	}
	var several *backend.NotUniqueError
	_, err = b.Edit(t.Context(), "f", backend.Edit{Old: "b", New: "c"})
	if !errors.As(err, &several) || several.Count != many || len(several.Lines) != backend.MaxNotUniqueLines {
		t.Errorf("Edit of a text that is everywhere: error %v", err)
	}
}

// testBytes checks that invalid UTF-8 is preserved, and that only reading it as text fails.
func testBytes(t *testing.T, b *backend.Backend) {
	for name, content := range map[string]string{
		"no UTF-8": "caf\xe9\xff\n", "binary": "\x00\x01\x02", "binary, late": strings.Repeat("a", 9000) + "\x00",
	} {
		one, two := put(t, b, "one", content), put(t, b, "two", content)
		if other := put(t, b, "three", content+"x"); one != two || one == other {
			t.Errorf("%s: versions %q, %q and, of something else, %q", name, one, two, other)
		}
	}
	put(t, b, "f", "caf\xe9\ntea\n")
	if _, err := b.Edit(t.Context(), "f", backend.Edit{Old: "tea", New: "milk"}); err != nil {
		t.Errorf("Edit beside what is no UTF-8: %v", err)
	}
	page, err := b.Read(t.Context(), "f", backend.Window{Limit: 9})
	if diff := cmp.Diff([]string{"caf\xe9", "milk"}, page.Lines); diff != "" || err != nil {
		t.Errorf("after it: error %v, -want +got:\n%s", err, diff)
	}
	put(t, b, "binary", "tea\x00")
	_, err = b.Edit(t.Context(), "binary", backend.Edit{Old: "tea", New: "milk"})
	wantError(t, "Edit of a binary file", err, backend.ErrBinary)
}

// testWriters checks that one of several concurrent writes to the same version succeeds, and that the others get a
// conflict.
func testWriters(t *testing.T, b *backend.Backend) {
	version := put(t, b, "f", "0")
	for round := range 5 {
		const writers = 8
		var won atomic.Int64
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				_, err := b.Write(t.Context(), "f", fmt.Appendf(nil, "%d by %d", round, w), version)
				if err == nil {
					won.Add(1)
					return
				}
				wantError(t, "Write to a version that was replaced", err, backend.ErrChanged)
			})
		}
		all.Wait()
		if n := won.Load(); n != 1 {
			t.Errorf("%d writers won", n)
		}
		page, err := b.Read(t.Context(), "f", backend.Window{Limit: 1})
		wantError(t, "Read", err, nil)
		version = page.Version
	}
	var made atomic.Int64
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			got, err := b.Write(t.Context(), "new/file", fmt.Append(nil, w), backend.Absent)
			if err == nil && got.Created {
				made.Add(1)
				return
			}
			wantError(t, "Write of a file that another client created", err, backend.ErrExists)
		})
	}
	all.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("%d writers made the file", n)
	}
}

// testTurns checks that readers see a whole file while it is written.
func testTurns(t *testing.T, b *backend.Backend) {
	content := func(c string) string { return strings.Repeat(strings.Repeat(c, 99)+"\n", 500) }
	put(t, b, "f", content("a"))
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 20 {
			if _, err := b.Write(t.Context(), "f", []byte(content(string(rune('a'+i)))), backend.Any); err != nil {
				t.Errorf("Write: %v", err)
			}
		}
	})
	for range 40 {
		page, err := b.Read(t.Context(), "f", backend.Window{Limit: 1000})
		if err != nil || page.Total != 500 || page.Lines[0] != page.Lines[499] {
			t.Errorf("Read meanwhile: %d lines, error %v", page.Total, err)
		}
	}
	writing.Wait()
}
