package engine

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
func (s *session) governed() bool {
	for at := s; at != nil; at = at.parent {
		if at.Policy != nil {
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
func (s *session) judge(ctx context.Context, c step.Call, sum string) (PolicyResult, journal.Source) {
	strictest, source := PolicyResult{Answer: Allow}, journal.Source{}
	for at := s; at != nil; at = at.parent {
		if at.Policy == nil {
			continue
		}
		v := at.Policy.Decide(ctx, c, s.scope)
		from := journal.Source{Agent: at.Agent.Name, Rule: v.Rule, Tool: c.Name}
		switch {
		case v.Answer == Deny:
			return v, from
		case v.Answer == Allow, !v.Once && s.released(from), s.approved(c.ID, sum, v.Groups):
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
func (j *job) Authorize(ctx context.Context, args json.RawMessage) *tool.Error {
	s := j.session
	if !s.governed() {
		return nil
	}
	args = s.Redact.JSON(args)
	v, _ := s.judge(ctx, step.Call{ID: j.call.ID, Name: j.call.Name, Args: args}, s.Digest(j.call.Name, args))
	switch v.Answer {
	case Allow:
		return nil
	case Deny:
		return denial(v)
	case Ask:
	}
	return &tool.Error{Message: resultUnapproved, Recommendations: []string{adviceUnapproved}}
}

// released says whether people approved, for the rest of the Run, all that a rule
// asks about.
func (s *session) released(from journal.Source) (released bool) {
	s.state.View(func(now *state.Run) { released = now.Released(from) })
	return released
}

// approved says whether people approved a call already who may decide for a rule
// with these groups.
func (s *session) approved(call, sum string, groups []string) (approved bool) {
	s.state.ViewSession(s.name, func(now *state.Session) {
		approved = slices.ContainsFunc(now.Requests[call], func(q state.Asked) bool {
			d, decided := now.Answers[q.ID]
			return decided && !q.Spent && approves(d, sum) && (len(groups) == 0 || slices.Equal(groups, q.Groups))
		})
	})
	return approved
}
