package attempt

import (
	"cmp"
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
	// publishFor is how long the runner tries to publish, publishPause the delay between two tries.
	publishFor   = 10 * time.Minute
	publishPause = 5 * time.Second
	// maxBody bounds how much of the agent's last text a commit message has.
	maxBody = 4 << 10
)

// A publisher pushes the files of an attempt whose work is done.
type publisher struct {
	Environment
	task     task.Task
	snapshot task.Snapshot
	began    time.Time
	redact   *redact.Redactor
	latest   *signals.Latest
	reporter reporter
}

func (a *attempt) publisher() *publisher {
	return &publisher{
		Environment: a.Environment, task: a.task, snapshot: a.snapshot, began: a.began,
		redact: a.redact, latest: &a.latest, reporter: a.reporter,
	}
}

// publish pushes the resulting files, if that is configured and the Run succeeded, before the end is reported.
func (p *publisher) publish(ctx context.Context, out engine.Outcome) (*task.Published, engine.Outcome) {
	g := p.snapshot.Workspace.Git
	if out.Reason != task.ReasonFinished || g == nil || !g.Publish {
		return nil, out
	}
	ctx, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	pushed, left, err := p.push(ctx, out)
	if err == nil {
		out.Warning = leftOutWarning(p.redact.String(left), out.Warning)
		return pushed, out
	}
	end := errPublish(err)
	switch now, _ := p.latest.Current(); {
	case now.Interrupted: // the next attempt does it, as after a pause
		end = signals.ErrInterrupted
	case now.Stopped:
		end = &task.EndError{Reason: task.ReasonStopped, Message: "Stopped by spec.desiredState after the work was done, before the push of its branch was confirmed"}
	case now.Paused && p.task.Durable:
		end = &task.EndError{Reason: task.ReasonPaused}
	}
	out.Reason, out.Message = end.Reason, p.redact.String(end.Message)
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
func (p *publisher) push(ctx context.Context, out engine.Outcome) (pushed *task.Published, left string, err error) {
	ctx, cancel := signals.Context(ctx, p.latest, p.cancels, nil)
	defer cancel()
	repository, err := p.repository(ctx, p.task, p.snapshot.Workspace.Git)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(p.Workspace)
	if err != nil {
		return nil, "", fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	branch, err := workspace.Branch(p.State)
	if err != nil {
		return nil, "", err
	}
	options := workspace.PublishOptions{
		Workspace: root, State: p.State, Origin: p.origin, Git: repository,
		Branch:  cmp.Or(branch, "deckhand/"+p.task.Run.Name),
		Message: commitMessage(p.task.Run, p.redact.String(redact.Printable(out.Text))),
		Author:  workspace.Author{Name: "Deckhand", Email: p.snapshot.Agent.Name + "@" + p.task.Run.Namespace + ".deckhand", When: p.began},
	}
	wait, cancelRetries := signals.Context(ctx, p.latest, p.endsRetries, nil)
	defer cancelRetries()
	p.show(out.Progress, nil)
	var done workspace.Published
	err = retry(wait, publishPause, func() (err error) {
		if done, err = workspace.Publish(ctx, options); err != nil && wait.Err() == nil {
			p.show(out.Progress, err)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return &task.Published{Branch: options.Branch, Commit: done.Commit}, done.LeftOut, nil
}

// cancels reports whether a push in progress is cancelled: the Run is stopped,
// or paused and another attempt can publish.
func (p *publisher) cancels(s signals.Signals) bool {
	return s.Stopped || s.Paused && p.task.Durable
}

// endsRetries reports whether a failed push is not retried. When the pod shuts down,
// a push in progress still has the grace period.
func (p *publisher) endsRetries(s signals.Signals) bool {
	return s.Interrupted || p.cancels(s)
}

// publishing is the name of the last step of a Run that publishes, in the status.
const publishing = "publish"

// show reports in the status that the work is being published, and the problem
// with the last push if there was one.
func (p *publisher) show(progress task.Progress, problem error) {
	progress.Step = &task.Current{Kind: task.KindTool, Name: publishing, StartedAt: p.Now().UTC().Format(time.RFC3339)}
	if problem != nil {
		text := p.redact.String(redact.Printable(problem.Error()))
		p.Log.Warn("Publishing failed", "error", text)
		progress.Recent = append(slices.Clone(progress.Recent), task.Recent{
			Kind: task.KindTool, Name: publishing, Summary: task.Cut("Failed: "+text, task.MaxRecentText),
		})
		progress.Recent = progress.Recent[max(len(progress.Recent)-task.MaxRecent, 0):]
	}
	p.reporter.Report(func() task.Progress { return progress })
}

// commitMessage returns the message of a commit: the Run, and its last text.
func commitMessage(run task.Run, text string) string {
	subject := fmt.Sprintf("Work of Run %s/%s", run.Namespace, run.Name)
	if text = strings.TrimSpace(text); text == "" {
		return subject + "\n"
	}
	return subject + "\n\n" + task.Cut(text, maxBody) + "\n"
}

// errPublish returns a failure to publish with the reason PublishFailed, which distinguishes it from a failure of the
// work.
func errPublish(err error) *task.EndError {
	message := err.Error()
	if refused, is := errors.AsType[*workspace.RefusedError](err); is {
		message = refused.Message
	}
	return &task.EndError{Reason: task.ReasonPublishFailed, Message: fmt.Sprintf("The work is done, but could not be published: %s", message), Cause: err}
}
