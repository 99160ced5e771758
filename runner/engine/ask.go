package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// ask gives the model the word and records what it said.
func (r *run) ask(ctx context.Context) error {
	if err := r.sayNotes(); err != nil {
		return err
	}
	req := r.request()
	turn := r.meter.read().Steps + 1
	r.board.begin(turn, task.KindModel, r.Model.Name, r.Now())
	r.Report.Report(r.progress)
	r.Events.Emit(fmt.Sprintf("Step %d: asking %s", turn, r.Model.Name), events.StepStarted{Step: turn, Kind: task.KindModel, Name: r.Model.Name})

	r.meter.add(func(m *step.Meter) { m.ModelCalls++ })
	err := r.record(journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{Name: r.Model.Name, InputTokens: model.EstimateInput(req)}})
	if err != nil {
		return fmt.Errorf("recording a model call: %w", err)
	}
	began := r.Now()
	heard, hangUp := r.untilStopped(ctx)
	defer hangUp()
	resp, err := model.Collect(r.Model.Stream(heard, req), r.show(turn))
	if err != nil {
		err = r.unanswered(heard, req, resp, err)
		if errors.Is(err, errStopped) {
			return nil // what comes next sees it too
		}
		return err
	}
	return r.answered(turn, began, req, resp)
}

// errStopped is the cause with which a model call is cancelled when somebody
// asked the Run to end: an answer that nobody will use is not waited for.
var errStopped = errors.New("the Run was asked to stop")

// untilStopped is ctx until somebody asks the Run to end.
func (r *run) untilStopped(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-r.Stopping:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// request is the whole session, as the model is told it. It only ever grows at
// its end, so that providers can cache it.
func (r *run) request() *model.Request {
	return &model.Request{
		System:   r.Redact.String(r.Agent.Instructions),
		Steps:    r.session.read().Steps,
		Tools:    r.Tools.Specs(),
		Params:   r.Model.Params,
		CacheKey: r.Task.Run.UID,
	}
}

// show passes an answer on as it comes.
func (r *run) show(turn int64) func(model.Delta) {
	return func(d model.Delta) {
		if d.Reset {
			r.meter.add(func(m *step.Meter) { m.ModelCalls++; m.Errors++ })
			r.Events.Emit("The model is asked again: "+task.Cut(d.Because, task.MaxSummary), events.Reset{Step: turn})
		}
		if d.Thinking != "" {
			r.Events.Emit("", events.ThinkingDelta{Step: turn, Text: d.Thinking})
		}
		if d.Text != "" {
			r.Events.Emit("", events.TextDelta{Step: turn, Text: d.Text})
		}
	}
}

// answered records a whole answer.
func (r *run) answered(turn int64, began time.Time, req *model.Request, resp model.Response) error {
	s := r.assistant(resp)
	s.Usage = r.usage(req, resp)
	s.At, s.Duration = began.UTC(), r.Now().Sub(began)
	r.meter.add(func(m *step.Meter) {
		m.Steps = turn
		m.Usage = m.Usage.Plus(s.Usage)
	})
	if err := r.recordStep(s); err != nil {
		return err
	}
	r.board.done(task.Recent{Step: turn, Kind: task.KindModel, Name: r.Model.Name, Summary: summarize(s), DurationMs: s.Duration.Milliseconds()})
	r.warnOfLimits()
	return nil
}

// assistant is an answer as a step: without secrets, its calls named by us and
// their arguments made valid.
func (r *run) assistant(resp model.Response) step.Step {
	seq := int64(len(r.session.read().Steps)) + 1
	s := step.Step{Role: step.RoleAssistant, Finish: resp.Finish, Model: r.Model.Name}
	for _, p := range resp.Parts {
		p.Text = r.Redact.String(p.Text)
		p.Provider = r.Redact.JSON(p.Provider)
		s.Parts = append(s.Parts, p)
	}
	for i, c := range resp.Calls {
		name := r.Redact.String(c.Name)
		args := r.Redact.JSON(r.Tools.Read(name, c.Args))
		s.Calls = append(s.Calls, step.Call{ID: step.CallID("", seq, i+1), Name: name, Args: args})
	}
	return s
}

// usage is what an answer used: as the provider told, else as we estimate.
func (r *run) usage(req *model.Request, resp model.Response) step.Usage {
	if resp.Usage != (step.Usage{}) {
		return resp.Usage
	}
	size := 0
	for _, p := range resp.Parts {
		size += len(p.Text)
	}
	for _, c := range resp.Calls {
		size += len(c.Name) + len(c.Args)
	}
	return r.priced(step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: model.EstimateTokens(size), Estimated: true})
}

func (r *run) priced(u step.Usage) step.Usage {
	if r.Model.Price == nil {
		return u
	}
	return r.Model.Price(u)
}

// unanswered records what a failed model call used and says how that ends the
// session.
func (r *run) unanswered(ctx context.Context, req *model.Request, resp model.Response, err error) error {
	// Nothing arrived and nobody told: most likely the provider did nothing. Not
	// so when we hung up ourselves.
	spent := resp.Usage
	if spent == (step.Usage{}) && (ctx.Err() != nil || len(resp.Parts)+len(resp.Calls) > 0) {
		spent = r.usage(req, resp)
	}
	r.meter.add(func(m *step.Meter) {
		m.Errors++
		m.Usage = m.Usage.Plus(spent)
	})
	if recErr := r.record(journal.Record{Kind: journal.KindMeter}); recErr != nil {
		return errors.Join(recErr, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.modelEnd(err)
}

// modelEnd is the end that a model's error brings.
func (r *run) modelEnd(err error) *task.EndError {
	name := r.Model.Name
	var (
		unreadable   *model.NoCredentialError
		unauthorized *model.UnauthorizedError
		badRequest   *model.BadRequestError
		notAModel    *model.NotAModelError
		tooLong      *model.ContextTooLongError
	)
	switch {
	case errors.As(err, &unreadable):
		return task.End(task.ReasonModelUnavailable, "Model %s: %w; check %s", name, err, r.credential())
	case errors.As(err, &unauthorized):
		return task.End(task.ReasonMisconfigured, "Model %s: %w; check %s", name, err, r.credential())
	case errors.As(err, &notAModel):
		return task.End(task.ReasonMisconfigured, "Model %s: %w", name, err)
	case errors.As(err, &badRequest):
		return task.End(task.ReasonMisconfigured, "Model %s: %w; check the Model's endpoint, model and parameters", name, err)
	case errors.As(err, &tooLong):
		return task.End(task.ReasonContextTooLong, "Model %s: %w; give the Run less to read, or use a Model with a larger window", name, err)
	}
	return task.End(task.ReasonModelUnavailable, "Model %s: %w; if this does not pass, check the Model's endpoint", name, err)
}

func (r *run) credential() string {
	if r.Model.Credential == "" {
		return "whether the Model needs credentials"
	}
	return r.Model.Credential
}

// nudge tells the model how to go on.
func (r *run) nudge(text string) error {
	r.Events.Emit("The model was told: "+text, events.Nudged{Text: text})
	return r.tell(text)
}

// sayNotes tells the model what the runner has to say before its next turn.
func (r *run) sayNotes() error {
	if !r.warned && r.LowSpace != nil && r.LowSpace() {
		r.warned = true
		r.notes = append(r.notes, noteLowSpace)
	}
	if len(r.notes) == 0 {
		return nil
	}
	text := strings.Join(r.notes, "\n")
	r.notes = nil
	return r.tell(text)
}
