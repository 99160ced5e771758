package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// secretTimeout is how long the runner waits for the credentials of a repository.
	secretTimeout = 15 * time.Second
	secretPoll    = 500 * time.Millisecond
	// fetchFor is how long the runner tries to reach a missing repository, fetchPause the delay between two tries. A
	// server that was created together with the Run may start later.
	fetchFor   = time.Minute
	fetchPause = 2 * time.Second
)

// Fetch prepares the workspace of a Run, once, and returns the exit code. It has
// no access to the status of the Run: it reports in its termination message.
func Fetch(env Environment) int {
	var told signals.Latest
	ctx, release := interruption(context.Background(), &told)
	defer release()
	ctx, cancel := untilInterrupted(ctx, &told)
	defer cancel()
	t, err := env.prepare(ctx)
	if err == nil {
		return task.ExitCommitted
	}
	end := endOf(err)
	env.Log.Error("The workspace is not prepared", "error", err)
	if env.terminationLog != "" {
		_ = report.Terminate(env.terminationLog, task.Termination{Version: task.Version, Attempt: t.Attempt, Result: task.Result{
			Reason: end.Reason, Message: task.Cut(redact.Printable(end.Message), task.MaxMessage),
		}}) // what cannot be left is in the log
	}
	return task.ExitCode(end.Reason)
}

// endOf returns the error that ends an attempt after an error of preparing or publishing. An error that a user must
// resolve is final; any other is retried.
func endOf(err error) *task.EndError {
	if end, is := errors.AsType[*task.EndError](err); is {
		return end
	}
	if refused, is := errors.AsType[*workspace.RefusedError](err); is {
		return &task.EndError{Reason: task.ReasonMisconfigured, Message: "Preparing the workspace: " + refused.Message, Cause: err}
	}
	if _, is := errors.AsType[*journal.NotContinuedError](err); is {
		return nothingToContinue(err)
	}
	reason := task.ReasonToolUnavailable
	if errors.Is(err, syscall.ENOSPC) {
		reason = task.ReasonStorageFull
	}
	return &task.EndError{Reason: reason, Message: "Preparing the workspace: " + err.Error(), Cause: err}
}

// prepare fetches the skills and the initial files.
func (e Environment) prepare(ctx context.Context) (task.Task, error) {
	in, err := e.Task()
	if err != nil {
		return task.Task{}, err
	}
	t, s, err := config.Read(in.Task, in.Snapshot)
	if err != nil {
		return t, task.End(task.ReasonMisconfigured, "%w", err)
	}
	if err := e.prepareSkills(ctx, t, s.Skills()); err != nil {
		return t, err
	}
	return t, e.prepareWorkspace(ctx, t, s)
}

// prepareSkills fetches the skills of the agents.
func (e Environment) prepareSkills(ctx context.Context, t task.Task, skills []task.Skill) error {
	if len(skills) == 0 {
		return nil
	}
	sources := make([]workspace.SkillSource, 0, len(skills))
	for _, s := range skills {
		source := workspace.SkillSource{Name: s.Name, From: "ConfigMap " + s.ConfigMap, Dir: filepath.Join(e.skillFiles, s.Name), Path: s.Path}
		if s.Git != nil {
			repository, err := e.access(ctx, t, s.Git)
			if err != nil {
				return err
			}
			source.Git = repository
		}
		sources = append(sources, source)
	}
	return e.untilReached(ctx, "Fetching the skills failed", func(ctx context.Context) error {
		return workspace.FetchSkills(ctx, e.skills, sources)
	})
}

func (e Environment) prepareWorkspace(ctx context.Context, t task.Task, s task.Snapshot) error {
	options := workspace.Options{
		Workspace: e.Workspace, State: e.State, Home: e.home, Origin: e.origin, MaxBytes: e.size,
		Log: func(text string) { e.Log.Info(text) },
	}
	if t.Continue != nil {
		if err := e.takeWork(ctx, *t.Continue, s.Workspace.Git, options); err != nil || t.Continue.Workspace != task.ContinueFresh {
			return err
		}
	}
	var err error
	if options.Git, err = e.repository(ctx, t, s.Workspace.Git); err != nil {
		return err
	}
	for i, at := range s.Workspace.Files {
		options.Files = append(options.Files, workspace.Files{Dir: filepath.Join(task.FilesDir, strconv.Itoa(i)), Path: at})
	}
	return e.untilReached(ctx, "Preparing the workspace failed", func(ctx context.Context) error { return workspace.Fetch(ctx, options) })
}

// untilReached calls try until it succeeds or is refused, for a while, and logs each failure.
func (e Environment) untilReached(ctx context.Context, failure string, try func(context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, fetchFor)
	defer cancel()
	return retry(wait, fetchPause, func() error {
		err := try(ctx)
		if err != nil {
			e.Log.Warn(failure, "error", err)
		}
		return err
	})
}

