package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// commitFor is how long the runner tries to send the last report. After that the operator uses the termination
	// message.
	commitFor = 20 * time.Second
	// partFor replaces commitFor while the pod is shut down.
	partFor = 4 * time.Second
	// closeFor is how long a reader of the events may take to read the last event.
	closeFor = 3 * time.Second
	// traceFor is how long a collector may take to accept the last spans of the attempt.
	traceFor = 2 * time.Second
	// releaseFor bounds the time in which the parts of a custom runner close.
	releaseFor = 3 * time.Second
	// copyFor is how long a session store may take to store the last steps.
	copyFor = 10 * time.Second
	// textFile is the path below the workspace of a text that is too long for the status.
	textFile = ".deckhand/result.txt"
)

// finish reports the end: first to the termination message, which needs no network, then
// to the status of the Run.
func (a *attempt) finish(ctx context.Context, out engine.Outcome) Ending {
	published, out := a.publisher().publish(ctx, out)
	result := a.result(out)
	result.Published = published
	var files resultFiles
	if result.Committed {
		files = a.filesForLog(result)
		if note := files.note(); note != "" {
			result.Message = task.Cut(joinSentences(cmp.Or(result.Message, endWithoutMessage[result.Reason]), note), task.MaxMessage)
		}
	}
	a.writeTermination(result, out)
	if a.mirror != nil {
		a.mirror.setStatus(string(out.Reason))
	}
	err := a.commit(result, out)
	var end *task.EndError
	if errors.As(err, &end) && end.Reason == task.ReasonFenced {
		out.Reason, out.Message, files = end.Reason, end.Message, resultFiles{}
		a.writeTermination(task.Result{Reason: end.Reason, Message: end.Message}, out)
	}
	if a.announced != nil {
		a.announced()
	}
	if a.events != nil {
		files.emit(a.events)
		a.events.Emit(step.Scope{}, headline(out), events.RunFinished{
			Reason: out.Reason, Text: out.Text, Output: out.Output,
			Counts: out.Progress.Counts, Usage: out.Progress.Usage,
		})
	}
	if out.Warning != "" {
		a.Log.Warn(out.Warning)
	}
	a.Log.Info("The attempt ended", "reason", out.Reason, "message", out.Message)
	return Ending{Outcome: out, Result: result, exitCode: task.ExitCode(out.Reason)}
}

func headline(out engine.Outcome) string {
	if out.Message == "" {
		return string(out.Reason)
	}
	return fmt.Sprintf("%s: %s", out.Reason, out.Message)
}

// result returns an outcome within the bounds of the status. Longer texts go to a file. A Go program has no status: it
// gets the whole text, and all files.
func (a *attempt) result(out engine.Outcome) task.Result {
	r := task.Result{
		Committed: out.Reason.Commits(), Reason: out.Reason,
		Message: task.Cut(redact.Printable(out.Message), task.MaxMessage),
		Warning: task.Cut(redact.Printable(out.Warning), task.MaxWarning),
		Text:    task.Cut(out.Text, task.MaxText),
		Output:  string(out.Output),
		Files:   a.artifacts.appendTo(a.changedFiles()),
	}
	if a.Place == place.Program {
		return r
	}
	r.Files = slices.DeleteFunc(r.Files, func(f task.File) bool { return len(f.Path) > task.MaxPath }) // the log has them
	if len(out.Text) > task.MaxText {
		note := fmt.Sprintf("The text has %d bytes and is cut here.", len(out.Text))
		if f, err := a.writeText(a.task.Run.Name, out.Text); err == nil {
			note = fmt.Sprintf("The text has %d bytes; the whole is in %s.", f.Size, f.Path)
			r.Files = append([]task.File{f}, r.Files...)
		}
		r.Message = task.Cut(joinSentences(redact.Printable(out.Message), note), task.MaxMessage)
	}
	r.Files = r.Files[:min(len(r.Files), task.MaxFiles)]
	return r
}

// endWithoutMessage has the messages of Runs that ended without one.
var endWithoutMessage = map[task.Reason]string{task.ReasonFinished: "The work is done"}

