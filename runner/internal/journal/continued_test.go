package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// journalOf writes the journal of a Run.
func journalOf(t *testing.T, dir, uid string, c *Continued, records ...Record) {
	t.Helper()
	d, err := Open(Options{Dir: dir, RunUID: uid, Attempt: 1, Now: time.Now, Continue: c})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := d.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func said(seq int64, calls ...string) Record {
	s := &step.Step{Seq: seq, Role: step.RoleUser}
	for _, id := range calls {
		s.Role = step.RoleAssistant
		s.Calls = append(s.Calls, step.Call{ID: id})
	}
	return Record{Kind: KindStep, Step: s}
}

func began(call string) Record { return Record{Kind: KindIntent, Intent: &Intent{CallID: call}} }

func did(seq int64, call string) Record {
	return Record{Kind: KindResult, Step: &step.Step{Seq: seq, Role: step.RoleTool, CallID: call}}
}

// turns is a session of two turns. The results of its first come in another order than its calls.
var turns = []Record{
	said(1), said(2, "s2c1", "s2c2", "s2c3"), began("s2c1"), began("s2c2"),
	{Kind: KindAsk, Request: &Request{ID: "q", CallID: "s2c2"}},
	began("s2c3"),
	{Kind: KindStep, Session: "s2c2", Step: &step.Step{Seq: 1, Role: step.RoleUser}},
	did(5, "s2c3"), did(3, "s2c1"), did(4, "s2c2"), said(6, "s6c1"), began("s6c1"), did(7, "s6c1"),
	{Kind: KindMark, Mark: &Mark{Type: MarkEnded, Text: "Stopped"}},
}

// written is a record in a word.
func written(r Record) string {
	switch {
	case r.Header != nil:
		return fmt.Sprintf("header %s after %d", r.Header.RunUID, r.Header.After)
	case r.Session != "":
		return "in " + r.Session
	case r.Step != nil && r.Kind == KindResult:
		return fmt.Sprintf("result %d", r.Step.Seq)
	case r.Step != nil:
		return fmt.Sprintf("step %d", r.Step.Seq)
	case r.Intent != nil:
		return "intent " + r.Intent.CallID
	}
	return string(r.Kind)
}

// readBack opens the journal of an attempt and reads it.
func readBack(dir, uid string, attempt int, c *Continued) (string, error) {
	d, err := Open(Options{Dir: dir, RunUID: uid, Attempt: attempt, Now: time.Now, Continue: c})
	if err != nil {
		return "", err
	}
	var out []string
	for r, err := range d.Read() {
		if err != nil {
			return "", errors.Join(err, d.Close())
		}
		out = append(out, written(r))
	}
	return strings.Join(out, ", "), d.Close()
}

func TestAJournalBeginsWithThatOfTheRunThatItContinues(t *testing.T) {
	const (
		first  = "header one after 0, step 1, step 2, "
		middle = "intent s2c1, intent s2c2, ask, intent s2c3, in s2c2, result 5, result 3, result 4, step 6, "
	)
	for name, tc := range map[string]struct {
		step int64
		want string
	}{
		"all of it":                              {0, first + middle + "intent s6c1, result 7, mark, header two after 15"},
		"to the last step":                       {7, first + middle + "intent s6c1, result 7, header two after 14"},
		"to a call":                              {6, first + middle + "header two after 12"},
		"to the last result of a turn":           {5, first + "intent s2c1, intent s2c2, ask, intent s2c3, in s2c2, result 5, result 3, result 4, header two after 11"},
		"to a result that came after later ones": {4, first + "intent s2c1, intent s2c2, ask, in s2c2, result 3, result 4, header two after 11"},
		"to the first result":                    {3, first + "intent s2c1, result 3, header two after 10"},
		"to the answer with the calls":           {2, first + "header two after 3"},
		"to the prompt":                          {1, "header one after 0, step 1, header two after 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			journalOf(t, SourceDir(dir), "one", nil, turns...)
			c := &Continued{Run: "first", RunUID: "one", Step: tc.step}
			got, err := readBack(dir, "two", 1, c)
			if err != nil || got != tc.want {
				t.Fatalf("%v, -want +got:\n%s", err, cmp.Diff(tc.want, got))
			}
			again, err := readBack(dir, "two", 2, c) // the header counts from now on
			if want := tc.want + ", header two after "; err != nil || !strings.HasPrefix(again, want) {
				t.Errorf("the next attempt reads %s, %v; want %s…", again, err, want)
			}
			if without, err := readBack(dir, "two", 3, nil); err != nil || !strings.HasPrefix(without, again) {
				t.Errorf("an attempt that is not told reads %s, %v", without, err)
			}
		})
	}
}

