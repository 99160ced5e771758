package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Policy decides about a call before it is made, by its final arguments. by is the position in the tree of agents
// where the call is made. Equal calls must get equal answers.
type Policy interface {
	Decide(ctx context.Context, c step.Call, by step.Scope) PolicyResult
}

// Answer is the decision of a Policy about a call.
type Answer string

// The answers of a Policy. Any other value counts as Ask.
const (
	Allow Answer = "Allow" // it is made
	Deny  Answer = "Deny"  // it is not made; the model reads why
	Ask   Answer = "Ask"   // a person decides
)

// A PolicyResult is what a Policy decides about a call, and why.
type PolicyResult struct {
	Answer Answer
	// Rule names the rule that decided. Reason is for users and the model.
	Rule, Reason string
	// Approvers are the users who may decide if the answer is Ask.
	Approvers task.Approvers
	// Once reports that an approval can be for this one call only, never for the rest of the Run.
	Once bool
}

// policies are the policy of a session and those of the sessions above it.
type policies struct {
	state   *state.Store
	options *Options
}

// above returns the policies of the session above, or nil.
func (p *policies) above() *policies {
	if p.options.Parent == nil {
		return nil
	}
	return &p.options.Parent.policies
}

// exist reports whether any policy applies to the calls of the session.
func (p *policies) exist() bool {
	for at := p; at != nil; at = at.above() {
		if at.options.Policy != nil {
			return true
		}
	}
	return false
}

// evaluate asks the session's own policy and the policy of each agent above it about a call. All must allow it, and
// Deny overrides Ask. A call that users approved already, alone or for the rest of the Run, does not ask again. If
// several policies ask, users see the first question, and one approval counts for all policies with the same approvers.
// Policies with other approvers ask afterwards.
func (p *policies) evaluate(ctx context.Context, c step.Call, sum string) (PolicyResult, journal.Source) {
	strictest, source := PolicyResult{Answer: Allow}, journal.Source{}
	for at := p; at != nil; at = at.above() {
		if at.options.Policy == nil {
			continue
		}
		v := at.options.Policy.Decide(ctx, c, p.options.Scope)
		from := journal.Source{Agent: at.options.Agent, Rule: v.Rule, Tool: c.Name}
		switch {
		case v.Answer == Deny:
			return v, from
		case v.Answer == Allow, !v.Once && p.isReleased(from), p.isApproved(c.ID, sum, v.Approvers):
		case strictest.Answer != Ask:
			strictest, source = v, from
			strictest.Answer = Ask
		case strictest.Approvers.AreAll():
			strictest.Approvers = v.Approvers
		}
	}
	return strictest, source
}

// isReleased reports whether a user approved every call that a rule asks about, for the rest of the Run.
func (p *policies) isReleased(from journal.Source) (released bool) {
	p.state.View(func(now *state.Run) { released = now.Released(from) })
	return released
}

// isApproved reports whether a call was already approved by a user who may decide for a rule with these approvers.
func (p *policies) isApproved(call, sum string, by task.Approvers) (approved bool) {
	p.state.ViewSession(p.options.Name, func(now *state.Session) {
		approved = slices.ContainsFunc(now.Requests[call], func(q state.Asked) bool {
			d, decided := now.Answers[q.ID]
			return decided && !q.Spent && approves(d, sum) && (by.AreAll() || by.Equal(approversOf(q.Request)))
		})
	})
	return approved
}

// allows reports whether the policies let a call be made without asking a user.
func (p *policies) allows(ctx context.Context, name string, args json.RawMessage) bool {
	if !p.exist() {
		return true
	}
	v, _ := p.evaluate(ctx, step.Call{Name: name, Args: args}, "")
	return v.Answer == Allow
}

// permit waits until the policies or a user allow the call. It returns the digest of the allowed call, or a refusal.
// The digest is compared again directly before the call, so that exactly what was approved runs.
func (t *toolCall) permit(ctx context.Context, c *tool.Call) (sum string, refused *tool.Error, err error) {
	r := t.runner
	if t.ends() || !r.policies.exist() { // a Run can always end
		return "", nil, nil
	}
	sum = t.digest(c)
	if t.wasAllowed(sum) {
		return sum, nil, nil
	}
	call := step.Call{ID: t.call.ID, Name: t.call.Name, Args: c.Args}
	for {
		v, from := r.policies.evaluate(ctx, call, sum)
		switch v.Answer {
		case Allow:
			return sum, nil, nil
		case Deny:
			return "", t.deny(task.DeniedByPolicy, v.Rule, deniedByPolicy(v)), nil
		case Ask:
		}
		q, err := t.requestOfCall(call, sum, v, from)
		if err != nil {
			return "", nil, t.fail(err)
		}
		if refused, err = t.awaitApproval(ctx, q); refused != nil || err != nil {
			return "", refused, err
		}
	}
}

