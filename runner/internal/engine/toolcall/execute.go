package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// DefaultTimeout bounds a call of a tool that sets no timeout.
const DefaultTimeout = 2 * time.Minute

// Execute brings each of the calls to its result, in parallel where the tools allow it. Calls that end the session come
// last, one after the other. An error means that the session cannot continue; calls that were not begun are then left
// open.
func (r *Runner) Execute(ctx context.Context, open []step.Call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The first failure counts, even if the context ended before it.
	var failed atomic.Pointer[error]
	fail := func(err error) {
		failed.CompareAndSwap(nil, &err)
		cancel(err)
	}
	calls, endings := r.plan(open)
	r.config.Activity.Leave() // the calls are what works now
	defer r.config.Activity.Enter()
	r.executeAll(ctx, calls, fail)
	for _, t := range endings {
		t.run(ctx, fail)
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return Failure(ctx)
}

// Failure returns the error that cancelled the turn from within, or that makes the rest of the session pointless. An
// interruption and the end of limits.duration are neither: next decides about them.
func Failure(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if end, ok := errors.AsType[*task.EndError](cause); ok && !endsRecording(end) {
		return nil
	}
	return cause
}

// plan turns open calls into toolCalls, in their order. Calls that end the session are separate.
func (r *Runner) plan(open []step.Call) (calls, endings []*toolCall) {
	st := r.read()
	last := st.Steps[len(st.Steps)-1]
	r.calls = r.calls[:0]
	for i, c := range last.Calls {
		if !contains(open, c.ID) {
			continue
		}
		t := r.prepare(last, c)
		t.seq = last.Seq + int64(i) + 1
		r.calls = append(r.calls, t)
		if t.refusal == nil && t.ends() {
			endings = append(endings, t)
			continue
		}
		if intent, begun := st.Intents[c.ID]; begun { // it goes on
			t.intent, t.begun = &intent, intent.Effect != string(tool.ReadOnly)
		} else {
			r.reserve(t)
		}
		calls = append(calls, t)
	}
	return calls, endings
}

// reserve reserves the call in the meter, or refuses it because a limit allows no more.
func (r *Runner) reserve(t *toolCall) {
	if t.refusal != nil {
		return
	}
	if t.reserved = r.records.Account().Reserve(); !t.reserved {
		t.refusal, t.overLimit = &tool.Error{Message: ResultTooMany}, true
	}
}

func contains(calls []step.Call, id string) bool {
	for _, c := range calls {
		if c.ID == id {
			return true
		}
	}
	return false
}

// prepare finds the tool of a call and checks its arguments against the schema.
func (r *Runner) prepare(turn step.Step, c step.Call) *toolCall {
	t := &toolCall{runner: r, call: c, session: &toolSession{runner: r, call: c}}
	switch turn.Finish {
	case step.FinishLength:
		t.refusal = &tool.Error{Message: ResultCut}
		return t
	case step.FinishRefusal:
		t.refusal = &tool.Error{Message: ResultRefused}
		return t
	case step.FinishStop, step.FinishCalls, step.FinishOther:
	}
	found, known := r.options.Tools.Find(c.Name)
	if !known {
		t.refusal = &tool.Error{Message: resultUnknown(c.Name, r.specs)}
		return t
	}
	t.tool = found
	t.tool.Concurrency = cmp.Or(found.Concurrency, tool.Sequential)
	t.refusal = r.check(c.Name, c.Args)
	r.warnOfUnvalidated(found, c.ID)
	return t
}

// check returns why a tool cannot be called with these arguments, or nil. Arguments that a policy, a user, a hook and
// the tool could read differently are refused for every tool.
func (r *Runner) check(name string, args json.RawMessage) *tool.Error {
	if wrong := r.options.Tools.Check(name, args); wrong != nil {
		return wrong
	}
	if _, err := digest.Canonical(args); err != nil {
		return &tool.Error{Message: fmt.Sprintf(ResultAmbiguous, err)}
	}
	return nil
}

// warnOfUnvalidated warns once if the arguments of a tool are not validated: its server must then refuse wrong ones.
func (r *Runner) warnOfUnvalidated(t tool.Tool, call string) {
	box, ok := r.options.Tools.(interface{ TakeUnvalidated(name string) string })
	if !ok {
		return
	}
	why := box.TakeUnvalidated(t.Name)
	if why == "" {
		return
	}
	from := "The tool " + t.Name
	if origin := t.Internal.Facts().Origin; origin.Toolset != "" {
		from = fmt.Sprintf("The tool %s of the Toolset %s", origin.Tool, origin.Toolset)
	}
	text := task.Cut(r.config.Redact.String(fmt.Sprintf("%s is called with arguments that are not validated: %s. The server has to check them itself; correct the schema that it offers", from, why)), task.MaxMessage)
	r.records.Emit(text, events.Warning{Text: text, Step: step.SeqOf(call)})
}

// executeAll starts calls in order, as many in parallel as the Agent allows. Each waits for the earlier calls that it
// must not overlap with.
func (r *Runner) executeAll(ctx context.Context, calls []*toolCall, fail func(error)) {
	if len(calls) == 1 {
		runRecovering(ctx, calls[0], fail)
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, max(r.options.Parallel, 1))
	for i, t := range calls {
		t.done = make(chan struct{})
		waitForEarlier(calls[:i], t, isAlone)
		t.canonicalize(ctx) // behind the commands before it, which may have made links
		t.path = pathOf(t.args)
		waitForEarlier(calls[:i], t, mustNotOverlap)
		slots <- struct{}{}
		all.Go(func() {
			defer func() { close(t.done); <-slots }()
			runRecovering(ctx, t, fail)
		})
	}
	all.Wait()
}

// waitForEarlier waits for the earlier calls that a call must not overlap with.
func waitForEarlier(earlier []*toolCall, t *toolCall, apart func(a, b *toolCall) bool) {
	for _, e := range earlier {
		if apart(e, t) {
			<-e.done
		}
	}
}

// runRecovering runs a call; a crash of the runner in it fails the turn.
func runRecovering(ctx context.Context, t *toolCall, fail func(error)) {
	defer Recover(fail)
	t.run(ctx, fail)
}

// isAlone reports whether one of two calls of a turn must not overlap with any other.
func isAlone(a, b *toolCall) bool {
	return a.refusal == nil && b.refusal == nil && (a.tool.Concurrency == tool.Sequential || b.tool.Concurrency == tool.Sequential)
}

// mustNotOverlap reports whether two calls of a turn must not run at the same time.
func mustNotOverlap(a, b *toolCall) bool {
	if a.refusal != nil || b.refusal != nil {
		return false
	}
	switch {
	case isAlone(a, b):
		return true
	case a.tool.Concurrency == tool.PerPath, b.tool.Concurrency == tool.PerPath:
		return mayTouch(a, b) && mayTouch(b, a)
	}
	return false
}

// mayTouch reports whether a call may access a path that another call names.
func mayTouch(a, b *toolCall) bool {
	p, q := a.path, b.path
	if p == "" {
		return a.tool.Concurrency == tool.PerPath // it names none, so it may be any
	}
	// Relative and absolute names of one file end alike.
	return q == "" || p == q || strings.HasSuffix(p, "/"+q) || strings.HasSuffix(q, "/"+p)
}

func pathOf(args json.RawMessage) string {
	var named struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(args, &named) != nil || named.Path == "" {
		return ""
	}
	return path.Clean(named.Path)
}

// A CrashError is a panic of the runner itself.
type CrashError struct {
	value any
	// Stack is the stack trace of the panic.
	Stack []byte
}

func (c *CrashError) Error() string { return fmt.Sprintf("the runner crashed: %v", c.value) }

// Recover passes on a panic as an error. It must be deferred.
func Recover(tell func(error)) {
	if p := recover(); p != nil {
		tell(&CrashError{value: p, Stack: debug.Stack()})
	}
}
