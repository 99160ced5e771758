package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/engine"
	"github.com/deckhand-dev/deckhand/runner/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/workspace"
)

const (
	// publishFor is how long publishing is tried, publishPause how long between.
	publishFor   = 10 * time.Minute
	publishPause = 5 * time.Second
	// maxBody is the most of the last word that goes into a commit.
	maxBody = 4 << 10
)

// publish pushes what became of the files, where that is wanted and the work is
// done, before anybody is told so.
func (w *work) publish(ctx context.Context, out engine.Outcome) (*task.Published, engine.Outcome) {
	g := w.snapshot.Workspace.Git
	if out.Reason != task.ReasonFinished || g == nil || !g.Publish {
		return nil, out
	}
	ctx, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	pushed, err := w.push(ctx, out)
	if err == nil {
		return pushed, out
	}
	if w.interrupted() {
		out.Reason, out.Message = engine.ErrInterrupted.Reason, engine.ErrInterrupted.Message // the next attempt does it
		return nil, out
	}
	end := errPublish(err)
	out.Reason, out.Message = end.Reason, w.redact.String(end.Message)
	return nil, out
}

// push tries to publish until it works, is refused, or takes too long.
func (w *work) push(ctx context.Context, out engine.Outcome) (*task.Published, error) {
	repository, err := w.repository(ctx, w.task, w.snapshot.Workspace.Git)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(w.workspace)
	if err != nil {
		return nil, fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	options := workspace.PublishOptions{
		Workspace: root, State: w.state, Git: repository,
		Branch:  "deckhand/" + w.task.Run.Name,
		Message: commitMessage(w.task.Run, w.redact.String(redact.Printable(out.Text))),
		Author:  workspace.Author{Name: "Deckhand", Email: w.snapshot.Agent.Name + "@" + w.task.Run.Namespace + ".deckhand", When: w.began},
	}
	wait, cancel := while(ctx, w.begun)
	defer cancel()
	var done workspace.Published
	err = persist(wait, publishPause, func() (err error) {
		if done, err = workspace.Publish(ctx, options); err != nil {
			w.log.Warn("Publishing failed", "error", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &task.Published{Branch: options.Branch, Commit: done.Commit}, nil
}

// commitMessage says which Run a commit is of, and what it said at last.
func commitMessage(run task.Run, text string) string {
	subject := fmt.Sprintf("Work of Run %s/%s", run.Namespace, run.Name)
	if text = strings.TrimSpace(text); text == "" {
		return subject + "\n"
	}
	return subject + "\n\n" + task.Cut(text, maxBody) + "\n"
}
