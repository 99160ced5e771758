package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/remember"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Timeouts of an interpreter.
const (
	startTimeout     = 60 * time.Second // until it is ready; reading an image for the first time is slow
	interruptTimeout = 3 * time.Second  // until interrupted code has stopped
)

// An execution is one call of the tool.
type execution struct {
	*Interpreters
	call    tool.Call
	key     key
	request request
	restart bool
	timeout time.Duration

	session *session
	record  *output.Record
}

func (e *execution) run(ctx context.Context) (tool.Result, error) {
	one, err := e.lockSession(ctx, e.key)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { <-one.lock }()
	e.session = one
	if e.restart {
		e.endInterpreter(one, "")
		if e.request.Code == "" && e.request.Script == "" {
			return tool.Result{Text: fmt.Sprintf("The interpreter %s was ended; its variables were lost.", e.key.Name), Summary: "ended " + e.key.Name}, nil
		}
	}
	e.record = e.storage.Record(e.call.ID, e.call.Emit)
	defer e.record.Close()
	note, err := e.ready(ctx)
	if err != nil {
		return e.startFailure(ctx, err)
	}
	return e.execute(ctx, note)
}

// ready ensures that the session has an interpreter. The note says if it is a new one
// without the variables of the last one.
func (e *execution) ready(ctx context.Context) (note string, err error) {
	if i := e.session.interpreter; i != nil {
		select {
		case <-i.done:
			e.setInterpreter(e.session, nil, i.ended())
		default:
			return "", nil
		}
	}
	if e.session.endReason != "" {
		note = fmt.Sprintf("[This is a new interpreter, without the variables of the last one: %s.]", e.session.endReason)
	}
	return note, e.start(ctx)
}

// start starts an interpreter that outlives the call.
func (e *execution) start(ctx context.Context) error {
	if err := e.reserve(e.session); err != nil {
		return err
	}
	life, end := context.WithCancel(e.ctx)
	stop := context.AfterFunc(ctx, end)
	i, err := e.startProcess(life, end, sandbox.Command{ID: e.call.ID, Args: []string{e.opts.Program, "-u", "-c", driver}, Dir: e.opts.Workspace})
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		e.setInterpreter(e.session, nil, e.session.endReason)
		return err
	}
	e.setInterpreter(e.session, i, "")
	return nil
}

// startProcess starts the process and waits until it is ready.
func (e *execution) startProcess(life context.Context, end context.CancelFunc, cmd sandbox.Command) (*interpreter, error) {
	p, err := e.sandbox.Start(life, cmd)
	if err != nil {
		return nil, err
	}
	i, ready := newInterpreter(p, end, e.record)
	defer i.abandon(ready)
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-ready.answered:
		return i, nil
	case <-i.done:
		return nil, fmt.Errorf("%w: %s", errNotReady, i.ended())
	case <-timer.C:
		return nil, fmt.Errorf("%w in %s", errNotReady, startTimeout)
	case <-life.Done():
	}
	select { // an interpreter that exited has canceled life too
	case <-i.done:
		return nil, fmt.Errorf("%w: %s", errNotReady, i.ended())
	default:
		return nil, errNotReady
	}
}

