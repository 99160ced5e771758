package python

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// How long an interpreter has.
const (
	starting = 60 * time.Second // to be ready; images are slow to read at first
	stopping = 3 * time.Second  // to stop code that is interrupted
)

// A running call is one call on its way.
type running struct {
	*Interpreters
	call    tool.Call
	key     key
	request request
	restart bool
	timeout time.Duration

	session *session
	record  *output.Record
}

func (c *running) run(ctx context.Context) (tool.Result, error) {
	one, err := c.enter(ctx, c.key)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { <-one.held }()
	c.session = one
	if c.restart {
		c.finish(one, "")
		if c.request.Code == "" && c.request.Script == "" {
			return tool.Result{Text: fmt.Sprintf("The interpreter %s was ended; its variables were lost.", c.key.Name), Summary: "ended " + c.key.Name}, nil
		}
	}
	c.record = c.place.Record(c.call.ID, c.call.Emit)
	defer c.record.Close()
	note, err := c.ready(ctx)
	if err != nil {
		return c.unstarted(ctx, err)
	}
	return c.execute(ctx, note)
}

// ready makes sure that the session has an interpreter, and says when it is not
// the one that the model knows.
func (c *running) ready(ctx context.Context) (note string, err error) {
	if i := c.session.interpreter; i != nil {
		select {
		case <-i.done:
			c.has(c.session, nil, i.ended())
		default:
			return "", nil
		}
	}
	if c.session.gone != "" {
		note = fmt.Sprintf("[This is a new interpreter, without the variables of the last one: %s.]", c.session.gone)
	}
	return note, c.start(ctx)
}

// start starts an interpreter, which does not end with the call.
func (c *running) start(ctx context.Context) error {
	if err := c.reserve(c.session); err != nil {
		return err
	}
	life, end := context.WithCancel(c.ctx)
	stop := context.AfterFunc(ctx, end)
	i, err := c.boot(life, end, sandbox.Command{ID: c.call.ID, Args: []string{c.opts.Program, "-u", "-c", driver}, Dir: c.opts.Workspace})
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		c.has(c.session, nil, c.session.gone)
		return err
	}
	c.has(c.session, i, "")
	return nil
}

// boot starts an interpreter and waits until it is ready.
func (c *running) boot(life context.Context, end context.CancelFunc, cmd sandbox.Command) (*interpreter, error) {
	p, err := c.sandbox.Start(life, cmd)
	if err != nil {
		return nil, err
	}
	i, ready := attach(p, end, c.record)
	defer i.leave(ready)
	timer := time.NewTimer(starting)
	defer timer.Stop()
	select {
	case <-ready.answered:
		return i, nil
	case <-i.done:
		return nil, fmt.Errorf("%w: %s", errNotReady, i.ended())
	case <-timer.C:
		return nil, fmt.Errorf("%w in %s", errNotReady, starting)
	case <-life.Done():
	}
	select { // an interpreter that ended by itself has ended its life too
	case <-i.done:
		return nil, fmt.Errorf("%w: %s", errNotReady, i.ended())
	default:
		return nil, errNotReady
	}
}

// unstarted says why there is no interpreter.
func (c *running) unstarted(ctx context.Context, err error) (tool.Result, error) {
	if full, ok := errors.AsType[*fullError](err); ok {
		return tool.Fail("Not executed: "+full.Error()+".",
			fmt.Sprintf("Use one of them, or end one with restart and no code: %s.", strings.Join(full.running, ", "))), nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	return tool.Fail(output.Lines(output.Unstarted(err), output.Until(c.record.Text(ctx)))), nil
}

// execute has the interpreter run the code, and waits for what comes of it.
func (c *running) execute(ctx context.Context, note string) (tool.Result, error) {
	i := c.session.interpreter
	a, between := i.ask(c.request, c.record)
	if between != "" {
		note = output.Lines(note, "[Printed since the last call:]", between, "[Printed by this call:]")
	}
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	late := false
	for {
		select {
		case <-a.answered:
			return c.answered(ctx, note, a.answer, late)
		case <-i.done:
			i.leave(a)
			return c.died(ctx, note, i)
		case <-ctx.Done():
			return c.interrupted(ctx, note, a)
		case <-timer.C:
			if late {
				return c.stubborn(ctx, note, a)
			}
			late = true
			i.interrupt(a)
			timer.Reset(stopping)
		}
	}
}

// answered is the result of code that ended.
func (c *running) answered(ctx context.Context, note string, a *answer, late bool) (tool.Result, error) {
	text, last := c.record.Text(ctx), ""
	switch a.How {
	case howMissing:
		there := "There is none yet; save one with save_as."
		if a.Note != "" {
			there = "There are: " + a.Note + "."
		}
		return tool.Fail(fmt.Sprintf("There is no script %s.", c.request.Script), there), nil
	case howUnreadable:
		return tool.Fail(fmt.Sprintf("The script %s cannot be read: %s", c.request.Script, a.Note)), nil
	case howUnsaved:
		return tool.Fail("Not executed: the code could not be saved: " + a.Note), nil
	}
	if a.Note != "" {
		note = output.Lines(note, fmt.Sprintf("[Saved as %s.]", a.Note))
	}
	switch {
	case late && a.How == howInterrupted:
		last = fmt.Sprintf("interrupted: timed out after %s; the variables are kept", output.Seconds(c.timeout))
	case text == "":
		text = "(no output)"
	}
	return tool.Result{Text: output.Lines(note, text, last), Summary: c.summary(a.How)}, nil
}

// died is the result of code that took its interpreter with it.
func (c *running) died(ctx context.Context, note string, i *interpreter) (tool.Result, error) {
	c.has(c.session, nil, "") // the model is told here
	text := c.record.Text(ctx)
	if i.err == nil && i.exit.Cause == sandbox.SandboxLost {
		return tool.Fail(output.Lines(output.Lost(i.exit), output.Until(text))), nil
	}
	last := fmt.Sprintf("the interpreter ended (%s); its variables are lost, the next call has a new one", i.ended())
	return tool.Result{Text: output.Lines(note, text, last), Summary: c.summary(i.ended())}, nil
}

// stubborn is the result of code that was interrupted and went on.
func (c *running) stubborn(ctx context.Context, note string, a *asked) (tool.Result, error) {
	c.session.interpreter.leave(a)
	c.finish(c.session, "")
	last := fmt.Sprintf("killed: timed out after %s and did not stop when it was interrupted; the variables are lost, the next call has a new interpreter",
		output.Seconds(c.timeout))
	return tool.Result{Text: output.Lines(note, c.record.Text(ctx), last), Summary: c.summary("timed out")}, nil
}

// interrupted is the result of code that the loop cut: what it printed until
// then.
func (c *running) interrupted(ctx context.Context, note string, a *asked) (tool.Result, error) {
	c.session.interpreter.leave(a)
	c.finish(c.session, "ended when a call was interrupted")
	why, err := output.Interrupted(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	why += "; the interpreter was killed, and the code may have partly happened"
	return tool.Result{Text: output.Lines(note, c.record.Text(ctx), why), Summary: c.summary("interrupted")}, nil
}

func (c *running) summary(how string) string {
	what := c.request.Script
	if what == "" {
		what, _, _ = strings.Cut(strings.TrimSpace(c.request.Code), "\n")
	}
	return how + ": " + what
}