// digest identifies a call to approvers.
func (t *toolCall) digest(c *tool.Call) string { return t.runner.config.Digest(t.call.Name, c.Args) }

// wasAllowed reports whether an earlier attempt began the same call, which was allowed then. This counts once.
func (t *toolCall) wasAllowed(sum string) bool {
	was := t.intent
	t.intent = nil
	return was != nil && t.runner.config.Digest(was.Name, was.Args) == sum
}

// awaitApproval waits for a Decision. It returns nil if the call was approved, or if the policies must decide again.
func (t *toolCall) awaitApproval(ctx context.Context, q *approval.Request) (*tool.Error, error) {
	r := t.runner
	d, decided := r.decision(q.ID)
	var err error
	if !decided {
		d, decided, err = r.config.Requests.Await(ctx, q)
	}
	end, ended := errors.AsType[*task.EndError](err)
	switch {
	case errors.Is(err, signals.ErrStopped):
		return &tool.Error{Message: ResultStopped}, nil
	case ended && end.Reason == task.ReasonDurationLimit:
		return &tool.Error{Message: ResultLimit}, nil
	case err != nil:
		return nil, t.fail(err)
	case !decided && !r.config.CanAsk:
		return t.deny(task.DeniedByTimeout, q.Rule, deniedError(ResultNoApprovers)), nil
	case !decided:
		return t.deny(task.DeniedByTimeout, q.Rule, deniedError(ResultUndecided)), nil
	case d.Type == task.DecisionDeny:
		return t.deny(task.DeniedByApprover, q.Rule, deniedError(withReason(fmt.Sprintf(ResultDenied, cmp.Or(d.By, "a person")), d.Reason))), nil
	}
	return nil, nil
}

// approversOf returns the users who may decide about a request.
func approversOf(q journal.Request) task.Approvers {
	return task.Approvers{Groups: q.Groups, Users: q.Users}
}

// requestOfCall returns the request for approval of a call, as the status shows it.
func (t *toolCall) requestOfCall(c step.Call, sum string, v PolicyResult, from journal.Source) (*approval.Request, error) {
	r := t.runner
	want := journal.Request{CallID: c.ID, Digest: sum, Groups: v.Approvers.Groups, Users: v.Approvers.Users, Source: from}
	if t.written != "" {
		want.Args, want.Written = c.Args, t.written
	}
	asked, err := r.ensureRequest(want)
	if err != nil {
		return nil, err
	}
	args := approval.DisplayArgs(c.Args)
	reason := cmp.Or(v.Reason, fmt.Sprintf("The policy asks before %s is called.", c.Name))
	return &approval.Request{
		Session: r.records, Reason: approval.ForApproval, Since: asked.Since, Source: from, FullArgs: args, Once: v.Once,
		Pending: task.Pending{
			ID: asked.ID, Kind: task.PendingApproval, Agent: task.Cut(r.options.Scope.Agent, task.MaxAsker),
			Question: task.Cut(redact.Printable(r.config.Redact.String(reason)), task.MaxMessage),
			Tool:     c.Name, Args: task.Middle(task.Cut(args, len(args)), task.MaxArgs), ArgsTruncated: len(args) > task.MaxArgs,
			Digest: sum, Rule: task.Cut(v.Rule, task.MaxRule), Approvers: approversOf(asked.Request).Restricted(),
		},
	}, nil
}

// ensureRequest returns the request that was already made for a call, or records a new one. A request whose Decision
// was used is not made again, so that its id belongs to one Decision.
func (r *Runner) ensureRequest(want journal.Request) (state.Asked, error) {
	free, known := r.findRequest(want)
	if known != nil {
		return *known, nil
	}
	want.ID = free
	if !r.config.CanAsk {
		return state.Asked{Request: want}, nil
	}
	if err := r.records.Record(journal.Record{Kind: journal.KindAsk, Request: &want}); err != nil {
		return state.Asked{}, fmt.Errorf("recording a request: %w", err)
	}
	_, known = r.findRequest(want)
	return *known, nil
}

