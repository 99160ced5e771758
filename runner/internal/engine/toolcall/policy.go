package toolcall

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
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

// governed says whether any policy has a say in the calls of the session.
func (r *Runner) governed() bool {
	for at := r; at != nil; at = at.options.Parent {
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
func (r *Runner) judge(ctx context.Context, c step.Call, sum string) (PolicyResult, journal.Source) {
	strictest, source := PolicyResult{Answer: Allow}, journal.Source{}
	for at := r; at != nil; at = at.options.Parent {
		if at.options.Policy == nil {
			continue
		}
		v := at.options.Policy.Decide(ctx, c, r.options.Scope)
		from := journal.Source{Agent: at.options.Agent, Rule: v.Rule, Tool: c.Name}
		switch {
		case v.Answer == Deny:
			return v, from
		case v.Answer == Allow, !v.Once && r.released(from), r.approved(c.ID, sum, v.Groups):
		case strictest.Answer != Ask:
			strictest, source = v, from
			strictest.Answer = Ask
		case len(strictest.Groups) == 0:
			strictest.Groups = v.Groups
		}
	}
	return strictest, source
}

// Authorize implements [tool.Session].
func (t *toolCall) Authorize(ctx context.Context, args json.RawMessage) *tool.Error {
	r := t.runner
	if !r.governed() {
		return nil
	}
	args = r.config.Redact.JSON(args)
	v, _ := r.judge(ctx, step.Call{ID: t.call.ID, Name: t.call.Name, Args: args}, r.config.Digest(t.call.Name, args))
	switch v.Answer {
	case Allow:
		return nil
	case Deny:
		return denial(v)
	case Ask:
	}
	return &tool.Error{Message: ResultUnapproved, Recommendations: []string{AdviceUnapproved}}
}

// released says whether people approved, for the rest of the Run, all that a rule
// asks about.
func (r *Runner) released(from journal.Source) (released bool) {
	r.config.State.View(func(now *state.Run) { released = now.Released(from) })
	return released
}

// approved says whether people approved a call already who may decide for a rule
// with these groups.
func (r *Runner) approved(call, sum string, groups []string) (approved bool) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) {
		approved = slices.ContainsFunc(now.Requests[call], func(q state.Asked) bool {
			d, decided := now.Answers[q.ID]
			return decided && !q.Spent && approves(d, sum) && (len(groups) == 0 || slices.Equal(groups, q.Groups))
		})
	})
	return approved
}
