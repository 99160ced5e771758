package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

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
