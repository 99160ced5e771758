// Package session is the interface to a store of sessions for users and for later Runs. The store has copies: a Run
// resumes from its journal. A session is a row, which names its owner, and steps numbered from 1 without a gap. Steps
// are only appended: trying again from an earlier step is a Fork. Adapters live below this package (memory) and must
// pass the suite in sessiontest. The runner copies to a Store in the background, so a slow or unavailable store does
// not slow down the Run.
package session

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Store keeps sessions. Every method is atomic, safe for concurrent use, and returns soon after its context ends.
// Neither the caller nor the store changes a Step after passing it to the other.
type Store interface {
	// Append adds steps after the step with the number after, and creates the session if it does not exist and after is
	// 0. If the last step has another number, the error is a *ConflictError. The row's Status replaces the stored one,
	// unless it is empty; to set it alone, append no steps. The owner never changes.
	Append(ctx context.Context, row Row, after int64, steps ...step.Step) error
	// Read yields the steps from a number on, in order, one page at a time: steps that are appended meanwhile may be
	// included. An error ends the sequence.
	Read(ctx context.Context, session string, from int64) iter.Seq2[step.Step, error]
	// List returns the rows that a query selects, newest first.
	List(ctx context.Context, q Query) (Page, error)
	// Fork makes the session of a row, with the steps of another session up to a number. The two may have different
	// owners. If a session with the ID of the row exists, the error is a *ConflictError.
	Fork(ctx context.Context, session string, upTo int64, row Row) error
	// Delete removes a session. Its forks stay.
	Delete(ctx context.Context, session string) error
}

// A Row is a session without its steps.
type Row struct {
	// ID is unique in a store.
	ID string
	// App, Agent and User are the owner of the session: the namespace, the agent's name, and the user for whom it
	// works, which may be empty.
	App, Agent, User string
	// Status is the state of the Run, as the Run names it.
	Status string

	// What follows is the store's to say.

	// Last is the number of the last step.
	Last int64
	// Created is when the session was made, Updated when it last changed.
	Created, Updated time.Time
	// Origin is the session that a fork was made from.
	Origin Origin
}

// An Origin is where a fork began: after the step Through of a session.
type Origin struct {
	Session string
	Through int64
}

// The bounds of the values that a Store accepts.
const (
	MaxID    = 512 // bytes of an id
	MaxField = 253 // bytes of any other field of a Row
	MaxSteps = 1000
)

// Check returns what is wrong with the arguments of an Append, before a store compares them with its own state.
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

// Errors of a Store, to be found with errors.Is.
var (
	ErrNotFound = errors.New("no such session")
	ErrConflict = errors.New("the session has gone on")
	ErrOwner    = errors.New("the session belongs to another owner")
	ErrFull     = errors.New("the session store is full")
	ErrInvalid  = errors.New("not valid")
	ErrCursor   = errors.New("the cursor was not returned by List")
)

// A ConflictError means that the last step of a session has another number than the caller
// named. It is ErrConflict.
type ConflictError struct {
	Session string
	Last    int64 // its number
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the last step of the session %s is %d", e.Session, e.Last)
}

// Is makes the error ErrConflict.
func (*ConflictError) Is(target error) bool { return target == ErrConflict }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// A Query selects sessions. An empty field selects all.
type Query struct {
	App, User, Agent, Status string
	// From and To bound when a session was created: at or after From, before To.
	From, To time.Time
	// Limit is the maximum number of rows of a page. A value out of range means DefaultLimit or MaxLimit.
	Limit int
	// Cursor is the Next of the previous page.
	Cursor string
}

// How many rows a page has.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// A Page has some of the rows that a query selects, newest first. Rows of the same time are ordered by their id.
type Page struct {
	Rows []Row
	// Next is the cursor of the next page; empty: there is none. It stays valid when sessions are added or deleted: a
	// session that exists all the time is listed exactly once.
	Next string
}

// Clamp returns the effective limit.
func (q Query) Clamp() int {
	if q.Limit < 1 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}

// Match reports whether a query selects a row, without its cursor.
func (q Query) Match(r Row) bool {
	return (q.App == "" || q.App == r.App) &&
		(q.User == "" || q.User == r.User) &&
		(q.Agent == "" || q.Agent == r.Agent) &&
		(q.Status == "" || q.Status == r.Status) &&
		(q.From.IsZero() || !r.Created.Before(q.From)) &&
		(q.To.IsZero() || r.Created.Before(q.To))
}

// Compare orders rows as a Page does.
func Compare(a, b Row) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
}

// Cursor returns the cursor after a row.
func Cursor(r Row) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", r.Created.UnixMicro(), r.ID))
}

// Behind returns the row of a cursor, with the fields that Compare uses. Stores keep times in microseconds, as cursors
// do.
func Behind(cursor string) (Row, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return Row{}, ErrCursor
	}
	at, id, ok := strings.Cut(string(raw), " ")
	micro, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || id == "" {
		return Row{}, ErrCursor
	}
	return Row{ID: id, Created: time.UnixMicro(micro).UTC()}, nil
}

// A Searcher is a Store that can search, for example with an index. In other Stores the tool Recall reads one session
// after the other, up to a limit.
type Searcher interface {
	// Search returns the sessions that a query selects and in which each of the words occurs, at most the Limit of the
	// query. Sessions with more occurrences come first, and among equals the last updated. The Cursor of the query has
	// no effect. The words are distinct and in lower case. A word matches in upper or lower case, also as a part of a
	// longer word.
	Search(ctx context.Context, q Query, words []string) ([]Match, error)
}

// MaxExcerpt is the maximum size of an excerpt in bytes.
const MaxExcerpt = 8 << 10

// A Match is a session in which each of the words of a search occurs.
type Match struct {
	Row Row
	// Count is how often the words occur in the texts of the session.
	Count int
	// Seq is the number of the step that has the most of the words; among equals, the most occurrences; among these,
	// the first. Role is the role of the step.
	Seq  int64
	Role step.Role
	// Excerpt has the lines around a word in the text of that step.
	Excerpt string
}
