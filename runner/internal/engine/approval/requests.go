// Package approval asks people, and the operator for child Runs, and waits for
// what comes of it.
//
// A Request is shown in the Run's status for as long as something waits for it
// (requests.go, display.go). What approvers decide is matched with the requests
// (decisions.go), and so are the ends of child Runs (childruns.go). There is one
// loop that waits (wait.go). Activity knows when all of the work waits; a runner
// whose journal outlives it leaves then (suspend.go), and the next attempt asks the
// same.
package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// DefaultWait bounds one wait for a user, or until a time that a model provider named, if
// the task says nothing else.
const DefaultWait = 7 * 24 * time.Hour

// A Session is what asks: where its records and its events go.
type Session interface {
	// Record appends to the journal.
	Record(rec journal.Record) error
	// RecordChild appends to the journal how a child Run ended, with what it used.
	RecordChild(c journal.Child) error
	Emit(message string, p events.Payload)
}

// Config is what the requests of a Run need.
type Config struct {
	Signals  signals.Source
	State    *state.Store
	Activity *Activity
	Redact   *redact.Redactor
	Now      func() time.Time
	// CanAsk says that there are approvers, CanStartRuns that an operator creates
	// child Runs.
	CanAsk, CanStartRuns bool
	// MaxWait is for how long a request waits for a Decision; 0: seven days.
	MaxWait time.Duration
	// Durable says that another runner resumes the work: this one leaves once
	// everything has waited for as long as Hold; 0: two minutes.
	Durable bool
	Hold    time.Duration
	// Busy says that something still runs that would end with the runner; nil:
	// nothing does.
	Busy func() bool

	// Reached is the first limit of the Run that is used up; nil: none is.
	Reached func() *meter.Limit
	// Grant raises the limits of the Run.
	Grant func(d journal.Decision)
	// Report has the status updated soon, ReportNow at once; neither waits for it.
	// ReportedState is what the Run waits for as it was reported last.
	Report, ReportNow func()
	ReportedState     func() string
}

// Requests are what people, and the operator, are asked, and who waits for it.
type Requests struct {
	config   Config
	activity *Activity
	// suspended is why the runner leaves, if it does; leaving is closed then.
	suspended atomic.Pointer[suspension]
	leaving   chan struct{}

	mu   sync.Mutex // held while a decision is recorded
	open openRequests
	// models are the waits for models.
	models []*ModelWait
}

// New returns the requests of a Run that asks nothing yet.
func New(c Config) *Requests {
	c.Hold = cmp.Or(c.Hold, DefaultHold)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultWait)
	return &Requests{config: c, activity: c.Activity, leaving: make(chan struct{})}
}

// A Request is something that a person, or the operator, is asked, and what came
// of it.
type Request struct {
	task.Pending
	Session Session      // whose state tells of it
	Limit   *meter.Limit // that is used up
	Reason  WaitReason
	Since   time.Time
	// Of the approval of a call: what wants it, its arguments in whole, and whether
	// it is good for this call alone.
	Source   journal.Source
	FullArgs string
	Once     bool
	// Check says what is wrong with an answer; nil: any will do.
	Check func(string) error

	waiters  int
	shown    bool          // a report has shown it
	done     chan struct{} // closed once it is decided
	decision journal.Decision
	expired  bool // no Decision was made in time
}

