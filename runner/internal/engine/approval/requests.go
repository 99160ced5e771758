// Package approval asks users for Decisions and the operator for child Runs, and waits for the outcome.
//
// A Request is shown in the Run's status while a session or a call waits for it (requests.go). Decisions
// are matched with the requests (decisions.go), and so are the results of child Runs. One loop does all waiting
// (wait.go). Activity knows when the whole Run waits. A runner whose journal is on a volume then leaves (suspend.go),
// and the next attempt repeats the open requests.
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

// DefaultWait bounds one wait for a user, and a wait until a time that a model provider named. The task can set another
// bound.
const DefaultWait = 7 * 24 * time.Hour

// A Session records the outcomes of its requests, and emits its events.
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
	// CanAsk reports whether approvers exist, CanStartRuns whether an operator creates child Runs.
	CanAsk, CanStartRuns bool
	// MaxWait is for how long a request waits for a Decision; 0: seven days.
	MaxWait time.Duration
	// Durable reports that another runner can resume the Run. This runner then leaves after everything has waited for
	// Hold; 0: two minutes.
	Durable bool
	Hold    time.Duration
	// Busy reports whether something runs that would end with the runner, such as a command in the background; nil:
	// nothing does.
	Busy func() bool

	// Reached returns the first limit of the Run that is used up, or nil.
	Reached func() *meter.Limit
	// Grant raises the limits of the Run.
	Grant func(d journal.Decision)
	// Report has the status updated soon, ReportNow at once; neither waits for it. ReportedState returns the waiting
	// state of the last report.
	Report, ReportNow func()
	ReportedState     func() string
}

// Requests are the open requests to users and to the operator, and the sessions and calls that wait for them.
type Requests struct {
	config   Config
	activity *Activity
	// suspended is the reason why the runner leaves; nil: it does not. leaving is closed when it is set.
	suspended atomic.Pointer[suspension]
	leaving   chan struct{}

	mu   sync.Mutex // held while a decision is recorded
	open openRequests
	// models are the waits for models.
	models []*ModelWait
}

// New returns the Requests of a Run, without an open request.
func New(c Config) *Requests {
	c.Hold = cmp.Or(c.Hold, DefaultHold)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultWait)
	return &Requests{config: c, activity: c.Activity, leaving: make(chan struct{})}
}

// A Request is a question to users or to the operator, with its answer.
type Request struct {
	task.Pending
	Session Session      // whose state tells of it
	Limit   *meter.Limit // that is used up
	Reason  WaitReason
	Since   time.Time
	// Only for the approval of a call: the rule that asks, the whole arguments, and whether the approval is for this
	// call alone.
	Source   journal.Source
	FullArgs string
	Once     bool
	// Check returns what is wrong with an answer; nil: any answer is accepted.
	Check func(string) error

	waiters  int
	shown    bool          // a report has shown it
	done     chan struct{} // closed once it is decided
	decision journal.Decision
	expired  bool // no Decision was made in time
}

// Await makes a request and waits for its Decision. It returns false if no user decides in time, or if there are no
// approvers. For a request for a child Run, it returns when the child Run has ended.
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

// post adds a request to the open ones, or returns the open request with the same id that another session or call made.
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

// expiry returns until when a request waits. It is zero, without a bound, for a request for a child Run.
func (r *Requests) expiry(q *Request) time.Time {
	if q.Kind == task.PendingDelegation {
		return time.Time{}
	}
	return q.Since.Add(r.config.MaxWait)
}

// emit emits the event of a request, with the whole arguments.
func (r *Request) emit() {
	switch {
	case r.Cancelled:
		r.Session.Emit("The call was cancelled: the child Run of Agent "+r.Agent+" is to be stopped", events.Pending(r.Pending))
		return
	case r.Kind == task.PendingDelegation:
		r.Session.Emit("A child Run of Agent "+r.Agent+" is asked for: "+task.Cut(redact.Printable(r.Args), task.MaxSummary),
			events.ChildStarted{Session: r.ID, Agent: r.Agent, Args: json.RawMessage(r.Args)})
		return
	}
	r.Session.Emit("Waiting for a Decision: "+task.Cut(r.Question, task.MaxSummary), r.logged())
}

