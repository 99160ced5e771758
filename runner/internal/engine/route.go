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
	// When is the expression that selects the turns, for users; empty: there is none.
	When string
	// Applies evaluates it; nil: it applies to every turn.
	Applies func(ctx context.Context, t RouteTurn) (bool, error)
}

// A RouteTurn has the facts of a turn that choose its route.
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
	// kept identifies the last event about a Model that could not be chosen: the beginning of the tool loop, and the
	// Model.
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
	// kept reports that the session keeps its previous Model, because the chosen one cannot read its reasoning.
	kept bool
}

// choose returns the Model of the first route that applies. If an expression fails, no further one is tried: the
// agent's own Model is asked.
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

// resume restores the choice of an earlier attempt. A turn whose Model was already chosen, or whose request was
// interrupted, is not routed again.
func (t turnRouting) resume(st state.Session) {
	t.actor.Model = t.routes.named(st.Route)
	if st.RoutedTurn == st.Turns+1 || st.Asked != nil {
		t.routes.decided = st.Turns + 1
	}
}

// route chooses the Model of a turn, once, before its first request or compaction. It reports whether that is another
// Model than before.
func (t turnRouting) route(ctx context.Context, v view) (bool, error) {
	r := &t.routes
	turn := v.Turns + 1
	if len(r.routes) == 0 || r.decided == turn {
		return false, nil
	}
	r.decided = turn
	chosen := r.choose(ctx, RouteTurn{
		Number: turn, EstimatedTokens: compaction.Used(t.requestOf(v.Steps)), Left: t.records.account.Left(),
	})
	if chosen.model.Name == t.actor.Model.Name {
		t.reportRoute(v, chosen)
		return false, nil
	}
	if to, _, _ := chosen.model.next(); !canRead(v.Steps, to) {
		chosen.kept = true
		t.reportRoute(v, chosen)
		return false, nil
	}
	err := t.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkRoute, Text: chosen.model.Name}})
	if err != nil {
		return false, fmt.Errorf("recording the Model of a turn: %w", err)
	}
	t.reportRoute(v, chosen)
	t.actor.Model, t.compactions = chosen.model, 0
	return true, nil
}

// reportRoute emits the event of a choice, before it takes effect. Choosing the same Model again without an error emits
// none. A Model that is kept emits one event for each tool loop.
func (t turnRouting) reportRoute(v view, chosen routing) {
	to, _, _ := chosen.model.next()
	e := events.ModelRouted{Step: t.records.next(), From: t.lastModel(v.Steps), To: to, When: chosen.when, Kept: chosen.kept}
	if chosen.err != nil {
		e.Error = task.Cut(chosen.err.Error(), task.MaxSummary)
	}
	same := chosen.model.Name == t.actor.Model.Name
	if loop := (keptModel{loopStart(v.Steps), to}); chosen.kept && chosen.err == nil {
		if t.routes.kept == loop {
			return
		}
		t.routes.kept = loop
	}
	if same && chosen.err == nil {
		return
	}
	if !same && !chosen.kept {
		e.UncachedTokens = uncached(v, to)
		e.UncachedMicroUSD = t.priceOfUncached(&chosen.model, to, e.UncachedTokens)
	}
	t.records.Emit(routeMessage(e), e)
}

// routeMessage returns the message of an event.
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

// lastModel returns the Model of the last answer or, without an answer, the Model that is asked next.
func (t turnRouting) lastModel(steps []step.Step) string {
	for _, s := range slices.Backward(steps) {
		if s.Role == step.RoleAssistant {
			return cmp.Or(s.Model, t.actor.Model.Name)
		}
	}
	return t.actor.Model.Name
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

// isReasoning reports whether a part is reasoning that only the Model that made it can read. Other provider data, such
// as the phase of a text or the id of a call, does not count: another Model can read the part without it.
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

// loopStart returns the number of the step that precedes the current tool loop.
func loopStart(steps []step.Step) int64 {
	for _, s := range slices.Backward(steps) {
		if endsLoop(s) {
			return s.Seq
		}
	}
	return 0
}

// uncached returns how many tokens of the session are in the prompt cache of the last Model and not in the cache of
// another. The other has cached the session up to its own last answer.
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

// cachedOf returns how much input of an answer is in the prompt cache after it. Usage is the sum of several requests;
// the result is at most the size of the last request.
func cachedOf(s *step.Step) int64 {
	if s == nil {
		return 0
	}
	cached := s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens
	return min(cached, cmp.Or(s.Usage.ContextTokens, s.Usage.InputTokens))
}

// priceOfUncached returns how much more input costs than from the cache; 0: not known.
func (t turnRouting) priceOfUncached(m *Model, name string, tokens int64) int64 {
	if tokens == 0 {
		return 0
	}
	at := t.run.config.Now()
	full := m.priced(name, step.Usage{InputTokens: tokens}, at)
	cached := m.priced(name, step.Usage{InputTokens: tokens, CacheReadTokens: tokens}, at)
	if !full.Priced || !cached.Priced {
		return 0
	}
	return max(full.CostMicroUSD-cached.CostMicroUSD, 0)
}
