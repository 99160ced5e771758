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

// killTimeout is how long to wait for the end of a command that was canceled. The
// agent loop does not wait much longer for the result.
const killTimeout = time.Second

// maxName bounds the name of a shell.
const maxName = 64

// Bounds of output that is read, in bytes: far more than is shown or stored, because
// the end is the most important part.
const (
	maxOutput           = 64 << 20
	maxBackgroundOutput = 1 << 30
)

// A command is one call of the tool.
type command struct {
	*Shells
	use      Use
	call     tool.Call
	line     string
	shellKey string // key of the shell: session and name
	timeout  time.Duration
}

// check validates the arguments and stores them.
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
	c.shellKey = c.call.Scope.Parent + "\x00" + in.Name
	c.timeout = time.Duration(in.Timeout * float64(time.Second))
	return nil
}

// foreground runs the command and waits for it.
func (c *command) foreground(ctx context.Context) (tool.Result, error) {
	if c.timeout == 0 {
		c.timeout = c.use.Timeout
	}
	unlock, err := c.lock(ctx, c.shellKey)
	if err != nil {
		return c.startFailure(ctx, err)
	}
	defer unlock()
	p, err := c.start(ctx, maxOutput)
	if err != nil {
		return c.startFailure(ctx, err)
	}
	rec := c.storage.Record(c.call.ID, c.call.Emit)
	defer rec.Close()
	f := outputFollower{record: rec}
	if !f.follow(ctx, p) {
		return c.interrupted(ctx, rec)
	}
	exit, err := p.Wait(context.WithoutCancel(ctx)) // it has ended
	if ctx.Err() != nil && (err != nil || exit.Cause == sandbox.Canceled) {
		return c.interrupted(ctx, rec)
	}
	return c.exitResult(ctx, &f, exit, err)
}

// start starts the command in the working directory of the shell.
func (c *command) start(ctx context.Context, most int64) (sandbox.Process, error) {
	cmd := program(c.opts.Program, c.line, c.dir(c.shellKey))
	cmd.ID, cmd.Limits = c.call.ID, sandbox.Limits{Timeout: c.timeout, Output: most}
	return c.sandbox.Start(ctx, cmd)
}