func joinSentences(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return strings.TrimSuffix(a, ".") + ". " + b
}

// filesForLog returns the files that the log has because the Run has no volume.
func (a *attempt) filesForLog(r task.Result) resultFiles {
	if a.task.Durable || a.origin != "" || a.events == nil || a.snapshot.Agent.Events == string(eventlog.None) {
		return resultFiles{}
	}
	files, err := collectFiles(a.Workspace, a.snapshot.Agent.OutputFiles, r.Files, a.redact, a.Now)
	if err != nil {
		a.Log.Warn("The files of the Run are not in the log", "error", err)
	}
	return files
}

// changedFiles returns the files that the session made or changed.
func (a *attempt) changedFiles() []task.File {
	if a.built.Files == nil {
		return nil
	}
	infos, err := a.built.Files.Changed(context.Background())
	if err != nil {
		a.Log.Warn("Listing the changed files failed", "error", err)
		return nil
	}
	all := make([]task.File, 0, len(infos))
	for _, info := range infos {
		all = append(all, task.File{Path: info.Path, Size: info.Size})
	}
	return all
}

// writeText writes a text that is too long for the status into the workspace, as safely as the file tools: a command
// may have put anything in its place.
func (e Environment) writeText(run, text string) (task.File, error) {
	d, err := disk.Open(e.Workspace)
	if err != nil {
		return task.File{}, fmt.Errorf("opening the workspace: %w", err)
	}
	defer d.Close()
	at := textFile
	if e.origin != "" { // others have one too
		at = path.Join(path.Dir(textFile), run, path.Base(textFile))
	}
	if _, err := backend.New(d, e.Now).Write(context.Background(), at, []byte(text), backend.Any); err != nil {
		return task.File{}, fmt.Errorf("writing the text to the workspace: %w", err)
	}
	return task.File{Path: path.Join(task.Workspace, at), Size: int64(len(text))}, nil
}

// gaveUp returns [task.Termination.GaveUp]. The engine keeps a wait for a model at this end only if it gave up.
func gaveUp(out engine.Outcome) *bool {
	if out.Reason != task.ReasonModelUnavailable {
		return nil
	}
	return new(out.Progress.ModelWait != nil)
}

// writeTermination writes the termination message.
func (a *attempt) writeTermination(r task.Result, out engine.Outcome) {
	if a.terminationLog == "" {
		return
	}
	a.heartbeat.end()
	err := report.Terminate(a.terminationLog, task.Termination{
		Version: task.Version, Attempt: a.task.Attempt, Result: printableResult(r),
		Counts: out.Progress.Counts, Usage: out.Progress.Usage, Effects: out.Progress.Effects,
		GaveUp: gaveUp(out),
	})
	if err != nil {
		a.Log.Error("The termination message is not written", "error", err)
	}
}

// commit reports the end to the Run: its result or, without one, its progress. It does not end with the attempt's own
// context.
func (a *attempt) commit(r task.Result, out engine.Outcome) error {
	if a.reporter == nil || out.Reason == task.ReasonFenced || out.Reason == task.ReasonSecretMissing || a.lost(out) {
		return nil
	}
	p, timeout := out.Progress, partFor
	switch {
	case r.Committed:
		p.State, p.Pending = "", nil // the schema of Run takes text and files of one that asks nothing
		p.Result, timeout = &r, commitFor
	case out.Reason == task.ReasonWaiting || out.Reason == task.ReasonPaused:
		r.Text, r.Files = "", nil
		p.Result, timeout = &r, commitFor
	}
	if a.interrupted() {
		timeout = partFor
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := a.reporter.Commit(ctx, func() task.Progress { return p })
	if err != nil {
		a.Log.Error("The end is not reported", "error", err)
	}
	return err
}

// lost reports whether a resumed attempt does not know the progress of the Run: it must not overwrite an earlier
// report.
func (a *attempt) lost(out engine.Outcome) bool {
	return !a.engineEnded && (out.Reason == task.ReasonRunnerFailed || out.Reason == task.ReasonInterrupted)
}

func (a *attempt) interrupted() bool {
	now, _ := a.latest.Current()
	return now.Interrupted
}