// Await makes a request and waits for the Decision on it; false if none is made in
// time, or there are no approvers. Of a request for a child Run it only waits for its end.
func (r *Requests) Await(ctx context.Context, q *Request) (journal.Decision, bool, error) {
	if !r.config.CanAsk && q.Kind != task.PendingDelegation {
		return journal.Decision{}, false, nil
	}
	by := q.Session
	q, expires := r.post(q)
	defer r.stopWaiting(q)
	w := Wait{Reason: q.Reason, Done: q.done, Until: func(now signals.Signals) (bool, error) { return false, r.untilDecided(by, now) }}
	if !expires.IsZero() {
		late := time.NewTimer(expires.Sub(r.config.Now()))
		defer late.Stop()
		w.Late, w.Expire = late.C, func() { r.expire(q) }
	}
	if err := r.Wait(ctx, w); err != nil {
		return journal.Decision{}, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return q.decision, !q.expired, nil
}

// post shows a request, or finds it where another branch already asks the same.
func (r *Requests) post(q *Request) (*Request, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Since.IsZero() {
		q.Since = r.config.Now()
	}
	if other := r.open.find(q.ID); other != nil {
		other.waiters++
		return other, r.expiry(other)
	}
	q.waiters, q.done = 1, make(chan struct{})
	expires := r.expiry(q)
	q.AskedAt = q.Since.UTC().Format(time.RFC3339)
	if !expires.IsZero() {
		q.ExpiresAt = expires.UTC().Format(time.RFC3339)
	}
	if q.Kind != task.PendingDelegation {
		q.DisplayDigest = q.logged().ComputeDisplayDigest()
	}
	r.open.all = append(r.open.all, q)
	slices.SortStableFunc(r.open.all, func(a, b *Request) int {
		callA, callB := CallOf(a.ID), CallOf(b.ID)
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(len(callA), len(callB)), cmp.Compare(callA, callB),
			cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	q.emit()
	return q, expires
}

// expiry is until when a request waits; zero: for as long as it takes, as one for
// a child Run does.
func (r *Requests) expiry(q *Request) time.Time {
	if q.Kind == task.PendingDelegation {
		return time.Time{}
	}
	return q.Since.Add(r.config.MaxWait)
}

// emit emits the event of a request, with the whole arguments.
func (q *Request) emit() {
	switch {
	case q.Cancelled:
		q.Session.Emit("The call was cancelled: the child Run of Agent "+q.Agent+" is to be stopped", events.Pending(q.Pending))
		return
	case q.Kind == task.PendingDelegation:
		q.Session.Emit("A child Run of Agent "+q.Agent+" is asked for: "+task.Cut(redact.Printable(q.Args), task.MaxSummary),
			events.ChildStarted{Session: q.ID, Agent: q.Agent, Args: json.RawMessage(q.Args)})
		return
	}
	q.Session.Emit("Waiting for a Decision: "+task.Cut(q.Question, task.MaxSummary), q.logged())
}

// logged is a request as the log has it, with the whole arguments.
func (q *Request) logged() events.Pending {
	p := events.Pending(q.Pending)
	if q.Kind == task.PendingApproval {
		p.Args, p.ArgsTruncated = q.FullArgs, false
	}
	return p
}

// stopWaiting closes a request that nothing waits for any more. When the runner leaves,
// it stays open.
func (r *Requests) stopWaiting(q *Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.waiters--; q.waiters == 0 && r.suspended.Load() == nil {
		r.open.close(q)
	}
}

// expire gives a request up, unless it was decided at the last moment.
func (r *Requests) expire(q *Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-q.done:
		return
	default:
	}
	if q.expired {
		return
	}
	q.expired = true
	r.open.close(q)
	q.Session.Emit("No Decision was made in time", events.Decided{Request: q.ID, Refused: RefusedLate})
}

// LimitReached says whether a limit of the Run is used up, so that it ends.
func (r *Requests) LimitReached() bool { return r.config.Reached() != nil }

// Pending is what people and the operator are asked, as the status shows it.
func (r *Requests) Pending() []task.Pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open.display()
}

// ReportDecision tells what became of a decision.
func (r *Requests) ReportDecision(by Session, d journal.Decision) {
	message := fmt.Sprintf("%s by %s: %s", d.Type, d.By, d.Name)
	if d.Refused != "" {
		message = "Refused: " + d.Name + ": " + d.Refused
	}
	by.Emit(message, events.Decided{Name: d.Name, Request: d.Request, Refused: d.Refused, Type: d.Type, By: d.By})
	r.config.ReportNow()
}

// applyChildResults takes in how child Runs ended that calls wait for. It is called wherever
// something waits. A child Run that nothing waits for is ignored: it was recorded before,
// or never asked for.
func (r *Requests) applyChildResults(ended []task.Child) error {
	if len(ended) == 0 || !r.config.CanStartRuns {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended.Load() != nil {
		return nil // the next attempt hears it
	}
	for _, c := range ended {
		q := r.open.find(c.Request)
		if q == nil || q.Kind != task.PendingDelegation {
			continue
		}
		if err := r.recordChildResult(q, c); err != nil {
			return err
		}
	}
	return nil
}

// recordChildResult records how a child Run ended, with what is charged for it, and hands
// it to the call that waits.
func (r *Requests) recordChildResult(q *Request, c task.Child) error {
	said := journal.Child{
		Request: q.ID, Run: task.Cut(c.Run, MaxField), Reason: task.Cut(string(c.Reason), task.MaxReason),
		Message: task.Cut(r.config.Redact.String(c.Message), maxValue), Text: task.Cut(r.config.Redact.String(c.Text), maxValue),
		Output: r.redactOutput(c.Output), Usage: c.Usage.Charged(),
	}
	if err := q.Session.RecordChild(said); err != nil {
		return fmt.Errorf("recording how the child Run of %s ended: %w", q.ID, err)
	}
	r.activity.noteDecision()
	r.open.close(q)
	close(q.done)
	q.Session.Emit(endOfChild(q.Agent, said), events.ChildFinished{
		Session: q.ID, Run: said.Run, Agent: q.Agent, Reason: task.Reason(said.Reason), Usage: c.Usage,
	})
	r.config.ReportNow()
	return nil
}

// redactOutput is the output of a child Run without secrets, and still JSON if it was.
func (r *Requests) redactOutput(output string) string {
	if !json.Valid([]byte(output)) {
		return r.config.Redact.String(output)
	}
	return string(r.config.Redact.JSON(json.RawMessage(output)))
}

// endOfChild says, for people, how a child Run ended.
func endOfChild(agent string, c journal.Child) string {
	if c.Run == "" {
		return fmt.Sprintf("There is no child Run of Agent %s: %s", agent, c.Message)
	}
	return fmt.Sprintf("Child Run %s of Agent %s ended: %s", c.Run, agent, c.Reason)
}

// FreeID returns an id for a new request about a call, which no request had and no
// decision named before. The id of a request for approval ends in the digest of what
// would be called; a question has none.
func FreeID(call, sum string, asked []state.Asked, answered map[string]journal.Decision) string {
	for n := len(asked); ; n++ {
		id := RequestID(call, n, sum)
		_, taken := answered[id]
		if !taken && !slices.ContainsFunc(asked, func(q state.Asked) bool { return q.ID == id }) {
			return id
		}
	}
}

// MaxRequestID is the most bytes of an id that ends in a digest. A Decision on the
// request is named <run>.<id>, or <run>.<id>.2 and so on after one was refused, which
// leaves task.MaxRequest bytes for both.
const MaxRequestID = task.MaxRequest - len(".999")

// RequestID is the id of a request about a call, of which there were so many before.
// Below several agents the id of a call can be too long: then its hash stands for it.
func RequestID(call string, before int, sum string) string {
	suffix := ""
	if before > 0 {
		suffix = fmt.Sprintf("-%d", before+1)
	}
	if sum == "" {
		return call + suffix
	}
	suffix += "-" + digest.Short(sum)
	if len(call)+len(suffix) > MaxRequestID {
		call = "h" + digest.Short(task.Hash([]byte(call)))
	}
	return call + suffix
}

// CallOf returns the call that a request is about, from the id of the request. It
// does not know calls whose ids are hashed: those are in the journal.
func CallOf(request string) string {
	call, _, _ := strings.Cut(request, "-")
	return call
}

// DisplayArgs is arguments for people: in their one form, and nothing in them that
// cannot be seen.
func DisplayArgs(args json.RawMessage) string {
	canonical, err := digest.Canonical(args)
	if err != nil {
		return redact.Printable(string(args))
	}
	var out strings.Builder
	for _, r := range string(canonical) {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// maxChildren is how many of the requests that are shown may be for child Runs:
// people are asked beside them.
const maxChildren = task.MaxPending - 2

// A display is the space that a report has for requests.
type display struct{ shown, size, children, childSize int }

// display are the requests that a report has space for, oldest first. What was
// shown stays until it is over: a user may be deciding, or a child Run is under way.
// Of the others people's come first, then those for child Runs, each in the order
// in which they were asked.
func (o *openRequests) display() []task.Pending {
	var d display
	for _, q := range o.all {
		if q.shown {
			d.put(q)
		}
	}
	d.fill(o.all, func(q *Request) bool { return q.Kind != task.PendingDelegation })
	d.fill(o.all, func(q *Request) bool { return q.Kind == task.PendingDelegation })
	var all []task.Pending
	for _, q := range o.all {
		if q.shown {
			all = append(all, q.Pending)
		}
	}
	return all
}

// fill shows what is not shown yet, one after the other, until the next does not
// fit: a small one does not overtake a large one.
func (d *display) fill(open []*Request, of func(*Request) bool) {
	for _, q := range open {
		if q.shown || !of(q) {
			continue
		}
		if !d.fits(q) {
			return
		}
		q.shown = true
		d.put(q)
	}
}

func (d *display) put(q *Request) {
	d.shown++
	d.size += q.Size()
	if q.Kind == task.PendingDelegation {
		d.children++
		d.childSize += q.Size()
	}
}

// fits says whether there is space for one more. The first always fits; those for
// child Runs have a share of it.
func (d *display) fits(q *Request) bool {
	if q.Kind == task.PendingDelegation && d.children > 0 && (d.children == maxChildren || d.childSize+q.Size() > task.MaxDelegated) {
		return false
	}
	return d.shown == 0 || d.shown < task.MaxPending && d.size+q.Size() <= task.MaxAsked
}
