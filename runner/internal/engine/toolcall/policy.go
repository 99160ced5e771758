package toolcall

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Policy decides on a call before it is made, on its final arguments; by is
// where in the tree of agents the call is made. It must answer the same for the
// same call.
type Policy interface {
	Decide(ctx context.Context, c step.Call, by step.Scope) PolicyResult
}

// Answer is what a Policy says of a call.
type Answer string

// The answers of a Policy. Whatever is none of them asks.
const (
	Allow Answer = "Allow" // it is made
	Deny  Answer = "Deny"  // it is not made; the model reads why
	Ask   Answer = "Ask"   // a person decides
)

// A PolicyResult is what a Policy decides about a call, and why.
type PolicyResult struct {
	Answer Answer
	// Rule names the rule that decided, Reason is what people and the model are told.
	Rule, Reason string
	// Groups are those whose members may decide where it asks; empty: whoever may
	// make decisions.
	Groups []string
	// Once says that it asks about this one call and no others like it: what people
	// approve is never good for the rest of the Run.
	Once bool
}

// The policies of a session are its own and those of the sessions above it.
type policies struct {
	state   *state.Store
	options *Options
}

// above are those of the session above; nil: there is none.
func (p *policies) above() *policies {
	if p.options.Parent == nil {
		return nil
	}
	return &p.options.Parent.policies
}

// governed says whether any policy has a say in the calls of the session.
func (p *policies) governed() bool {
	for at := p; at != nil; at = at.above() {
		if at.options.Policy != nil {
			return true
		}
	}
	return false
}

// judge has the session's own policy and that of each agent above it decide on a
// call. All must allow it: one that denies wins over one that asks. What people
// approved already, for this call or for the rest of the Run, does not ask again.
// Of several that ask the first is what people are shown; they decide for all,
// as far as the groups are the same. A rule with other groups asks in its turn.
func (p *policies) judge(ctx context.Context, c step.Call, sum string) (PolicyResult, journal.Source) {
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
		case v.Answer == Allow, !v.Once && p.released(from), p.approved(c.ID, sum, v.Groups):
		case strictest.Answer != Ask:
			strictest, source = v, from
			strictest.Answer = Ask
		case len(strictest.Groups) == 0:
			strictest.Groups = v.Groups
		}
	}
	return strictest, source
}

// released says whether people approved, for the rest of the Run, all that a rule
// asks about.
func (p *policies) released(from journal.Source) (released bool) {
	p.state.View(func(now *state.Run) { released = now.Released(from) })
	return released
}

// approved says whether people approved a call already who may decide for a rule
// with these groups.
func (p *policies) approved(call, sum string, groups []string) (approved bool) {
	p.state.ViewSession(p.options.Name, func(now *state.Session) {
		approved = slices.ContainsFunc(now.Requests[call], func(q state.Asked) bool {
			d, decided := now.Answers[q.ID]
			return decided && !q.Spent && approves(d, sum) && (len(groups) == 0 || slices.Equal(groups, q.Groups))
		})
	})
	return approved
}

// allows says whether they let a call be made without a person.
func (p *policies) allows(ctx context.Context, name string, args json.RawMessage) bool {
	if !p.governed() {
		return true
	}
	v, _ := p.judge(ctx, step.Call{Name: name, Args: args}, "")
	return v.Answer == Allow
}
