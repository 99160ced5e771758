package session

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Query asks for sessions. What is empty does not narrow it.
type Query struct {
	App, User, Agent, Status string
	// From and To bound when a session was created: at or after From, before To.
	From, To time.Time
	// Limit is the most rows of a page; out of range: DefaultLimit or MaxLimit.
	Limit int
	// Cursor is the Next of the page before.
	Cursor string
}

// How many rows a page has.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// A Page is some of the rows that a query asks for, the newest first; of those
// made at the same time, by their id.
type Page struct {
	Rows []Row
	// Next is the cursor of what follows; empty: nothing does. It stays good when
	// sessions come and go: each that is there all the time is seen once.
	Next string
}

// Clamp returns the limit that is meant.
func (q Query) Clamp() int {
	if q.Limit < 1 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}

// Match reports whether a query asks for a row, wherever its cursor stands.
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

// Cursor returns the cursor behind a row.
func Cursor(r Row) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", r.Created.UnixMicro(), r.ID))
}

// Behind returns the row behind which a cursor stands, as far as Compare looks
// at it. Stores keep times to the microsecond, as cursors do.
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