// findRequest returns the request that was already made for a call. If there is none it returns nil, and in free an id
// for a new one.
func (r *Runner) findRequest(want journal.Request) (free string, known *state.Asked) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) {
		requests := now.Requests[want.CallID]
		for _, q := range requests {
			if q.Digest == want.Digest && q.Source == want.Source && approversOf(q.Request).Equal(approversOf(want)) && !q.Spent {
				known = &q
			}
		}
		free = approval.FreeID(want.CallID, want.Digest, requests, now.Answers)
	})
	return free, known
}

// decision returns the Decision on a request, if there is one.
func (r *Runner) decision(request string) (d journal.Decision, decided bool) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) { d, decided = now.Answers[request] })
	return d, decided
}

// approves reports whether a Decision allows the call with a digest.
func approves(d journal.Decision, sum string) bool {
	return d.Type == task.DecisionApprove && d.Digest == sum
}

// deniedByPolicy returns what the model reads about a call that the policy denies.
func deniedByPolicy(v PolicyResult) *tool.Error {
	if v.Rule == "" {
		return deniedError(withReason(ResultForbidden, v.Reason))
	}
	return deniedError(withReason(fmt.Sprintf(ResultForbiddenBy, v.Rule), v.Reason))
}

func deniedError(message string) *tool.Error {
	return &tool.Error{Message: message, Recommendations: []string{AdviceDenied}}
}

func withReason(what, why string) string {
	if why == "" {
		return what + "."
	}
	return what + ": " + why
}

// canonicalTimeout bounds how long a tool may take to compute canonical arguments: a file system may hang.
const canonicalTimeout = 30 * time.Second

// Texts for the model about calls whose arguments have no canonical form.
const (
	ResultUncanonical      = "The arguments of %s could not be checked: %v. The call was not made; try it again."
	ResultInvalidCanonical = "The arguments of %s could not be checked: their canonical form does not fit the tool: %s"
)

// canonicalize computes the canonical arguments of a call, once, before any layer sees them. The transcript keeps what
// the model wrote.
func (t *toolCall) canonicalize(ctx context.Context) {
	if t.refusal != nil || t.args != nil {
		return
	}
	args, refused := t.canonical(ctx, t.call.Args)
	if refused != nil && ctx.Err() == nil {
		t.refusal = refused
		return
	}
	if refused != nil {
		args = t.call.Args // the call is not made any more
	}
	t.args = args
}

// canonical returns the canonical form of valid arguments. If a policy decided about the arguments in an earlier
// attempt, it returns the form from then, even if paths resolve differently now: the tool refuses that form if it is no
// longer canonical.
func (t *toolCall) canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	if t.tool.Canonicalize == nil {
		return args, nil
	}
	r := t.runner
	t.written = digest.Call(t.call.Name, args)
	if judged, ok := r.recordedArgs(t.call.ID, t.written); ok {
		return judged, nil
	}
	made, refused := t.resolve(ctx, args)
	if refused != nil || string(made) == string(args) {
		return made, refused
	}
	made = r.config.Redact.JSON(made)
	if wrong := r.check(t.call.Name, made); wrong != nil {
		return nil, &tool.Error{Message: fmt.Sprintf(ResultInvalidCanonical, t.call.Name, wrong.Message)}
	}
	return made, nil
}

// recordedArgs returns the canonical form with which a call was already decided about or begun.
func (r *Runner) recordedArgs(call, written string) (args json.RawMessage, known bool) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) { args, known = now.Canonical(call, written) })
	return args, known
}

// resolve asks the tool for the canonical form, for at most canonicalTimeout. A panic in the tool refuses the call.
func (t *toolCall) resolve(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, canonicalTimeout, errTimeout)
	defer cancel()
	type form struct {
		args    json.RawMessage
		refused *tool.Error
	}
	done := make(chan form, 1)
	go func() {
		var f form
		defer func() {
			if p := recover(); p != nil {
				f = form{refused: &tool.Error{Message: fmt.Sprintf(ResultUncanonical, t.call.Name, fmt.Sprintf("the tool crashed: %v", p))}}
			}
			done <- f
		}()
		f.args, f.refused = t.tool.CanonicalArgs(ctx, args)
	}()
	select {
	case f := <-done:
		return f.args, f.refused
	case <-ctx.Done():
		return nil, &tool.Error{Message: fmt.Sprintf(ResultUncanonical, t.call.Name, context.Cause(ctx))}
	}
}
