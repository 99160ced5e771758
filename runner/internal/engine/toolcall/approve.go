package toolcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// permit returns once the call may be made, with the digest of what may be, or
// why it may not. What a person approves is what runs: whoever goes on from here
// holds the call to the digest once more.
func (t *toolCall) permit(ctx context.Context, c *tool.Call) (sum string, refused *tool.Error, err error) {
	r := t.runner
	if t.spec.Ends || !r.policies.governed() { // a Run can always end
		return "", nil, nil
	}
	if _, err := digest.Canonical(c.Args); err != nil {
		return "", &tool.Error{Message: fmt.Sprintf(ResultAmbiguous, err)}, nil
	}
	sum = t.digest(c)
	if t.goesOn(sum) {
		return sum, nil, nil
	}
	call := step.Call{ID: t.call.ID, Name: t.call.Name, Args: c.Args}
	for {
		v, from := r.policies.judge(ctx, call, sum)
		switch v.Answer {
		case Allow:
			return sum, nil, nil
		case Deny:
			return "", denial(v), nil
		case Ask:
		}
		q, err := t.requestOfCall(call, sum, v, from)
		if err != nil {
			return "", nil, t.fail(err)
		}
		if refused, err = t.consent(ctx, q); refused != nil || err != nil {
			return "", refused, err
		}
	}
}

// digest is what a call is known by to whoever approves it.
func (t *toolCall) digest(c *tool.Call) string { return t.runner.config.Digest(t.call.Name, c.Args) }

// goesOn says whether the call was begun in an earlier attempt as it is now: it
// was allowed then. That is good for one time.
func (t *toolCall) goesOn(sum string) bool {
	was := t.intent
	t.intent = nil
	return was != nil && t.runner.config.Digest(was.Name, was.Args) == sum
}

// consent waits for a person to approve; nil: they did, or what they said makes
// the policy worth asking again.
func (t *toolCall) consent(ctx context.Context, q *approval.Request) (*tool.Error, error) {
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
		return refusal(ResultNobody), nil
	case !decided:
		return refusal(ResultUndecided), nil
	case d.Type == task.DecisionDeny:
		return refusal(because(fmt.Sprintf(ResultDenied, cmp.Or(d.By, "a person")), d.Reason)), nil
	}
	return nil, nil
}

// requestOfCall is what a person is asked about a call, as it is shown.
func (t *toolCall) requestOfCall(c step.Call, sum string, v PolicyResult, from journal.Source) (*approval.Request, error) {
	r := t.runner
	want := journal.Request{CallID: c.ID, Digest: sum, Groups: v.Groups, Source: from}
	if t.written != "" {
		want.Args, want.Written = c.Args, t.written
	}
	asked, err := r.asks(want)
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
			Digest: sum, Rule: task.Cut(v.Rule, task.MaxRule), Approvers: task.ApproversOf(asked.Groups),
		},
	}, nil
}

// asks returns what people are asked already of what is wanted, or records that
// they are asked something new. One that was used up is not asked again, so its
// id belongs to one decision.
func (r *Runner) asks(want journal.Request) (state.Asked, error) {
	free, known := r.asked(want)
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
	_, known = r.asked(want)
	return *known, nil
}

// asked is what people were asked about a call that is what is wanted; nil:
// nothing, and free is what to call it then.
func (r *Runner) asked(want journal.Request) (free string, known *state.Asked) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) {
		requests := now.Requests[want.CallID]
		for _, q := range requests {
			if q.Digest == want.Digest && q.Source == want.Source && slices.Equal(q.Groups, want.Groups) && !q.Spent {
				known = &q
			}
		}
		free = approval.FreeID(want.CallID, want.Digest, requests, now.Answers)
	})
	return free, known
}

// decision is what a person decided on a request, if they did.
func (r *Runner) decision(request string) (d journal.Decision, decided bool) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) { d, decided = now.Answers[request] })
	return d, decided
}

// approves says whether a decision lets the call of that digest be made.
func approves(d journal.Decision, sum string) bool {
	return d.Type == task.DecisionApprove && d.Digest == sum
}

// denial is what the model reads of a call that the policy denies.
func denial(v PolicyResult) *tool.Error {
	if v.Rule == "" {
		return refusal(because(ResultForbidden, v.Reason))
	}
	return refusal(because(fmt.Sprintf(ResultForbiddenBy, v.Rule), v.Reason))
}

func refusal(message string) *tool.Error {
	return &tool.Error{Message: message, Recommendations: []string{AdviceDenied}}
}

func because(what, why string) string {
	if why == "" {
		return what + "."
	}
	return what + ": " + why
}
