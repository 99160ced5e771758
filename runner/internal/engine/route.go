package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Route is a Model for some turns.
type Route struct {
	Model Model
	// When is the expression that selects the turns, for people; empty: there is none.
	When string
	// Applies evaluates it; nil: it applies to every turn.
	Applies func(ctx context.Context, t RouteTurn) (bool, error)
}

// A RouteTurn is what routes are chosen by.
type RouteTurn struct {
	Number          int64 // of the session, from 1
	EstimatedTokens int64 // of the next request
	Left            meter.Left
}

// A turnRouter chooses the Model of each turn of one session.
type turnRouter struct {
	own     Model // the agent's, if no route applies
	routes  []Route
	decided int64 // the turn for which a Model was chosen; 0: none
	// kept is the begin of the tool loop, and the Model, of the last event about a Model that
	// could not be chosen.
	kept keptModel
}

type keptModel struct {
	loop int64
	to   string
}

// A routing is one choice.
type routing struct {
	model Model
	when  string
	err   error // of the expression
	// kept says that the session keeps the Model before it: the chosen one cannot read its reasoning.
	kept bool
}

// choose returns the Model of the first route that applies. After an expression that fails no
// other is tried: the agent's own Model is asked.
func (r *turnRouter) choose(ctx context.Context, t RouteTurn) routing {
	for _, route := range r.routes {
		applies, err := true, error(nil)
		if route.Applies != nil {
			applies, err = route.Applies(ctx, t)
		}
		switch {
		case err != nil:
			return routing{model: r.own, when: route.When, err: err}
		case applies:
			return routing{model: route.Model, when: route.When}
		}
	}
	return routing{model: r.own}
}

// named returns the Model that an earlier attempt chose.
func (r *turnRouter) named(name string) Model {
	for _, route := range r.routes {
		if route.Model.Name == name {
			return route.Model
		}
	}
	return r.own
}

// turnRouting chooses the Model that a session asks in its turns.
type turnRouting struct{ *modelCaller }

// resume takes over the choice of an earlier attempt. A turn whose Model was chosen, or whose
// request was cut, is not decided again.
func (c turnRouting) resume(st state.Session) {
	c.actor.Model = c.routes.named(st.Route)
	if st.RoutedTurn == st.Turns+1 || st.Asked != nil {
		c.routes.decided = st.Turns + 1
	}
}

// route chooses the Model of a turn, once, before it is first asked or the session is compacted
// for it. It reports whether another Model was chosen.
func (c turnRouting) route(ctx context.Context, v view) (bool, error) {
	r := &c.routes
	turn := v.Turns + 1
	if len(r.routes) == 0 || r.decided == turn {
		return false, nil
	}
	r.decided = turn
	chosen := r.choose(ctx, RouteTurn{
		Number: turn, EstimatedTokens: compaction.Used(c.requestOf(v.Steps)), Left: c.records.account.Left(),
	})
	if chosen.model.Name == c.actor.Model.Name {
		c.reportRoute(v, chosen)
		return false, nil
	}
	if to, _, _ := chosen.model.next(); !canRead(v.Steps, to) {
		chosen.kept = true
		c.reportRoute(v, chosen)
		return false, nil
	}
	err := c.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkRoute, Text: chosen.model.Name}})
	if err != nil {
		return false, fmt.Errorf("recording the Model of a turn: %w", err)
	}
	c.reportRoute(v, chosen)
	c.actor.Model, c.compactions = chosen.model, 0
	return true, nil
}

// reportRoute writes the event of a choice, before it takes effect. The choice of the same
// Model without an error is none; a Model that is kept is one event for each tool loop.
func (c turnRouting) reportRoute(v view, chosen routing) {
	to, _, _ := chosen.model.next()
	e := events.ModelRouted{Step: c.records.next(), From: c.lastModel(v.Steps), To: to, When: chosen.when, Kept: chosen.kept}
	if chosen.err != nil {
		e.Error = task.Cut(chosen.err.Error(), task.MaxSummary)
	}
	same := chosen.model.Name == c.actor.Model.Name
	if loop := (keptModel{loopStart(v.Steps), to}); chosen.kept && chosen.err == nil {
		if c.routes.kept == loop {
			return
		}
		c.routes.kept = loop
	}
	if same && chosen.err == nil {
		return
	}
	if !same && !chosen.kept {
		e.UncachedTokens = uncached(v, to)
		e.UncachedMicroUSD = c.priceOfUncached(&chosen.model, to, e.UncachedTokens)
	}
	c.records.Emit(routeMessage(e), e)
}

