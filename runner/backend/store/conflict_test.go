package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// Two Backends over one KV are two processes: no lock is between them.
func twoStores() (one, two *backend.Backend) {
	kv := NewMemory(MemoryOptions{Now: noon})
	return over(kv, Options{}), over(kv, Options{})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", call, err, want)
	}
}

func TestTheSecondOfTwoProcessesGetsAConflict(t *testing.T) {
	one, two := twoStores()
	written, err := one.Write(t.Context(), "f", []byte("one\n"), backend.Absent)
	must(t, err)
	_, err = two.Write(t.Context(), "f", []byte("two\n"), backend.Absent)
	wantKind(t, "Write of a file that the other made", err, backend.ErrExists)
	page, err := two.Read(t.Context(), "f", backend.Window{Limit: 1})
	must(t, err)
	if page.Version != written.Version {
		t.Errorf("the versions are %q and %q", page.Version, written.Version)
	}
	_, err = two.Edit(t.Context(), "f", backend.Edit{Old: "one", New: "two", When: page.Version})
	must(t, err)
	_, err = one.Write(t.Context(), "f", []byte("three\n"), written.Version)
	wantKind(t, "Write to the version before the other's edit", err, backend.ErrChanged)
}

// A racingKV writes to a key between what is read of it and what is put.
type racingKV struct {
	*Memory
	times int
}

func (m *racingKV) Put(ctx context.Context, key string, data []byte, when Revision) (Revision, error) {
	if m.times > 0 {
		m.times--
		v, _ := m.Get(ctx, key)
		_, _ = m.Memory.Put(ctx, key, append(v.Data, fmt.Sprintf("raced %d\n", m.times)...), v.Revision)
	}
	return m.Memory.Put(ctx, key, data, when)
}

func TestAChangeIsRepeatedWhenAnotherWriterWasFaster(t *testing.T) {
	m := &racingKV{Memory: NewMemory(MemoryOptions{Now: noon})}
	s := over(m, Options{})
	written, err := s.Write(t.Context(), "f", []byte("one\n"), backend.Any)
	must(t, err)

	m.times = 2
	_, err = s.Edit(t.Context(), "f", backend.Edit{Old: "one", New: "two"})
	must(t, err)
	page, err := s.Read(t.Context(), "f", backend.Window{Limit: 9})
	if diff := cmp.Diff([]string{"two", "raced 1", "raced 0"}, page.Lines); diff != "" || err != nil {
		t.Errorf("both changes are to be there: error %v, -want +got:\n%s", err, diff)
	}

	m.times = 1
	_, err = s.Edit(t.Context(), "f", backend.Edit{Old: "two", New: "three", When: page.Version})
	wantKind(t, "Edit of what changed meanwhile", err, backend.ErrChanged)
	m.times = 1
	_, err = s.Write(t.Context(), "f", []byte("x"), written.Version)
	wantKind(t, "Write to an old version", err, backend.ErrChanged)
	m.times = 1000
	_, err = s.Edit(t.Context(), "f", backend.Edit{Old: "two", New: "three"})
	wantKind(t, "Edit against a writer that is always faster", err, backend.ErrChanged)
}