// startFailure returns the failure if there is no interpreter.
func (e *execution) startFailure(ctx context.Context, err error) (tool.Result, error) {
	if full, ok := errors.AsType[*fullError](err); ok {
		return tool.Fail("Not executed: "+full.Error()+".",
			fmt.Sprintf("Use one of them, or end one with restart and no code: %s.", strings.Join(full.execution, ", "))), nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	return tool.Fail(output.Lines(output.Unstarted(err), output.Until(e.record.Text(ctx)))), nil
}

// execute sends the code to the interpreter and waits for the answer.
func (e *execution) execute(ctx context.Context, note string) (tool.Result, error) {
	i := e.session.interpreter
	a, between := i.ask(e.request, e.record)
	if between != "" {
		note = output.Lines(note, "[Printed since the last call:]", between, "[Printed by this call:]")
	}
	timer := time.NewTimer(e.timeout)
	defer timer.Stop()
	late := false
	for {
		select {
		case <-a.answered:
			return e.answered(ctx, note, a.answer, late)
		case <-i.done:
			i.abandon(a)
			return e.interpreterEnded(ctx, note, i)
		case <-ctx.Done():
			return e.interrupted(ctx, note, a)
		case <-timer.C:
			if late {
				return e.killedAfterTimeout(ctx, note, a)
			}
			late = true
			i.interrupt(a)
			timer.Reset(interruptTimeout)
		}
	}
}

// answered returns the result of code that ended.
func (e *execution) answered(ctx context.Context, note string, a *answer, late bool) (tool.Result, error) {
	text, last := e.record.Text(ctx), ""
	switch a.How {
	case howMissing:
		there := "There is none yet; save one with save_as."
		if a.Note != "" {
			there = "There are: " + a.Note + "."
		}
		return tool.Fail(fmt.Sprintf("There is no script %s.", e.request.Script), there), nil
	case howUnreadable:
		return tool.Fail(fmt.Sprintf("The script %s cannot be read: %s", e.request.Script, a.Note)), nil
	case howUnsaved:
		return tool.Fail("Not executed: the code could not be saved: " + a.Note), nil
	}
	if a.Note != "" {
		note = output.Lines(note, fmt.Sprintf("[Saved as %s.]", a.Note))
	}
	switch {
	case late && a.How == howInterrupted:
		last = fmt.Sprintf("interrupted: timed out after %s; the variables are kept", output.Seconds(e.timeout))
	case text == "":
		text = "(no output)"
	}
	return tool.Result{Text: output.Lines(note, text, last), Failed: a.How != howDone, Summary: e.summary(a.How)}, nil
}

// interpreterEnded returns the result of code that ended its interpreter.
func (e *execution) interpreterEnded(ctx context.Context, note string, i *interpreter) (tool.Result, error) {
	e.setInterpreter(e.session, nil, "") // this result says it
	text := e.record.Text(ctx)
	if i.err == nil && i.exit.Cause == sandbox.SandboxLost {
		return tool.Fail(output.Lines(output.Lost(i.exit), output.Until(text))), nil
	}
	last := fmt.Sprintf("the interpreter ended (%s); its variables are lost, the next call has a new one", i.ended())
	return tool.Result{Text: output.Lines(note, text, last), Failed: i.failed(), Summary: e.summary(i.ended())}, nil
}

// killedAfterTimeout returns the result of code that did not stop after an interrupt.
func (e *execution) killedAfterTimeout(ctx context.Context, note string, a *pending) (tool.Result, error) {
	e.session.interpreter.abandon(a)
	e.endInterpreter(e.session, "")
	last := fmt.Sprintf("killed: timed out after %s and did not stop when it was interrupted; the variables are lost, the next call has a new interpreter",
		output.Seconds(e.timeout))
	return tool.Result{Text: output.Lines(note, e.record.Text(ctx), last), Failed: true, Summary: e.summary("timed out")}, nil
}

// interrupted returns the result if the context of the call has ended, with the
// output so far.
func (e *execution) interrupted(ctx context.Context, note string, a *pending) (tool.Result, error) {
	e.session.interpreter.abandon(a)
	e.endInterpreter(e.session, "ended when a call was interrupted")
	why, err := output.Interrupted(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	why += "; the interpreter was killed, and the code may have partly happened"
	return tool.Result{Text: output.Lines(note, e.record.Text(ctx), why), Failed: true, Summary: e.summary("interrupted")}, nil
}

func (e *execution) summary(how string) string {
	what := e.request.Script
	if what == "" {
		what, _, _ = strings.Cut(strings.TrimSpace(e.request.Code), "\n")
	}
	return how + ": " + what
}

// maxSessions bounds the interpreters that run at once.
const maxSessions = 8

// endTimeout is how long to wait for the end of an interpreter.
const endTimeout = time.Second

const stateFile = "python.json"

// A key names a session of an agent.
type key struct {
	Scope string `json:"scope,omitempty"`
	Name  string `json:"name"`
}

// A session has an interpreter while one is needed.
type session struct {
	lock        chan struct{} // holds a token while a call is in it
	interpreter *interpreter  // nil if there is none
	reserved    bool          // an interpreter runs or is being started
	endReason   string        // why the last interpreter ended; empty if there was none
}

// load reads the interpreters of an earlier attempt, which are lost.
func (i *Interpreters) load() error {
	return remember.Load(i.opts.State, stateFile, &i.lost)
}

// save records which interpreters run, for the next attempt. Errors are ignored,
// because a full disk must not fail a call.
func (i *Interpreters) save() { _ = remember.Save(i.opts.State, stateFile, i.keys()) }

// keys returns the sorted keys of sessions with an interpreter.
func (i *Interpreters) keys() []key {
	keys := []key{}
	for k, one := range i.sessions {
		if one.alive() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.Scope+"\x00"+a.Name, b.Scope+"\x00"+b.Name) })
	return keys
}

// alive reports whether a session has an interpreter, or one is being started.
func (s *session) alive() bool {
	if !s.reserved || s.interpreter == nil {
		return s.reserved
	}
	select {
	case <-s.interpreter.done:
		return false
	default:
		return true
	}
}

// Lost describes the interpreters that were lost with an earlier attempt, for the
// model.
func (i *Interpreters) Lost() []string { return words(i.lost) }

func words(keys []key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, "python session "+k.Name)
	}
	return all
}

// Close ends all interpreters and waits up to endTimeout.
func (i *Interpreters) Close() {
	i.end()
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, one := range i.sessions {
		if one.interpreter == nil {
			continue
		}
		select {
		case <-one.interpreter.done:
		case <-timer.C:
			return
		}
	}
}

// lockSession waits until no other call uses a session.
func (i *Interpreters) lockSession(ctx context.Context, k key) (*session, error) {
	i.mu.Lock()
	one, ok := i.sessions[k]
	if !ok {
		one = &session{lock: make(chan struct{}, 1)}
		if slices.Contains(i.lost, k) {
			one.endReason = "lost when the runner was restarted"
		}
		i.sessions[k] = one
	}
	i.mu.Unlock()
	select {
	case one.lock <- struct{}{}:
		return one, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A fullError means that too many interpreters run.
type fullError struct{ execution []string }

func (e *fullError) Error() string {
	return fmt.Sprintf("%d interpreters run already, which is the most", len(e.execution))
}

// reserve counts a new interpreter. It fails if too many run.
func (i *Interpreters) reserve(one *session) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if execution := i.keys(); len(execution) >= maxSessions {
		return &fullError{execution: words(execution)}
	}
	one.reserved, one.interpreter = true, nil
	i.save()
	return nil
}

// setInterpreter sets the interpreter of a session; nil if it ended, with the reason.
func (i *Interpreters) setInterpreter(one *session, interp *interpreter, endReason string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	one.interpreter, one.reserved, one.endReason = interp, interp != nil, endReason
	i.save()
}

// endInterpreter ends the interpreter of a session and waits up to endTimeout.
func (i *Interpreters) endInterpreter(one *session, why string) {
	if interp := one.interpreter; interp != nil {
		interp.end()
		timer := time.NewTimer(endTimeout)
		defer timer.Stop()
		select {
		case <-interp.done:
		case <-timer.C:
		}
	}
	i.setInterpreter(one, nil, why)
}

var errNotReady = errors.New("python did not start")
