package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A gauge is one limit and how much of it is used.
type gauge struct {
	name      string
	reason    task.Reason
	used, max int64
	show      func(int64) string
	run       bool // it is the Run's own
}

func count(n int64) string { return fmt.Sprint(n) }

func duration(n int64) string { return (time.Duration(n) * time.Second).String() }

// The limits, in the order in which they are looked at. A cost that is not
// known counts as nothing, so that a cost limit is reached by what is known.
func gauges(used step.Meter, l task.Limits) [6]gauge {
	return [...]gauge{
		{name: "steps", reason: task.ReasonStepLimit, used: used.Steps, max: l.Steps, show: count},
		{name: "modelCalls", reason: task.ReasonStepLimit, used: used.ModelCalls, max: l.ModelCalls, show: count},
		{name: "toolCalls", reason: task.ReasonStepLimit, used: used.ToolCalls, max: l.ToolCalls, show: count},
		{name: "tokens", reason: task.ReasonTokenLimit, used: used.Usage.Total(), max: l.Tokens, show: count},
		{name: "cost", reason: task.ReasonCostLimit, used: used.Usage.CostMicroUSD, max: l.CostMicroUSD, show: task.Money},
		{name: "duration", reason: task.ReasonDurationLimit, used: used.DurationSeconds, max: l.DurationSeconds, show: duration},
	}
}

// reached is the first limit that is used up; nil when there is none.
func reached(used step.Meter, l task.Limits) *gauge {
	all := gauges(used, l)
	for i := range all {
		if g := &all[i]; g.max > 0 && g.used >= g.max {
			found := *g
			return &found
		}
	}
	return nil
}

// end is the end that a limit brings.
func (g gauge) end() *task.EndError {
	return task.End(g.reason, "Used %s of %s %s; raise limits.%s of the Agent (a Run can only lower them: see its spec.limits), or give the Run less to do",
		g.show(g.used), g.show(g.max), g.name, g.name)
}

// extensible says whether a person may grant more of it.
func (g gauge) extensible() bool {
	return g.run && (g.name == "steps" || g.name == "tokens" || g.name == "cost")
}

// granted is how much of a gauge a decision grants.
func (g gauge) granted(d task.Decision) int64 {
	switch g.name {
	case "steps":
		return d.Steps
	case "tokens":
		return d.Tokens
	case "cost":
		return d.CostMicroUSD
	}
	return 0
}

// near are the limits of which most is used: four fifths.
func near(used step.Meter, l task.Limits) []gauge {
	var most []gauge
	for _, g := range gauges(used, l) {
		if g.max > 0 && g.used >= g.max-g.max/5 && g.used < g.max {
			most = append(most, g)
		}
	}
	return most
}

// warnOfLimits says, once for each, that most of a limit of the Run is used.
func (r *run) warnOfLimits() {
	root := r.meter.root
	r.meter.mu.Lock()
	limits := root.limits
	r.meter.mu.Unlock()
	for _, g := range near(root.read(), limits) {
		if !r.board.warn(g.name) {
			continue
		}
		r.Events.Emit(r.root.scope, fmt.Sprintf("Used %s of %s %s", g.show(g.used), g.show(g.max), g.name),
			events.LimitNear{Limit: g.name, Used: g.used, Max: g.max})
	}
}

// raise asks a person for more of what is used up. Where nobody grants it in
// time the limit ends the work, as it would have without asking.
func (s *session) raise(ctx context.Context, g gauge) error {
	since, err := s.root.askedFor(g.request())
	if err != nil {
		return err
	}
	q := &request{
		since: since,
		gauge: &g, session: s.root, errand: forGrant,
		Pending: task.Pending{
			ID: g.request(), Kind: task.PendingLimit,
			Question: fmt.Sprintf("Used %s of %s %s. Grant more?", g.show(g.used), g.show(g.max), g.name),
		},
	}
	_, answered, err := s.await(ctx, q)
	switch {
	case errors.Is(err, errStopped):
		return nil // what comes next sees it too
	case err == nil && !answered:
		return g.end()
	}
	return err
}

// askedFor is since when people are asked for more of a limit: attempts before
// this one may have.
func (s *session) askedFor(request string) (time.Time, error) {
	if since := s.limitAsked(request); !since.IsZero() {
		return since, nil
	}
	if err := s.record(journal.Record{Kind: journal.KindAsk, Request: &journal.Request{ID: request}}); err != nil {
		return time.Time{}, fmt.Errorf("recording a request: %w", err)
	}
	return s.limitAsked(request), nil
}

func (s *session) limitAsked(request string) (since time.Time) {
	s.state.View(func(now *state.Run) { since = now.Asked(request) })
	return since
}

// request is what it is called by who decides. The next time that the same
// limit is reached it is another request: one is decided once.
func (g gauge) request() string { return fmt.Sprintf("limit-%s-%d", g.name, g.max) }

// grant raises the limits of the Run.
func (r *run) grant(d journal.Decision) {
	r.meter.root.extend(state.Grant{Steps: d.Steps, Tokens: d.Tokens, CostMicroUSD: d.CostMicroUSD})
	r.board.unwarn()
}