// logged returns a request as the log has it, with the whole arguments.
func (r *Request) logged() events.Pending {
	p := events.Pending(r.Pending)
	if r.Kind == task.PendingApproval {
		p.Args, p.ArgsTruncated = r.FullArgs, false
	}
	return p
}

// stopWaiting closes a request if no session or call waits for it any more. If the runner leaves, the request stays
// open.
func (r *Requests) stopWaiting(q *Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.waiters--; q.waiters == 0 && r.suspended.Load() == nil {
		r.open.close(q)
	}
}

// expire closes a request whose time is over, unless a user decided at the last moment.
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

// LimitReached reports whether a limit of the Run is used up, which ends the Run.
func (r *Requests) LimitReached() bool { return r.config.Reached() != nil }

// Pending returns the open requests as the status shows them.
func (r *Requests) Pending() []task.Pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open.display()
}

// ReportDecision emits the event of a Decision.
func (r *Requests) ReportDecision(by Session, d journal.Decision) {
	message := fmt.Sprintf("%s by %s: %s", d.Type, d.By, d.Name)
	if d.Refused != "" {
		message = "Refused: " + d.Name + ": " + d.Refused
	}
	by.Emit(message, events.Decided{Name: d.Name, Request: d.Request, Refused: d.Refused, Type: d.Type, By: d.By})
	r.config.ReportNow()
}

// applyChildResults records the results of child Runs that calls wait for. Every wait calls it. The result of any other
// child Run is ignored: it was recorded before, or never requested.
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

// recordChildResult records the result of a child Run with its usage, and passes it to the waiting call.
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

// redactOutput returns the output of a child Run without secrets. If it was JSON, it still is.
func (r *Requests) redactOutput(output string) string {
	if !json.Valid([]byte(output)) {
		return r.config.Redact.String(output)
	}
	return string(r.config.Redact.JSON(json.RawMessage(output)))
}

// endOfChild describes for users how a child Run ended.
func endOfChild(agent string, c journal.Child) string {
	if c.Run == "" {
		return fmt.Sprintf("There is no child Run of Agent %s: %s", agent, c.Message)
	}
	return fmt.Sprintf("Child Run %s of Agent %s ended: %s", c.Run, agent, c.Reason)
}

// FreeID returns an id for a new request about a call. No request has had the id, and no Decision has named it. The id
// of a request for approval ends in the digest of the call; the id of a question has no digest.
func FreeID(call, sum string, asked []state.Asked, answered map[string]journal.Decision) string {
	for n := len(asked); ; n++ {
		id := RequestID(call, n, sum)
		_, taken := answered[id]
		if !taken && !slices.ContainsFunc(asked, func(q state.Asked) bool { return q.ID == id }) {
			return id
		}
	}
}

// MaxRequestID is the maximum length in bytes of an id that ends in a digest. A Decision on the request is named
// <run>.<id>, or <run>.<id>.2 and so on after a refused one, and task.MaxRequest bytes are left for the id with that
// number.
const MaxRequestID = task.MaxRequest - len(".999")

// RequestID returns the id of a request about a call after a number of earlier requests. If the id of the call is too
// long, as below several agents, its hash is used.
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

// CallOf returns the id of the call in the id of a request. If RequestID has hashed the id of the call, the result is
// the hash and matches no call: the journal then has the call.
func CallOf(request string) string {
	call, _, _ := strings.Cut(request, "-")
	return call
}

// DisplayArgs returns arguments for users: in their canonical form, without invisible characters.
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

// maxChildren is how many of the shown requests may be for child Runs. The others are left for requests to users.
const maxChildren = task.MaxPending - 2

// A display is the space that a report has for requests, and how much of it is used.
type display struct{ shown, size, children, childSize int }

// display returns the requests that fit into a report, oldest first. A request that was shown stays until it is closed,
// because a user may be deciding or a child Run may be active. Then come requests to users, then requests for child
// Runs, each in the order in which they were made.
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

// fill adds requests that are not shown yet, in order, until one does not fit: a small request does not overtake a
// large one.
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

// fits reports whether there is space for one more request. The first always fits. Requests for child Runs may use only
// a share of the space.
func (d *display) fits(q *Request) bool {
	if q.Kind == task.PendingDelegation && d.children > 0 && (d.children == maxChildren || d.childSize+q.Size() > task.MaxDelegated) {
		return false
	}
	return d.shown == 0 || d.shown < task.MaxPending && d.size+q.Size() <= task.MaxAsked
}
