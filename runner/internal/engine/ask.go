package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An exchange is one turn of the model under way.
type exchange struct {
	number int64 // as people count
	tries  int   // how often the model was asked; layers may ask again
	fault  error // of the runner; no layer makes it go away
	heard  bool  // the model has answered, whatever layers make of it
	used   int64 // the estimated size of the request
}

// ask gives the model the word and records what it said.
func (s *session) ask(ctx context.Context) error {
	began := s.run.config.Now()
	s.begin(&s.actor.Model)
	heard, hangUp := s.untilStopped(ctx)
	defer hangUp()
	t := &middleware.Turn{Scope: s.scope, Request: s.request()}
	t.Say = func(text string, note step.Note) error { return s.add(t, text, note) }
	t.Charge = s.charge
	resp, err := s.answer(heard, t)
	if s.turn.fault != nil {
		return s.turn.fault
	}
	if err != nil {
		return errors.Join(s.counted(), s.unanswered(heard, &s.actor.Model, err))
	}
	return s.answered(began, resp)
}

// counted records what an answer used that a layer made nothing of: else it
// would be charged once more, by estimate, to whoever takes up the session.
func (s *session) counted() error {
	if !s.turn.heard {
		return nil
	}
	return s.Record(journal.Record{Kind: journal.KindMeter})
}

// add lets a layer say something to the model before its turn.
func (s *session) add(t *middleware.Turn, text string, note step.Note) error {
	if err := s.tell(text, note); err != nil {
		return s.turn.fail(err)
	}
	steps := s.read().Steps
	t.Request.Steps = append(t.Request.Steps, steps[len(steps)-1])
	return nil
}

// charge counts a model call that a layer made by itself.
func (s *session) charge(used step.Usage) {
	s.account.Add(func(m *step.Meter) {
		m.ModelCalls++
		m.Usage = m.Usage.Plus(used)
	})
}

// begin shows that a model is about to be asked, and returns which.
func (s *session) begin(m *Model) string {
	name, _, _ := m.next()
	s.turn = exchange{number: s.run.meter.Read().Steps + 1}
	s.run.board.begin(s.turn.number, task.KindModel, s.label(name), s.run.config.Now())
	s.run.config.Report.Report(s.run.progress)
	s.Emit(fmt.Sprintf("Step %d: asking %s", s.turn.number, name), events.StepStarted{Step: s.turn.number, Kind: task.KindModel, Name: name})
	return name
}

// untilStopped is ctx until somebody asks the Run to end.
func (s *session) untilStopped(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	off := context.AfterFunc(s.run.stopped, func() {
		if cause := context.Cause(s.run.stopped); errors.Is(cause, signals.ErrStopped) { // not the end of the Run itself
			cancel(cause)
		}
	})
	return ctx, func() { off(); cancel(nil) }
}

// request is all that the model sees of the session. Between compactions it
// only ever grows at its end, so that providers can cache it.
func (s *session) request() *model.Request {
	return s.requestOf(s.read().Steps)
}

func (s *session) requestOf(steps []step.Step) *model.Request {
	key := s.run.config.Task.Run.UID
	if s.name != "" {
		key += "/" + s.name
	}
	return &model.Request{System: s.system, Steps: slices.Clip(steps), Tools: s.tools, Params: s.actor.Model.Params, CacheKey: key}
}

// converse is innermost of the layers around a model call.
func (s *session) converse(ctx context.Context, t *middleware.Turn) (model.Response, error) {
	return s.consult(ctx, &s.actor.Model, t.Request)
}