// routeMessage words an event for people.
func routeMessage(e events.ModelRouted) string {
	var text string
	switch {
	case e.Kept:
		text = fmt.Sprintf("Model %s is asked on, and not %s, which cannot read the reasoning of this tool loop", e.From, e.To)
	case e.From == e.To:
		text = fmt.Sprintf("Model %s is asked", e.To)
	default:
		text = fmt.Sprintf("Model %s is asked instead of %s", e.To, e.From)
	}
	if e.Error != "" {
		text = fmt.Sprintf("The expression of a route failed (%s): %s. %s", e.When, e.Error, text)
	}
	if e.UncachedTokens > 0 {
		text += fmt.Sprintf(": about %d tokens are not in its prompt cache", e.UncachedTokens)
	}
	if e.UncachedMicroUSD > 0 {
		text += fmt.Sprintf(", which costs %s more", task.Money(e.UncachedMicroUSD))
	}
	return text
}

// lastModel is the Model of the last answer; the one about to be asked if there is none.
func (c turnRouting) lastModel(steps []step.Step) string {
	for _, s := range slices.Backward(steps) {
		if s.Role == step.RoleAssistant {
			return cmp.Or(s.Model, c.actor.Model.Name)
		}
	}
	return c.actor.Model.Name
}

// canRead reports whether a Model can read all reasoning of the current tool loop: providers
// require it back until the loop ends.
func canRead(steps []step.Step, name string) bool {
	for _, s := range slices.Backward(steps) {
		if endsLoop(s) {
			return true
		}
		if s.Role == step.RoleAssistant && s.Model != name && slices.ContainsFunc(s.Parts, isReasoning) {
			return false
		}
	}
	return true
}

// isReasoning reports whether a part is reasoning that only the Model that made it may read. Other data
// of a text or a call, as its phase or its id, is about this part alone, which others read without it.
func isReasoning(p step.Part) bool {
	return p.Kind == step.PartThinking || p.Kind == step.PartOpaque || p.Signed
}

// endsLoop reports whether a step ends a tool loop: an answer without calls, or a message of a
// user. Notices of the runner and of hooks come between results and the next answer.
func endsLoop(s step.Step) bool {
	switch s.Role {
	case step.RoleAssistant:
		return len(s.Calls) == 0
	case step.RoleUser:
		return s.Note == "" || s.Note == step.NoteMessage || s.Note == step.NoteSummary
	case step.RoleTool:
	}
	return false
}

// loopStart is the number of the step that the current tool loop follows.
func loopStart(steps []step.Step) int64 {
	for _, s := range slices.Backward(steps) {
		if endsLoop(s) {
			return s.Seq
		}
	}
	return 0
}

// uncached returns how many tokens of the session the last Model has in its prompt cache and
// another has not. The other has those of its own last answer.
func uncached(v view, to string) int64 {
	var last, own *step.Step
	for i := range v.Steps {
		s := &v.Steps[i]
		if s.Role != step.RoleAssistant || s.Seq <= v.CompactedAt {
			continue
		}
		last = s
		if s.Model == to {
			own = s
		}
	}
	return max(cachedOf(last)-cachedOf(own), 0)
}

// cachedOf is the input of an answer that the prompt cache had or has since. Of several
// requests, usage is the sum, which can be no more than the last one took.
func cachedOf(s *step.Step) int64 {
	if s == nil {
		return 0
	}
	cached := s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens
	return min(cached, cmp.Or(s.Usage.ContextTokens, s.Usage.InputTokens))
}

// priceOfUncached is what input costs more than from the cache; 0: it is not known.
func (c turnRouting) priceOfUncached(m *Model, name string, tokens int64) int64 {
	if tokens == 0 {
		return 0
	}
	at := c.run.config.Now()
	full := m.priced(name, step.Usage{InputTokens: tokens}, at)
	cached := m.priced(name, step.Usage{InputTokens: tokens, CacheReadTokens: tokens}, at)
	if !full.Priced || !cached.Priced {
		return 0
	}
	return max(full.CostMicroUSD-cached.CostMicroUSD, 0)
}
