package shell

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

// killTimeout is how long a command that was canceled may take to end. The loop
// does not wait much longer for the result.
const killTimeout = time.Second

// maxName bounds the name of a shell.
const maxName = 64

// How many bytes of output are looked at. It is far more than is shown or kept:
// what matters most of it is at the end.
const (
	mostOutput       = 64 << 20
	mostInBackground = 1 << 30
)

// A command is one call on its way.
type command struct {
	*Shells
	use     Use
	call    tool.Call
	line    string
	which   string // shell, by the session and the name
	timeout time.Duration
}

// check takes the arguments over and says what is wrong with them.
func (c *command) check(in runIn) *tool.Result {
	fail := func(format string, args ...any) *tool.Result {
		r := tool.Fail(fmt.Sprintf(format, args...))
		return &r
	}
	most := c.opts.MaxTimeout
	switch {
	case strings.TrimSpace(in.Command) == "":
		return fail("The command is empty.")
	case len(in.Command) > maxCommand:
		return fail("The command has %d bytes; at most %d can be run. Write it to a file first, then run that.", len(in.Command), maxCommand)
	case strings.ContainsRune(in.Command, 0):
		return fail("The command contains a NUL character, which no command line can. Write \\0 in a $'…' or printf instead.")
	case in.Timeout < 0 || in.Timeout > most.Seconds():
		return fail("timeout_seconds must be more than 0 and at most %g. Set background for what takes longer.", most.Seconds())
	case len(in.Name) > maxName:
		return fail("The name has %d bytes; at most %d are taken.", len(in.Name), maxName)
	}
	c.which = c.call.Scope.Parent + "\x00" + in.Name
	c.timeout = time.Duration(in.Timeout * float64(time.Second))
	return nil
}

// foreground runs the command and waits for it.
func (c *command) foreground(ctx context.Context) (tool.Result, error) {
	if c.timeout == 0 {
		c.timeout = c.use.Timeout
	}
	unlock, err := c.lock(ctx, c.which)
	if err != nil {
		return c.unstarted(ctx, err)
	}
	defer unlock()
	p, err := c.start(ctx, mostOutput)
	if err != nil {
		return c.unstarted(ctx, err)
	}
	rec := c.place.Record(c.call.ID, c.call.Emit)
	defer rec.Close()
	f := following{record: rec}
	if !f.follow(ctx, p) {
		return c.interrupted(ctx, rec)
	}
	exit, err := p.Wait(context.WithoutCancel(ctx)) // it has ended
	if ctx.Err() != nil && (err != nil || exit.Cause == sandbox.Canceled) {
		return c.interrupted(ctx, rec)
	}
	return c.ended(ctx, &f, exit, err)
}

// start starts the command where the shell is.
func (c *command) start(ctx context.Context, most int64) (sandbox.Process, error) {
	cmd := program(c.opts.Program, c.line, c.dir(c.which))
	cmd.ID, cmd.Limits = c.call.ID, sandbox.Limits{Timeout: c.timeout, Output: most}
	return c.sandbox.Start(ctx, cmd)
}

// unstarted says why there is no process. A directory that is gone does not make
// the command run elsewhere: it was not meant for there.
func (c *command) unstarted(ctx context.Context, err error) (tool.Result, error) {
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok && refused.Reason == sandbox.NoDirectory {
		gone := c.dir(c.which)
		if gone == c.opts.Workspace {
			return tool.Fail("Not executed: the workspace " + gone + " is not there."), nil
		}
		c.moved(c.which, c.opts.Workspace)
		return tool.Fail(fmt.Sprintf("Not executed: the working directory %s no longer exists. The working directory is %s now.", gone, c.opts.Workspace),
			"Repeat the command if it is meant to run there."), nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if _, ok := errors.AsType[*sandbox.LostError](err); ok {
		c.sandboxLost()
	}
	return tool.Fail(output.Unstarted(err)), nil
}

// interrupted is the result of a command that was cut: what it printed until
// then. It is not an error, since the loop would say less in place of it.
func (c *command) interrupted(ctx context.Context, rec *output.Record) (tool.Result, error) {
	why, err := output.Interrupted(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	why += "; the command was killed and may have partly happened"
	return tool.Result{Text: output.Lines(rec.Text(ctx), why), Summary: c.summary("interrupted")}, nil
}

// ended is the result of a command that ended.
func (c *command) ended(ctx context.Context, f *following, exit sandbox.Exit, err error) (tool.Result, error) {
	text := f.record.Text(ctx)
	switch {
	case err != nil:
		return tool.Fail(output.Lines(fmt.Sprintf("the end of the command is not known, it may have partly happened: %v", err), output.Until(text))), nil
	case exit.Cause == sandbox.SandboxLost:
		c.sandboxLost()
		return tool.Fail(output.Lines(output.Lost(exit), output.Until(text))), nil
	}
	if text == "" {
		text = "(no output)"
	}
	last := output.Killed(exit, c.timeout)
	if last == "" {
		last = fmt.Sprintf("exit code: %d", exit.Code)
	}
	return tool.Result{
		Text:    output.Lines(text, output.Dropped(exit), c.advice(exit), c.now(f.control.dir()), last),
		Summary: c.summary(last),
	}, nil
}

// advice says what to do about a command that was killed.
func (c *command) advice(exit sandbox.Exit) string {
	if exit.Cause != sandbox.TimedOut {
		return ""
	}
	return fmt.Sprintf("[Set timeout_seconds, up to %g, or background for what takes longer.]", c.opts.MaxTimeout.Seconds())
}

// now takes over the directory that the command ended in, and says when that is
// another one.
func (c *command) now(dir string) string {
	if dir == "" || dir == c.dir(c.which) {
		return ""
	}
	c.moved(c.which, dir)
	return fmt.Sprintf("[The working directory is %s now.]", dir)
}

func (c *command) summary(how string) string {
	line, _, more := strings.Cut(strings.TrimSpace(c.line), "\n")
	if more {
		line += " …"
	}
	return how + ": " + line
}

// following is what comes of a command while it runs.
type following struct {
	record  *output.Record
	control heard
}

// follow takes what comes until the process ended. False: the context ended, and
// the process did not soon after.
func (f *following) follow(ctx context.Context, p sandbox.Process) bool {
	over, late := ctx.Done(), make(<-chan time.Time)
	for {
		select {
		case chunk, more := <-p.Output():
			if !more {
				return true
			}
			f.take(chunk)
		case <-over:
			_ = p.Kill() // the context does it as well
			timer := time.NewTimer(killTimeout)
			defer timer.Stop()
			over, late = nil, timer.C
		case <-late:
			go drain(p)
			return false
		}
	}
}

func (f *following) take(chunk sandbox.Chunk) {
	if chunk.Stream == sandbox.Control {
		f.control.write(chunk.Data)
		return
	}
	f.record.Write(chunk.Data)
}

// drain takes what nobody wants any more, so that nothing waits for it.
func drain(p sandbox.Process) {
	for range p.Output() {
	}
}
