package engine

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The records of a session are where its steps, its events and what it used go.
type records struct {
	run     *run
	name    string // the call that opened the session; empty: the Run's own
	scope   step.Scope
	agent   string // the name of its agent
	account *meter.Account
}

// read is the session as it stands. The steps in it never change; more are
// added, or others stand for them.
func (r *records) read() state.Session { return r.run.state.Session(r.name) }

// next is the number that the next step of the session gets, and nextID is its id.
func (r *records) next() int64 { return r.read().Last + 1 }

func (r *records) nextID() string { return step.ID(r.name, r.next()) }

// Record appends to the journal and, once it is there, to the state.
func (r *records) Record(rec journal.Record) error { return r.record(rec, step.Usage{}) }

// RecordChild appends to the journal how a child Run ended, with what it used.
func (r *records) RecordChild(c journal.Child) error {
	return r.record(journal.Record{Kind: journal.KindChild, Child: &c}, c.Usage)
}

// record appends to the journal, together with what a child Run used. The account has
// that only once the journal does: whatever is reported or recorded in between, a
// resume neither loses nor doubles it.
func (r *records) record(rec journal.Record, used step.Usage) error {
	return r.run.state.Record(func() journal.Record {
		total := r.run.meter.Read()
		total = total.PlusChildRun(used)
		rec.Session, rec.Meter, rec.Accounts = r.name, &total, r.account.Chain()
		for i := range rec.Accounts {
			rec.Accounts[i] = rec.Accounts[i].PlusChildRun(used)
		}
		rec.At = r.run.config.Now().UTC()
		return rec
	}, func() {
		r.account.Add(func(m *step.Meter) { *m = m.PlusChildRun(used) })
	})
}

// recordStep gives a step its place and records it.
func (r *records) recordStep(st step.Step, d *journal.Decision) error {
	st.Seq, st.Scope = r.next(), r.scope
	if err := r.Record(journal.Record{Kind: journal.KindStep, Step: &st, Decision: d}); err != nil {
		return fmt.Errorf("recording step %d: %w", st.Seq, err)
	}
	r.emitStep(st)
	return nil
}

// userStep returns a message to the model as a step.
func (r *records) userStep(text string, note step.Note) step.Step {
	return step.Step{
		Role: step.RoleUser, Note: note, At: r.run.config.Now().UTC(),
		Parts: []step.Part{{Kind: step.PartText, Text: r.run.config.Redact.String(text)}},
	}
}

// recordMessage records what is said to the model.
func (r *records) recordMessage(text string, note step.Note) error {
	return r.recordStep(r.userStep(text, note), nil)
}

// Emit tells what happens in the session.
func (r *records) Emit(message string, p events.Payload) {
	r.run.config.Events.Emit(r.scope, message, p)
}

// label is a name as the status shows it: of a session below the Run's own,
// behind its agent'r.
func (r *records) label(name string) string {
	if r.name == "" {
		return name
	}
	return task.Cut(r.agent+"/"+name, maxName)
}

// Account implements [toolcall.Session].
func (r *records) Account() *meter.Account { return r.account }

// emitStep tells of a step that is recorded.
func (r *records) emitStep(st step.Step) {
	r.Emit(fmt.Sprintf("%s: %s", st.Role, summarize(st)), events.StepFinished{Step: st})
}
