package engine

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// load reads the journal and sets the meter to the higher of what it and the
// task say.
func (r *run) load() error {
	state, err := journal.Replay(r.Journal.Read())
	if err != nil {
		return fmt.Errorf("taking up the session: %w", err)
	}
	r.session.state = state
	r.recall(state)
	r.meter = newMeter(r.Task.Meter.Max(state.Meter), r.Config)
	if state.Begun {
		r.board.shown.Effects = task.EffectsBegun
	}
	r.board.begin(r.meter.read().Steps+1, task.KindModel, r.Model.Name, r.Now())
	return nil
}

// recall tells the tools what succeeded before.
func (r *run) recall(s journal.State) {
	if r.Recall == nil {
		return
	}
	calls := map[string]step.Call{}
	tell := func(result step.Step) {
		if c, ok := calls[result.CallID]; ok && !result.IsError {
			r.Recall(c.Name, c.Args)
		}
	}
	for _, st := range s.Steps {
		for _, c := range st.Calls {
			calls[c.ID] = c
		}
		tell(st)
	}
	for _, result := range s.Results {
		tell(result)
	}
}

// takeUp settles what an earlier runner left open and opens the session, or
// goes on with it.
func (r *run) takeUp() error {
	s := r.session.read()
	r.Events.Emit(fmt.Sprintf("Attempt %d of Agent %s begins with %d steps", r.Task.Attempt, r.Agent.Name, len(s.Steps)), events.RunStarted{
		Agent: r.Agent.Name, Model: r.Model.Name, Steps: int64(len(s.Steps)), Restarts: s.Restarts, Limits: r.Task.Limits,
	})
	if err := r.chargeLost(s.Asked); err != nil {
		return err
	}
	if err := r.settleLost(s); err != nil {
		return err
	}
	if len(s.Steps) == 0 {
		return r.tell(r.opening())
	}
	if r.Task.Retry == "" || s.Restarts > 0 {
		return nil
	}
	r.notes = append(r.notes, fmt.Sprintf(noteAttempt, r.Task.Retry, r.Task.Attempt))
	now := r.session.read()
	if s.Ended != "" && s.Ended != string(task.ReasonFinished) && len(now.Open()) == 0 {
		// The session ended as it stands: it needs something new to go on from. Calls
		// that are open are that, and nothing may stand between them and their results.
		return r.sayNotes()
	}
	return nil
}

// opening is the first that is said in a session.
func (r *run) opening() string {
	if r.Task.Retry == "" {
		return r.Task.Prompt
	}
	return strings.Join([]string{r.Task.Prompt, fmt.Sprintf(noteFresh, r.Task.Retry, r.Task.Attempt)}, "\n\n")
}

// chargeLost charges a model call that a crash cut: nobody told what it used.
func (r *run) chargeLost(asked *journal.Intent) error {
	if asked == nil {
		return nil
	}
	spent := r.priced(step.Usage{InputTokens: asked.InputTokens, Estimated: true})
	r.meter.add(func(m *step.Meter) {
		m.Errors++
		m.Usage = m.Usage.Plus(spent)
	})
	if err := r.record(journal.Record{Kind: journal.KindMeter}); err != nil {
		return fmt.Errorf("recording a lost model call: %w", err)
	}
	return nil
}

// settleLost gives a result to each call that was begun, was never answered
// and must not be repeated. The others stay open and run again.
func (r *run) settleLost(s journal.State) error {
	if len(s.Intents) == 0 {
		return nil
	}
	open := s.Open()
	turn := s.Steps[len(s.Steps)-1]
	for i, c := range turn.Calls {
		intent, begun := s.Intents[c.ID]
		if !begun || !contains(open, c.ID) || repeatable(tool.Effect(intent.Effect)) {
			continue
		}
		j := &job{call: c, seq: turn.Seq + int64(i) + 1}
		if err := r.settle(j, tool.Fail(resultLost), r.Now()); err != nil {
			return err
		}
	}
	return nil
}

// repeatable says whether a call of this class that was cut may run again.
func repeatable(e tool.Effect) bool {
	switch e {
	case tool.ReadOnly, tool.Idempotent, tool.Resumable:
		return true
	case tool.Once:
		return false
	}
	return false
}