// startFailure returns the failure if there is no process. If the working directory
// does not exist, the command is not executed in another one.
func (c *command) startFailure(ctx context.Context, err error) (tool.Result, error) {
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok && refused.Reason == sandbox.NoDirectory {
		gone := c.dir(c.shellKey)
		if gone == c.opts.Workspace {
			return tool.Fail("Not executed: the workspace " + gone + " is not there."), nil
		}
		c.setDir(c.shellKey, c.opts.Workspace)
		return tool.Fail(fmt.Sprintf("Not executed: the working directory %s no longer exists. The working directory is %s now.", gone, c.opts.Workspace),
			"Repeat the command if it is meant to run there."), nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if _, ok := errors.AsType[*sandbox.LostError](err); ok {
		c.resetDirs()
	}
	return tool.Fail(output.Unstarted(err)), nil
}

// interrupted returns the result if the context of the call has ended, with the
// output so far.
func (c *command) interrupted(ctx context.Context, rec *output.Record) (tool.Result, error) {
	why, err := output.Interrupted(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	why += "; the command was killed and may have partly happened"
	return tool.Result{Text: output.Lines(rec.Text(ctx), why), Failed: true, Summary: c.summary("interrupted")}, nil
}

// exitResult returns the result of a command that ended.
func (c *command) exitResult(ctx context.Context, f *outputFollower, exit sandbox.Exit, err error) (tool.Result, error) {
	text := f.record.Text(ctx)
	switch {
	case err != nil:
		return tool.Fail(output.Lines(fmt.Sprintf("the end of the command is not known, it may have partly happened: %v", err), output.Until(text))), nil
	case exit.Cause == sandbox.SandboxLost:
		c.resetDirs()
		return tool.Fail(output.Lines(output.Lost(exit), output.Until(text))), nil
	}
	if text == "" {
		text = "(no output)"
	}
	last := output.Ended(exit, c.timeout)
	return tool.Result{
		Text:    output.Lines(text, output.Dropped(exit), c.advice(exit), c.updateDir(f.control.dir()), last),
		Failed:  output.Failed(exit),
		Summary: c.summary(last),
	}, nil
}

// advice recommends what to do after a timeout.
func (c *command) advice(exit sandbox.Exit) string {
	if exit.Cause != sandbox.TimedOut {
		return ""
	}
	return fmt.Sprintf("[Set timeout_seconds, up to %g, or background for what takes longer.]", c.opts.MaxTimeout.Seconds())
}

// updateDir stores the final working directory of the command. It returns a note if it
// has changed.
func (c *command) updateDir(dir string) string {
	if dir == "" || dir == c.dir(c.shellKey) {
		return ""
	}
	c.setDir(c.shellKey, dir)
	return fmt.Sprintf("[The working directory is %s now.]", dir)
}

func (c *command) summary(how string) string {
	line, _, more := strings.Cut(strings.TrimSpace(c.line), "\n")
	if more {
		line += " …"
	}
	return how + ": " + line
}

// An outputFollower collects the output of a running command.
type outputFollower struct {
	record  *output.Record
	control controlReader
}

// follow reads output until the process ended. It returns false if the context has
// ended and the process did not end within killTimeout.
func (f *outputFollower) follow(ctx context.Context, p sandbox.Process) bool {
	done, late := ctx.Done(), make(<-chan time.Time)
	for {
		select {
		case chunk, more := <-p.Output():
			if !more {
				return true
			}
			f.handleChunk(chunk)
		case <-done:
			_ = p.Kill() // the context does it too
			timer := time.NewTimer(killTimeout)
			defer timer.Stop()
			done, late = nil, timer.C
		case <-late:
			go drain(p)
			return false
		}
	}
}

func (f *outputFollower) handleChunk(chunk sandbox.Chunk) {
	if chunk.Stream == sandbox.Control {
		f.control.write(chunk.Data)
		return
	}
	f.record.Write(chunk.Data)
}

// drain discards output, so that the process is not blocked.
func drain(p sandbox.Process) {
	for range p.Output() {
	}
}

// killWait is how long to wait for the end of a job that is killed.
const killWait = 5 * time.Second

// background starts the command and returns its first output.
func (c *command) background(ctx context.Context) (tool.Result, error) {
	j, err := c.launch(ctx)
	if errors.Is(err, errTooMany) {
		return tool.Fail(fmt.Sprintf("Not executed: %d background commands run already, which is the most.", maxJobs),
			fmt.Sprintf("End one with %s. There are: %s.", nameOf(c.use, kill), c.list())), nil
	}
	if err != nil {
		return c.startFailure(ctx, err)
	}
	if err := await(ctx, j, firstOutputWait); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{
		Text:   output.Lines(fmt.Sprintf("Started in the background as %s. Follow it with %s.", j.id, nameOf(c.use, follow)), j.newOutput()),
		Failed: j.failed(),
		// Users want to see the command.
		Summary: c.summary(j.id),
	}, nil
}

// await waits until a job ended, or for most.
func await(ctx context.Context, j *job, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

type outputIn struct {
	ID   string  `json:"id" jsonschema:"the id that the command was started with, such as job-1"`
	Wait float64 `json:"wait_seconds,omitempty" jsonschema:"wait until it ends, for so many seconds at most; default 0"`
}

func (s *Shells) outputTool(u Use) tool.Tool {
	return tool.Typed(spec(u, follow, outputPage, tool.ReadOnly), func(ctx context.Context, _ tool.Call, in outputIn) (tool.Result, error) {
		if in.Wait < 0 || in.Wait > s.opts.MaxTimeout.Seconds() {
			return tool.Fail(fmt.Sprintf("wait_seconds must be from 0 to %g.", s.opts.MaxTimeout.Seconds())), nil
		}
		j, ok := s.job(in.ID)
		if !ok {
			return s.unknownJob(in.ID), nil
		}
		if err := await(ctx, j, time.Duration(in.Wait*float64(time.Second))); err != nil {
			return tool.Result{}, err
		}
		res := j.result()
		res.Failed = j.failed()
		return res, nil
	})
}

type killIn struct {
	ID string `json:"id" jsonschema:"the id that the command was started with, such as job-1"`
}

func (s *Shells) killTool(u Use) tool.Tool {
	return tool.Typed(spec(u, kill, killPage, tool.Idempotent), func(ctx context.Context, _ tool.Call, in killIn) (tool.Result, error) {
		j, ok := s.job(in.ID)
		if !ok {
			return s.unknownJob(in.ID), nil
		}
		j.end()
		if err := await(ctx, j, killWait); err != nil {
			return tool.Result{}, err
		}
		return j.result(), nil
	})
}

func (j *job) result() tool.Result {
	pending := j.running() // read before the output, so that the final output is not missed
	text := j.newOutput()
	return tool.Result{Text: text, Pending: pending, Summary: fmt.Sprintf("%s (%s): %s", j.id, j.line, j.status())}
}

// unknownJob returns the failure for a job that does not exist.
func (s *Shells) unknownJob(id string) tool.Result {
	there := "There is none now."
	if all := s.list(); all != "" {
		there = "There are: " + all + "."
	}
	return tool.Fail(fmt.Sprintf("There is no background command %q. Commands that ran when the runner was restarted are lost; commands that ended long ago are forgotten.", id), there)
}
