package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func options(dir string) journal.Options {
	return journal.Options{Dir: dir, RunUID: "uid-1", Attempt: 1, Now: func() time.Time { return noon }}
}

// open is a new journal on a disk.
func open(t *testing.T) *journal.Dir {
	t.Helper()
	d, err := journal.Open(options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// own is the state of the Run's own session alone.
func own(s Session) Run { return Run{sessions: map[string]*Session{"": &s}} }

func begun(b Run) Run {
	b.Begun = true
	return b
}

func TestReplay(t *testing.T) {
	call := func(n int) step.Call { return step.Call{ID: step.CallID("", 2, n), Name: "Bash", Args: []byte("{}")} }
	user := step.Step{Seq: 1, Role: step.RoleUser}
	turn := step.Step{Seq: 2, Role: step.RoleAssistant, Calls: []step.Call{call(1), call(2)}}
	result := func(n int) step.Step {
		return step.Step{Seq: int64(2 + n), Role: step.RoleTool, CallID: step.CallID("", 2, n)}
	}
	intent := journal.Intent{CallID: "s2c1", Name: "Bash", Effect: "Once"}
	opening := []journal.Record{{Kind: journal.KindHeader}, {Kind: journal.KindStep, Step: &user}, {Kind: journal.KindIntent, Intent: &journal.Intent{Name: "m"}}, {Kind: journal.KindStep, Step: &turn}}
	one, two := result(1), result(2)

	cases := map[string]struct {
		records []journal.Record
		want    Run
	}{
		"a model call that nothing answers": {
			records: opening[:3],
			want:    own(Session{Steps: []step.Step{user}, Last: 1, Asked: &journal.Intent{Name: "m"}}),
		},
		"calls that were not begun are open": {
			records: opening,
			want:    own(Session{Steps: []step.Step{user, turn}, Last: 2}),
		},
		"a call that was begun has an intent": {
			records: append(opening[:4:4], journal.Record{Kind: journal.KindIntent, Intent: &intent}),
			want:    begun(own(Session{Steps: []step.Step{user, turn}, Last: 2, Intents: map[string]journal.Intent{"s2c1": intent}, Since: map[string]time.Time{"s2c1": {}}})),
		},
		"a result that came early waits for the others": {
			records: append(opening[:4:4], journal.Record{Kind: journal.KindResult, Step: &two}),
			want:    own(Session{Steps: []step.Step{user, turn}, Last: 2, Results: map[string]step.Step{"s2c2": two}}),
		},
		"results are in call order, whatever came first": {
			records: append(opening[:4:4], journal.Record{Kind: journal.KindResult, Step: &two}, journal.Record{Kind: journal.KindResult, Step: &one}),
			want:    own(Session{Steps: []step.Step{user, turn, one, two}, Last: 4}),
		},
		"an end is forgotten when the session goes on": {
			records: []journal.Record{{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded, Text: "InvalidOutput"}}, {Kind: journal.KindStep, Step: &user}},
			want:    own(Session{Steps: []step.Step{user}, Last: 1}),
		},
		"restarts are those of the last attempt": {
			records: []journal.Record{{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkRestarted}}, {Kind: journal.KindHeader}, {Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkRestarted}}},
			want:    Run{Restarts: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var m journal.Memory
			for _, r := range tc.records {
				_ = m.Append(r)
			}
			got, err := Replay(m.Read())
			if err != nil {
				t.Fatal(err)
			}
			withoutTurns := cmpopts.IgnoreFields(Session{}, "Turns") // counted in another test
			if diff := cmp.Diff(&tc.want, got, cmp.AllowUnexported(Run{}), cmpopts.EquateEmpty(), withoutTurns); diff != "" {
				t.Errorf("Replay() -want +got:\n%s", diff)
			}
		})
	}
}

// A thousand steps of 20 KB: what a resume has to read before it may go on.
func BenchmarkReplay(b *testing.B) {
	o := options(b.TempDir())
	d, err := journal.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("All work and no play makes \"Jack\" a dull boy.\n", 20<<10/46)
	for i := range 1000 {
		r := journal.Record{Kind: journal.KindStep, Step: &step.Step{
			Seq: int64(i + 1), Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: fmt.Sprint(i, text)}},
		}}
		if err := d.Append(r); err != nil {
			b.Fatal(err)
		}
	}
	_ = d.Close()
	for b.Loop() {
		d, err := journal.Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Replay(d.Read()); err != nil {
			b.Fatal(err)
		}
		_ = d.Close()
	}
}

// Each answer of the model is a turn, also one that was hidden later; results and users' texts are none.
func TestTurnsAreTheAnswersOfTheModel(t *testing.T) {
	var m journal.Memory
	for i, role := range []step.Role{step.RoleUser, step.RoleAssistant, step.RoleUser, step.RoleAssistant} {
		_ = m.Append(journal.Record{Kind: journal.KindStep, Step: &step.Step{Seq: int64(i + 1), Role: role}})
	}
	got, err := Replay(m.Read())
	if err != nil {
		t.Fatal(err)
	}
	if turns := got.Session("").Turns; turns != 2 {
		t.Errorf("%d turns, want 2", turns)
	}
}
