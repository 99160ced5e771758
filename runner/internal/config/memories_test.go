package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
)

// A journalOfKilled takes so many records, and then none: nothing is recorded after a
// process was killed.
type journalOfKilled struct {
	*journal.Memory
	left int
}

var errKilled = errors.New("killed")

func (j *journalOfKilled) Append(r journal.Record) error {
	if j.left == 0 {
		return errKilled
	}
	j.left--
	return j.Memory.Append(r)
}

var notes = [][]string{
	{`Write {"path":"/memories/note","content":"first"}`, `Write {"path":"/workspace/a","content":"a"}`},
	{`Edit {"path":"/memories/note","old_string":"first","new_string":"second"}`},
	{`Read {"path":"/memories/note"}`},
}

// durable is a fixer whose files outlive an attempt.
func durable(t *testing.T) *fixer {
	t.Helper()
	f := newFixer(t)
	f.parts.State, f.parts.Task.Durable = t.TempDir(), true
	return f
}

// kill lets the first attempt record so much only.
func (f *fixer) kill(records int) {
	f.t.Helper()
	f.engine = func(c *engine.Config) { c.Journal = &journalOfKilled{f.journal, records} }
	f.attempt(notes...)
	if n := f.recorded(); n != records {
		f.t.Fatalf("there are %d records, want %d", n, records)
	}
	f.engine = func(*engine.Config) {}
	f.parts.Task.Attempt, f.parts.Task.Retry = 2, "PodLost"
}

// recorded is how many records there are.
func (f *fixer) recorded() int {
	n := 0
	for range f.journal.Read() {
		n++
	}
	return n
}

// A session that writes to /memories is killed behind each of its records in turn. The
// next attempt, with the same state directory, ends the same way.
func TestMemoriesOfASessionKilledAnywhere(t *testing.T) {
	whole := durable(t)
	want, total := whole.run(notes...), whole.recorded()
	if total < 10 || len(want) != 4 || !strings.Contains(want[3], "second") {
		t.Fatalf("the session has %d records; the model reads %q", total, want)
	}
	for records := range total {
		t.Run(fmt.Sprintf("behind record %d", records), func(t *testing.T) {
			f := durable(t)
			f.kill(records)
			if got := f.run(notes...); len(got) != len(want) || got[3] != want[3] {
				t.Errorf("the model reads %q, want %q", got, want)
			}
			for r := range f.journal.Read() {
				if r.Step != nil && strings.Contains(r.Step.Text(), "below /memories before was lost") {
					t.Errorf("the model reads that its notes are gone: %q", r.Step.Text())
				}
			}
		})
	}
}