func TestEditsByManyProcessesAreAllThereOrRefused(t *testing.T) {
	one, two := twoStores()
	const edits = 20
	var content strings.Builder
	for i := range edits {
		fmt.Fprintf(&content, "<%d>\n", i)
	}
	_, err := one.Write(t.Context(), "f", []byte(content.String()), backend.Any)
	must(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i := range edits {
		all.Go(func() {
			s := []*backend.Backend{one, two}[i%2]
			_, err := s.Edit(t.Context(), "f", backend.Edit{Old: fmt.Sprintf("<%d>", i), New: "done"})
			if err != nil {
				wantKind(t, "Edit", err, backend.ErrChanged)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			done++
		})
	}
	all.Wait()
	page, err := one.Read(t.Context(), "f", backend.Window{Limit: edits})
	if got := strings.Count(strings.Join(page.Lines, "\n"), "done"); got != done || err != nil {
		t.Errorf("%d edits are there of %d that succeeded, error %v", got, done, err)
	}
}

func TestBounds(t *testing.T) {
	s := over(NewMemory(MemoryOptions{Bytes: 150, Keys: 3, Now: noon}), Options{File: 100})
	write := func(name string, size int) error {
		_, err := s.Write(t.Context(), name, []byte(strings.Repeat("x", size)), backend.Any)
		return err
	}
	wantKind(t, "a file too large", write("a", 101), backend.ErrTooLarge)
	wantKind(t, "a file", write("a", 100), nil)
	wantKind(t, "more than there is room for", write("b", 50), backend.ErrNoSpace)
	wantKind(t, "a second file", write("b", 0), nil)
	wantKind(t, "a third file", write("c", 0), nil)
	wantKind(t, "a fourth file", write("d", 0), backend.ErrNoSpace)
	wantKind(t, "a file that shrinks", write("a", 1), nil)
	_, err := s.Edit(t.Context(), "a", backend.Edit{Old: "x", New: strings.Repeat("y", 101)})
	wantKind(t, "an edit that makes a file too large", err, backend.ErrTooLarge)
}

func TestNamesAreKeysAndLines(t *testing.T) {
	s, _ := newStore(MemoryOptions{})
	for _, name := range []string{"a\nb", "a\x1b[31m", "a\xff", "a\u0085b"} {
		_, err := s.Write(t.Context(), name, nil, backend.Any)
		wantKind(t, fmt.Sprintf("Write to %q", name), err, backend.ErrBadName)
	}
}

// What two processes can make of one name, one of them reads as what it is.
func TestAFileThatIsADirectoryToo(t *testing.T) {
	s, kv := newStore(MemoryOptions{})
	for _, key := range []string{"a", "a/b"} {
		_, err := kv.Put(t.Context(), key, []byte(key+"\n"), None)
		must(t, err)
	}
	infos, err := s.List(t.Context(), ".")
	must(t, err)
	if len(infos) != 1 || infos[0].Dir || infos[0].Path != "a" {
		t.Errorf("List = %+v, want the file", infos)
	}
	for _, key := range []string{"a", "a/b"} {
		page, err := s.Read(t.Context(), key, backend.Window{Limit: 1})
		if err != nil || page.Lines[0] != key {
			t.Errorf("Read(%q) = %v, error %v", key, page.Lines, err)
		}
	}
}

// A failing KV fails each operation, with its error.
type failing struct{ *Memory }

var errDown = errors.New("the database is down")

func (failing) Get(context.Context, string) (Value, error) { return Value{}, errDown }
func (failing) List(context.Context, string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { yield(Entry{}, errDown) }
}

func TestAFailureOfTheKVIsReturned(t *testing.T) {
	s := over(failing{}, Options{})
	_, listing := s.List(t.Context(), ".")
	_, reading := s.Read(t.Context(), "f", backend.Window{})
	_, writing := s.Write(t.Context(), "f", nil, backend.Any)
	_, editing := s.Edit(t.Context(), "f", backend.Edit{Old: "a"})
	_, globbing := s.Glob(t.Context(), "*", ".", nil)
	_, searching := s.Grep(t.Context(), backend.Query{Pattern: "a"})
	_, inOne := s.Grep(t.Context(), backend.Query{Pattern: "a", Dir: "f"})
	for _, err := range []error{listing, reading, writing, editing, globbing, searching, inOne} {
		var of *backend.PathError
		if !errors.Is(err, errDown) || !errors.As(err, &of) {
			t.Errorf("error %v, want a PathError with the database's", err)
		}
	}
}

func TestASearchStopsInTime(t *testing.T) {
	at := noon()
	now := func() time.Time { at = at.Add(backend.GrepTimeout / 3); return at }
	kv := NewMemory(MemoryOptions{Now: noon})
	s := backend.New(New(kv, Options{}), now)
	for i := range 9 {
		_, err := s.Write(t.Context(), fmt.Sprint(i), []byte("hit\n"), backend.Any)
		must(t, err)
	}
	found, err := s.Grep(t.Context(), backend.Query{Pattern: "hit"})
	if err != nil || len(found.Items) != 3 || !found.Truncated {
		t.Errorf("Grep: %d matches, truncated %t, error %v", len(found.Items), found.Truncated, err)
	}
}

func TestMemoryAsAKV(t *testing.T) {
	m := NewMemory(MemoryOptions{Now: noon})
	first, err := m.Put(t.Context(), "a", []byte("1"), None)
	must(t, err)
	_, err = m.Put(t.Context(), "a", []byte("2"), None)
	wantKind(t, "Put of a key that is there", err, ErrConflict)
	_, err = m.Put(t.Context(), "b", nil, first)
	wantKind(t, "Put of a key that is not there", err, ErrConflict)
	second, err := m.Put(t.Context(), "a", []byte("2"), first)
	must(t, err)
	wantKind(t, "Delete of an old revision", m.Delete(t.Context(), "a", first), ErrConflict)
	must(t, m.Delete(t.Context(), "a", second))
	wantKind(t, "Delete again", m.Delete(t.Context(), "a", second), ErrNoKey)
	_, err = m.Get(t.Context(), "a")
	wantKind(t, "Get of what was deleted", err, ErrNoKey)
	again, err := m.Put(t.Context(), "a", []byte("1"), None)
	if err != nil || again == first || again == second {
		t.Errorf("a revision was given out twice: %q, error %v", again, err)
	}
}
