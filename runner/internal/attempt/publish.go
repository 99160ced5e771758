package attempt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// publishFor is how long publishing is tried, publishPause how long between.
	publishFor   = 10 * time.Minute
	publishPause = 5 * time.Second
	// maxBody bounds how much of the agent's last text a commit message has.
	maxBody = 4 << 10
)

// publish pushes the resulting files, if that is configured and the Run succeeded, before the end is reported.
func (a *attempt) publish(ctx context.Context, out engine.Outcome) (*task.Published, engine.Outcome) {
	g := a.snapshot.Workspace.Git
	if out.Reason != task.ReasonFinished || g == nil || !g.Publish {
		return nil, out
	}
	ctx, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	pushed, left, err := a.push(ctx, out)
	if err == nil {
		out.Warning = leftOutWarning(a.redact.String(left), out.Warning)
		return pushed, out
	}
	end := errPublish(err)
	switch now, _ := a.latest.Current(); {
	case now.Interrupted: // the next attempt does it, as after a pause
		end = signals.ErrInterrupted
	case now.Stopped:
		end = &task.EndError{Reason: task.ReasonStopped, Message: "Stopped by spec.desiredState after the work was done, before the push of its branch was confirmed"}
	case now.Paused && a.task.Durable:
		end = &task.EndError{Reason: task.ReasonPaused}
	}
	out.Reason, out.Message = end.Reason, a.redact.String(end.Message)
	return nil, out
}

// leftOutWarning adds to a warning which files a commit does not have. Lost work comes
// first: a warning is cut at its end.
func leftOutWarning(left, warning string) string {
	if left == "" {
		return warning
	}
	return strings.TrimSpace("Not in the commit, because files of Git LFS cannot be published: " + left + ". Push them yourself. " + warning)
}

// push tries to publish until it works, is refused, or takes too long. It also returns
// the names of changed files that are not in the commit.
func (a *attempt) push(ctx context.Context, out engine.Outcome) (pushed *task.Published, left string, err error) {
	ctx, cancel := signals.Context(ctx, &a.latest, a.cancelsPublishing, nil)
	defer cancel()
	repository, err := a.repository(ctx, a.task, a.snapshot.Workspace.Git)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(a.Workspace)
	if err != nil {
		return nil, "", fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	options := workspace.PublishOptions{
		Workspace: root, State: a.State, Origin: a.origin, Git: repository,
		Branch:  "deckhand/" + a.task.Run.Name,
		Message: commitMessage(a.task.Run, a.redact.String(redact.Printable(out.Text))),
		Author:  workspace.Author{Name: "Deckhand", Email: a.snapshot.Agent.Name + "@" + a.task.Run.Namespace + ".deckhand", When: a.began},
	}
	wait, cancelRetries := signals.Context(ctx, &a.latest, a.endsPublishing, nil)
	defer cancelRetries()
	a.showPublishing(out.Progress, nil)
	var done workspace.Published
	err = retry(wait, publishPause, func() (err error) {
		if done, err = workspace.Publish(ctx, options); err != nil && wait.Err() == nil {
			a.showPublishing(out.Progress, err)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return &task.Published{Branch: options.Branch, Commit: done.Commit}, done.LeftOut, nil
}

// cancelsPublishing reports whether a push in progress is cancelled: the Run is stopped,
// or paused and another attempt can publish.
func (a *attempt) cancelsPublishing(s signals.Signals) bool {
	return s.Stopped || s.Paused && a.task.Durable
}

// endsPublishing reports whether a failed push is not retried. When the pod shuts down,
// a push in progress still has the grace period.
func (a *attempt) endsPublishing(s signals.Signals) bool {
	return s.Interrupted || a.cancelsPublishing(s)
}

// publishing is the name of the last step of a Run that publishes, in the status.
const publishing = "publish"

// showPublishing reports in the status that the work is being published, and the problem
// with the last push if there was one.
func (a *attempt) showPublishing(p task.Progress, problem error) {
	p.Step = &task.Current{Kind: task.KindTool, Name: publishing, StartedAt: a.Now().UTC().Format(time.RFC3339)}
	if problem != nil {
		text := a.redact.String(redact.Printable(problem.Error()))
		a.Log.Warn("Publishing failed", "error", text)
		p.Recent = append(slices.Clone(p.Recent), task.Recent{
			Kind: task.KindTool, Name: publishing, Summary: task.Cut("Failed: "+text, task.MaxRecentText),
		})
		p.Recent = p.Recent[max(len(p.Recent)-task.MaxRecent, 0):]
	}
	a.reporter.Report(func() task.Progress { return p })
}

// commitMessage returns the message of a commit: the Run, and its last text.
func commitMessage(run task.Run, text string) string {
	subject := fmt.Sprintf("Work of Run %s/%s", run.Namespace, run.Name)
	if text = strings.TrimSpace(text); text == "" {
		return subject + "\n"
	}
	return subject + "\n\n" + task.Cut(text, maxBody) + "\n"
}

// errPublish keeps a failure to publish apart from one of the work.
func errPublish(err error) *task.EndError {
	message := err.Error()
	if refused, is := errors.AsType[*workspace.RefusedError](err); is {
		message = refused.Message
	}
	return &task.EndError{Reason: task.ReasonPublishFailed, Message: fmt.Sprintf("The work is done, but could not be published: %s", message), Cause: err}
}