// A chain of Runs is read from its first.
func TestAJournalOfAChain(t *testing.T) {
	dir := t.TempDir()
	one, two := SourceDir(SourceDir(dir)), SourceDir(dir)
	journalOf(t, one, "one", nil, said(1))
	journalOf(t, two, "two", &Continued{Run: "first", RunUID: "one"}, said(2), said(3))
	got, err := readBack(dir, "three", 1, &Continued{Run: "second", RunUID: "two", Step: 2})
	if want := "header one after 0, step 1, header two after 2, step 2, header three after 4"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// A fork at a step of an earlier Run of a chain has nothing that came after that step, whoever recorded it.
func TestAForkInAnEarlierRunOfAChain(t *testing.T) {
	dir := t.TempDir()
	one, two := SourceDir(SourceDir(dir)), SourceDir(dir)
	journalOf(t, one, "one", nil, append(slices.Clone(turns), Record{Kind: KindHide, Hide: &Hide{Through: 6, Summary: "s"}},
		Record{Kind: KindStep, Session: "s8c1", Step: &step.Step{Seq: 1, Role: step.RoleUser}}, began("s8c1"))...)
	journalOf(t, two, "two", &Continued{Run: "first", RunUID: "one"}, said(8))
	c := &Continued{Run: "second", RunUID: "two", Step: 2}
	const want = "header one after 0, step 1, step 2, header three after 3"
	for attempt := 1; attempt <= 2; attempt++ {
		got, err := readBack(dir, "three", attempt, c)
		if err != nil || !strings.HasPrefix(got, want) || attempt == 1 && got != want {
			t.Errorf("attempt %d: %s, %v; want %s", attempt, got, err, want)
		}
	}
}

// A session that cannot be read is refused before anything is written, so that the next attempt is refused too.
func TestASessionThatCannotBeContinued(t *testing.T) {
	for name, tc := range map[string]struct {
		makes func(t *testing.T, dir string)
		step  int64
		want  string
	}{
		"no directory":                           {func(*testing.T, string) {}, 0, "no such file or directory"},
		"an empty volume":                        {func(t *testing.T, dir string) { mkdir(t, dir) }, 0, "has no journal"},
		"of another Run":                         {func(t *testing.T, dir string) { journalOf(t, dir, "other", nil, said(1)) }, 0, `belongs to the Run with UID "other", not "one"`},
		"a step that is none":                    {func(t *testing.T, dir string) { journalOf(t, dir, "one", nil, turns...) }, 9, "Run first has 7 steps, and no step 9"},
		"a step of a turn that was not recorded": {func(t *testing.T, dir string) { journalOf(t, dir, "one", nil, turns[:8]...) }, 4, "Run first has 5 steps, and no step 4"},
		"cut before it began": {func(t *testing.T, dir string) {
			mkdir(t, dir)
			write(t, filepath.Join(dir, "journal-0001.jsonl"), `{"seq":1`)
		}, 0, "has no journal"},
		"damaged": {func(t *testing.T, dir string) {
			journalOf(t, dir, "one", nil, turns...)
			name := filepath.Join(dir, "journal-0001.jsonl")
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			write(t, name, string(data))
		}, 0, "its checksum is wrong"},
		"whose own source is gone": {func(t *testing.T, dir string) {
			journalOf(t, SourceDir(dir), "zero", nil, said(1))
			journalOf(t, dir, "one", &Continued{Run: "zeroth", RunUID: "zero"}, said(2))
			if err := os.RemoveAll(SourceDir(dir)); err != nil {
				t.Fatal(err)
			}
		}, 0, "no such file or directory"},
		"whose own source is shorter": {func(t *testing.T, dir string) {
			journalOf(t, SourceDir(dir), "zero", nil, said(1))
			journalOf(t, dir, "one", &Continued{Run: "zeroth", RunUID: "zero"}, said(2))
			if err := os.RemoveAll(SourceDir(dir)); err != nil {
				t.Fatal(err)
			}
			journalOf(t, SourceDir(dir), "zero", nil)
		}, 0, "ends with record 1, and not with record 2 or later"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.makes(t, SourceDir(dir))
			c := &Continued{Run: "first", RunUID: "one", Step: tc.step}
			for attempt := 1; attempt <= 2; attempt++ {
				_, err := readBack(dir, "two", attempt, c)
				var refused *NotContinuedError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("attempt %d: %v, want %s", attempt, err, tc.want)
				}
			}
		})
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// The UID of a Run is found whatever its directory is called.
func TestTheOwnerOfAJournal(t *testing.T) {
	for _, name := range []string{"state", "a[1]", "b*", `c\d`} {
		dir := filepath.Join(t.TempDir(), name)
		if got := Owner(dir); got != "" {
			t.Errorf("%s: without a journal it is %q", name, got)
		}
		journalOf(t, dir, "one", nil, said(1))
		if got := Owner(dir); got != "one" {
			t.Errorf("%s: %q, want one", name, got)
		}
	}
}

// The headers alone tell whose journal a directory has.
func TestCheckOwner(t *testing.T) {
	header := func(version int, uid string) string {
		return lineOf(t, Record{Seq: 1, Kind: KindHeader, Header: &Header{Version: version, RunUID: uid, Attempt: 1}})
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  string // empty: it is
	}{
		"its journal":                            {map[string]string{"journal-0001.jsonl": header(1, "one") + "torn"}, ""},
		"an attempt that was cut, and a later":   {map[string]string{"journal-0001.jsonl": `{"crc":"`, "journal-0002.jsonl": header(1, "one")}, ""},
		"an empty volume":                        {nil, "has no journal"},
		"something else":                         {map[string]string{"journal.jsonl": header(1, "one")}, "has no journal"},
		"a journal that was cut before it began": {map[string]string{"journal-0001.jsonl": header(1, "one")[:20]}, "has no journal"},
		"of another Run":                         {map[string]string{"journal-0001.jsonl": header(1, "two")}, `belongs to the Run with UID "two", not "one"`},
		"whose later attempt is another Run's":   {map[string]string{"journal-0001.jsonl": header(1, "one"), "journal-0002.jsonl": header(1, "two")}, `"two", not "one"`},
		"of a newer runner":                      {map[string]string{"journal-0001.jsonl": header(FormatVersion+1, "one")}, "has format 3"},
		"damaged":                                {map[string]string{"journal-0001.jsonl": "x\n" + header(1, "one")}, "not a line of a journal"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				write(t, filepath.Join(dir, file), content)
			}
			err := CheckOwner(dir, "first", "one")
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if _, refused := errors.AsType[*NotContinuedError](err); !refused || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
	if _, refused := errors.AsType[*NotContinuedError](CheckOwner(filepath.Join(t.TempDir(), "none"), "first", "one")); !refused {
		t.Error("a directory that does not exist is not refused")
	}
	dir := t.TempDir()
	makeDir(t, filepath.Join(dir, "journal-0001.jsonl"))
	if _, refused := errors.AsType[*NotContinuedError](CheckOwner(dir, "first", "one")); refused {
		t.Error("an error of the disk counts as an answer")
	}
}