// takeWork copies the session and the files of the Run that is continued. It needs no credentials of its repository.
func (e Environment) takeWork(ctx context.Context, c task.Continue, g *task.Git, o workspace.Options) error {
	if g != nil {
		o.Git = &workspace.Git{URL: g.URL, Revision: g.Revision}
	}
	return workspace.TakeOver(ctx, o, workspace.Source{
		State: e.sourceState(c.RunUID), Origin: filepath.Join(e.source, "origin"),
		Workspace: filepath.Join(e.source, "workspace"), Home: filepath.Join(e.source, "home"),
		Continue: c, Folders: config.SessionFolders(c), Warn: func(text string) { e.Log.Warn(text) },
	})
}

// sourceState returns the state directory of the Run that is continued. It has a folder of its own where Runs share
// their files.
func (e Environment) sourceState(runUID string) string {
	shared := filepath.Join(e.source, task.StateFolder(runUID))
	if _, err := os.Stat(shared); err == nil {
		return shared
	}
	return filepath.Join(e.source, "state")
}

// retry calls try until it succeeds or is refused, or wait ends.
func retry(wait context.Context, pause time.Duration, try func() error) error {
	for {
		err := try()
		if _, refused := errors.AsType[*workspace.RefusedError](err); err == nil || refused {
			return err
		}
		select {
		case <-wait.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// repository returns a repository with its credentials, after waiting until they exist; nil: there is none.
func (e Environment) repository(ctx context.Context, t task.Task, g *task.Git) (*workspace.Git, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // no repository is a fact, not a fault
	}
	if !g.Publish && workspace.Fetched(cmp.Or(e.origin, e.State)) { // credentials are not needed any more
		return e.plainAccess(g), nil
	}
	return e.access(ctx, t, g)
}

// plainAccess returns a repository whose credentials may not exist.
func (e Environment) plainAccess(g *task.Git) *workspace.Git {
	out := &workspace.Git{URL: g.URL, Revision: g.Revision, Depth: g.Depth}
	out.CABundle, _ = os.ReadFile(task.CAFile) // it need not be there
	if g.Secret != "" {
		out.Credentials = filepath.Join(e.Secrets, g.Secret)
	}
	return out
}

// access returns a repository after waiting until its credentials exist.
func (e Environment) access(ctx context.Context, t task.Task, g *task.Git) (*workspace.Git, error) {
	out := e.plainAccess(g)
	if g.Secret == "" {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	poll := time.NewTicker(secretPoll)
	defer poll.Stop()
	for len(visibleKeys(out.Credentials)) == 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, context.Cause(ctx)
			}
			return nil, task.End(task.ReasonSecretMissing, "Secret %s does not exist, or is empty, in namespace %s; create it (kubectl create secret generic %s --type=kubernetes.io/basic-auth --from-literal=username=… --from-literal=password=…)",
				g.Secret, t.Run.Namespace, g.Secret)
		}
	}
	return out, nil
}

// missing returns, for the agent, what the workspace lacks of its repository; without one, nothing. It also emits a warning for users.
func (e Environment) missing(g *task.Git) []string {
	if g == nil {
		return nil
	}
	lines, err := workspace.Missing(cmp.Or(e.origin, e.State))
	if err != nil {
		e.Log.Warn("It is not known what the workspace lacks", "error", err)
	}
	for _, line := range lines {
		e.Log.Warn(line)
	}
	return lines
}

// visibleKeys returns the keys of a mounted Secret.
func visibleKeys(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Name()[0] != '.' { // those are the kubelet's
			out = append(out, e.Name())
		}
	}
	return out
}

// credentials returns the keys of the Secret of a repository, for the redactor.
func (e Environment) credentials(g *task.Git) []redact.Secret {
	if g == nil || g.Secret == "" {
		return nil
	}
	var out []redact.Secret
	for _, key := range visibleKeys(filepath.Join(e.Secrets, g.Secret)) {
		value, err := config.KeyFile(filepath.Join(e.Secrets, g.Secret, key))()
		if err == nil && key != "username" {
			out = append(out, redact.Secret{Name: g.Secret, Key: key, Value: []byte(value)})
		}
	}
	return out
}

// SendFiles writes a file or directory of a workspace as a tar archive and returns the exit code. Its caller has the
// right to exec into the pod.
func SendFiles(stdout, stderr io.Writer, dir, path string) int {
	if err := workspace.WriteArchive(stdout, dir, path); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// WaitForTermination waits until the kubelet ends the container.
func WaitForTermination() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return 0
}