// consult records that a model is about to be asked, asks it, and counts what
// that used, every time.
func (s *session) consult(ctx context.Context, m *Model, req *model.Request) (model.Response, error) {
	if s.turn.tries++; s.turn.tries > 1 {
		s.Emit("The model is asked again", events.Reset{Step: s.turn.number})
	}
	name, _, _ := m.next()
	s.turn.used = compaction.Used(req)
	s.account.Add(func(used *step.Meter) { used.ModelCalls++ })
	err := s.Record(journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{Name: name, InputTokens: s.turn.used}})
	if err != nil {
		return model.Response{}, s.turn.fail(fmt.Errorf("recording a model call: %w", err))
	}
	resp, err := model.Collect(s.continued(name, m.Stream(ctx, req)), s.show)
	resp.Model = cmp.Or(resp.Model, name)
	if err != nil {
		return resp, s.spent(ctx, m, req, &resp, err)
	}
	if resp.Usage == (step.Usage{}) {
		resp.Usage = estimate(m, req, resp)
	}
	s.account.Add(func(used *step.Meter) { used.Usage = used.Usage.Plus(resp.Usage) })
	s.turn.heard = true
	return resp, nil
}

// fail keeps a failure of the runner itself.
func (x *exchange) fail(err error) error {
	x.fault = err
	return err
}

// show passes an answer on as it comes.
func (s *session) show(d model.Delta) {
	if d.Reset {
		s.account.Add(func(m *step.Meter) { m.ModelCalls++; m.Errors++ })
		s.Emit("The model is asked again: "+task.Cut(d.Because, task.MaxSummary), events.Reset{Step: s.turn.number})
	}
	if d.Thinking != "" {
		s.Emit("", events.ThinkingDelta{Step: s.turn.number, Text: d.Thinking})
	}
	if d.Text != "" {
		s.Emit("", events.TextDelta{Step: s.turn.number, Text: d.Text})
	}
}

// answered records a whole answer.
func (s *session) answered(began time.Time, resp model.Response) error {
	st := s.assistant(resp)
	st.At, st.Duration = began.UTC(), s.run.config.Now().Sub(began)
	s.account.Add(func(m *step.Meter) { m.Steps++ })
	if err := s.recordStep(st, nil); err != nil {
		return err
	}
	if s.turn.used <= s.trigger() {
		s.squeezes = 0
	}
	s.overflow, s.limited = nil, 0
	s.run.board.answered(st.Model)
	s.run.board.done(task.Recent{
		Step: s.turn.number, Kind: task.KindModel, Name: s.label(st.Model), Summary: summarize(st), DurationMs: st.Duration.Milliseconds(),
	})
	s.run.warnOfLimits()
	return nil
}

// assistant is an answer as a step: without secrets, its calls named by us and
// their arguments made valid.
func (s *session) assistant(resp model.Response) step.Step {
	seq := s.read().Last + 1
	st := step.Step{Role: step.RoleAssistant, Finish: resp.Finish, Model: cmp.Or(resp.Model, s.actor.Model.Name), Usage: resp.Usage, Hooks: resp.Hooks}
	for _, p := range resp.Parts {
		p.Text = s.run.config.Redact.String(p.Text)
		p.Provider = s.run.config.Redact.JSON(p.Provider)
		st.Parts = append(st.Parts, p)
	}
	for i, c := range resp.Calls {
		name := s.run.config.Redact.String(c.Name)
		args := s.run.config.Redact.JSON(s.actor.Tools.Read(name, c.Args))
		st.Calls = append(st.Calls, step.Call{ID: step.CallID(s.name, seq, i+1), Name: name, Args: args})
	}
	return st
}

// nudge tells the model what the runner has to say.
func (s *session) nudge(text string, note step.Note) error {
	if note == step.NoteRunner {
		s.notes = nil
	} else {
		s.Emit("Notice to the model: "+text, events.Nudged{Text: text})
	}
	return s.tell(text, note)
}

// noted is what the runner has to say to the model before its next turn.
func (s *session) noted() string {
	if !s.warned && s.run.config.LowSpace != nil && s.run.config.LowSpace() {
		s.warned = true
		s.notes = append(s.notes, noteLowSpace)
	}
	return strings.Join(append(slices.Clone(s.read().Notices), s.notes...), "\n")
}
