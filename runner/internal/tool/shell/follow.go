package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// dying is how long a job that is killed may take until its end is told.
const dying = 5 * time.Second

// background starts the command and shows how it begins.
func (c *command) background(ctx context.Context) (tool.Result, error) {
	j, err := c.launch(ctx)
	if errors.Is(err, errTooMany) {
		return tool.Fail(fmt.Sprintf("Not executed: %d background commands run already, which is the most.", maxJobs),
			fmt.Sprintf("End one with %s_kill. There are: %s.", c.use.Name, c.list())), nil
	}
	if err != nil {
		return c.unstarted(ctx, err)
	}
	if err := await(ctx, j, firstLook); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{
		Text: output.Lines(fmt.Sprintf("Started in the background as %s. Follow it with %s_output.", j.id, c.use.Name), j.news()),
		// The command is what people want to see.
		Summary: c.summary(j.id),
	}, nil
}

// await waits until a job ended, for so long at most.
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

type lookIn struct {
	ID   string  `json:"id" jsonschema:"the id that the command was started with, such as job-1"`
	Wait float64 `json:"wait_seconds,omitempty" jsonschema:"wait until it ends, for so many seconds at most; default 0"`
}

func (s *Shells) look(u Use) tool.Tool {
	return tool.Typed(spec(u, "_output", outputPage, tool.ReadOnly), func(ctx context.Context, _ tool.Call, in lookIn) (tool.Result, error) {
		if in.Wait < 0 || in.Wait > s.opts.MaxTimeout.Seconds() {
			return tool.Fail(fmt.Sprintf("wait_seconds must be from 0 to %g.", s.opts.MaxTimeout.Seconds())), nil
		}
		j, ok := s.job(in.ID)
		if !ok {
			return s.unknown(in.ID), nil
		}
		if err := await(ctx, j, time.Duration(in.Wait*float64(time.Second))); err != nil {
			return tool.Result{}, err
		}
		return j.result(), nil
	})
}

type killIn struct {
	ID string `json:"id" jsonschema:"the id that the command was started with, such as job-1"`
}

func (s *Shells) kill(u Use) tool.Tool {
	return tool.Typed(spec(u, "_kill", killPage, tool.Idempotent), func(ctx context.Context, _ tool.Call, in killIn) (tool.Result, error) {
		j, ok := s.job(in.ID)
		if !ok {
			return s.unknown(in.ID), nil
		}
		j.end()
		if err := await(ctx, j, dying); err != nil {
			return tool.Result{}, err
		}
		return j.result(), nil
	})
}

func (j *job) result() tool.Result {
	pending := j.running() // before its output is read: a job that ends now is pending once more
	text := j.news()
	return tool.Result{Text: text, Pending: pending, Summary: fmt.Sprintf("%s (%s): %s", j.id, j.line, j.status())}
}

// unknown is what is said of a job that is not there.
func (s *Shells) unknown(id string) tool.Result {
	there := "There is none now."
	if all := s.list(); all != "" {
		there = "There are: " + all + "."
	}
	return tool.Fail(fmt.Sprintf("There is no background command %q. Commands that ran when the runner was restarted are lost; commands that ended long ago are forgotten.", id), there)
}
