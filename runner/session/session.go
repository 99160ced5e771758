package session

import (
	"context"
	"iter"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Store keeps sessions. Every method is atomic, safe for concurrent use, and
// stops soon after its context ends. A Step that was handed over or returned is
// not changed by either side.
type Store interface {
	// Append adds steps after the step with the number after, and creates the session if it
	// does not exist and after is 0. Where the last step has another number it is a
	// *ConflictError. The row's Status replaces the stored one, unless it is empty; to set
	// it alone, append no steps. Who it belongs to never changes.
	Append(ctx context.Context, row Row, after int64, steps ...step.Step) error
	// Read yields the steps from a number on, in order, a page at a time: what is
	// added meanwhile may be among them. An error ends it.
	Read(ctx context.Context, session string, from int64) iter.Seq2[step.Step, error]
	// List returns the rows that a query asks for, the newest first.
	List(ctx context.Context, q Query) (Page, error)
	// Fork makes the session of a row, with the steps of another session up to a number. The
	// two may have different owners. If there is a session with the ID of the row, the error
	// is a *ConflictError.
	Fork(ctx context.Context, session string, upTo int64, row Row) error
	// Delete removes a session. Its forks stay.
	Delete(ctx context.Context, session string) error
}

// A Row is a session without its steps.
type Row struct {
	// ID is unique in a store.
	ID string
	// App, Agent and User say whose the session is: the namespace, the agent's
	// name, and for whom it works, which may be empty.
	App, Agent, User string
	// Status is how the Run stands, in its own words.
	Status string

	// What follows is the store's to say.

	// Last is the number of the last step.
	Last int64
	// Created is when the session was made, Updated when it last changed.
	Created, Updated time.Time
	// Origin is what a fork was made of.
	Origin Origin
}

// An Origin is where a fork began: behind the step Through of a session.
type Origin struct {
	Session string
	Through int64
}

// The bounds of what a Store is given.
const (
	MaxID    = 512 // bytes of an id
	MaxField = 253 // bytes of any other field of a Row
	MaxSteps = 1000
)

// Check says what is wrong with an Append, before a store looks at what it has.
func Check(row Row, after int64, steps []step.Step) error {
	fields := map[string]string{"app": row.App, "agent": row.Agent, "user": row.User, "status": row.Status}
	for name, value := range fields {
		if len(value) > MaxField {
			return invalid("%s has %d bytes; at most %d are kept", name, len(value), MaxField)
		}
	}
	switch {
	case row.ID == "" || len(row.ID) > MaxID:
		return invalid("the id must have 1 to %d bytes; it has %d", MaxID, len(row.ID))
	case after < 0:
		return invalid("steps are numbered from 1; there is none behind %d", after)
	case len(steps) > MaxSteps:
		return invalid("%d steps at once; at most %d are taken", len(steps), MaxSteps)
	}
	for i, s := range steps {
		if want := after + int64(i) + 1; s.Seq != want {
			return invalid("step %d where %d is due", s.Seq, want)
		}
	}
	return nil
}
