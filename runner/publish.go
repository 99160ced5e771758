package runner

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/step"
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
	root, err := os.OpenRoot(a.workspace)
	if err != nil {
		return nil, "", fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	options := workspace.PublishOptions{
		Workspace: root, State: a.state, Origin: a.origin, Git: repository,
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
	p.Step = &task.Current{Kind: task.KindTool, Name: publishing, StartedAt: a.now().UTC().Format(time.RFC3339)}
	if problem != nil {
		text := a.redact.String(redact.Printable(problem.Error()))
		a.log.Warn("Publishing failed", "error", text)
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

// artifacts finds the files that commands created in a workspace, which were not in the list recorded at the start.
type artifacts struct {
	workspace string
	atStart   workspace.Manifest
	log       *slog.Logger
}

// recordFiles records the files of a workspace in the state directory, for this and later attempts. It returns nil if
// that is not possible.
func recordFiles(ctx context.Context, dir, state string, log *slog.Logger) *artifacts {
	root, err := os.OpenRoot(dir)
	if err != nil {
		log.Warn("Files that commands make will not be listed", "error", err)
		return nil
	}
	defer root.Close()
	files, err := workspace.Begin(ctx, root, state)
	if err != nil {
		log.Warn("Files that commands make will not be listed", "error", err)
		return nil
	}
	return &artifacts{workspace: dir, atStart: files, log: log}
}

// appendTo appends the files that commands created to the known files.
func (a *artifacts) appendTo(known []task.File) []task.File {
	if a == nil {
		return known
	}
	root, err := os.OpenRoot(a.workspace)
	if err != nil {
		return known
	}
	defer root.Close()
	found, _, err := workspace.Artifacts(context.Background(), root, a.atStart)
	if err != nil {
		a.log.Warn("Listing the files that commands made failed", "error", err)
	}
	for _, f := range found {
		if !slices.ContainsFunc(known, func(k task.File) bool { return k.Path == f.Path }) {
			known = append(known, f)
		}
	}
	return known
}

// collectFor bounds how long the files for the log are read.
const collectFor = 20 * time.Second

// resultFiles are the files of a Run without a volume, which are written to its log. The zero value has none.
type resultFiles struct {
	files   []resultFile
	leftOut []events.LeftOutFile
	more    int64
}

// A resultFile is a file without secrets.
type resultFile struct {
	path    string
	content []byte
}

// A fileCollector reads files for the log.
type fileCollector struct {
	disk   *disk.Disk
	redact *redact.Redactor
	room   int64
	found  resultFiles
}

// collectFiles reads the files of a workspace that match patterns. Without patterns, it reads the files that the result
// names.
func collectFiles(dir string, patterns []string, named []task.File, r *redact.Redactor, now func() time.Time) (resultFiles, error) {
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()
	d, err := disk.Open(dir)
	if err != nil {
		return resultFiles{}, fmt.Errorf("opening the workspace: %w", err)
	}
	defer d.Close()
	c := &fileCollector{disk: d, redact: r, room: events.MaxLoggedBytes}
	if len(patterns) == 0 {
		for _, f := range named {
			if name, is := strings.CutPrefix(path.Clean(f.Path), task.Workspace+"/"); is {
				c.add(ctx, name)
			}
		}
	}
	for _, pattern := range patterns {
		c.addMatches(ctx, backend.New(d, now), pattern)
	}
	return c.found, nil
}

// addMatches adds the files that match a pattern.
func (c *fileCollector) addMatches(ctx context.Context, b *backend.Backend, pattern string) {
	matches, err := b.Glob(ctx, pattern, "", nil)
	_, invalid := errors.AsType[*backend.PatternError](err)
	switch {
	case invalid:
		c.leaveOut(pattern, 0, events.LeftOutPattern)
	case err != nil:
		c.leaveOut(pattern, 0, events.LeftOutUnreadable)
	case len(matches.Items) == 0:
		c.leaveOut(pattern, 0, events.LeftOutNotFound)
	}
	for _, f := range matches.Items {
		if !c.has(f.Path) {
			c.add(ctx, f.Path)
		}
	}
}

func (c *fileCollector) has(name string) bool {
	return slices.ContainsFunc(c.found.files, func(f resultFile) bool { return f.path == name }) ||
		slices.ContainsFunc(c.found.leftOut, func(f events.LeftOutFile) bool { return f.Path == name })
}

// add adds a file, or the reason why it is left out. A file that no longer exists is ignored.
func (c *fileCollector) add(ctx context.Context, name string) {
	content, size, reason := c.read(ctx, name)
	switch reason {
	case "":
		c.room -= int64(len(content))
		c.found.files = append(c.found.files, resultFile{name, content})
	case events.LeftOutNotFound:
	default:
		c.leaveOut(name, size, reason)
	}
}

func (c *fileCollector) leaveOut(name string, size int64, reason string) {
	if len(c.found.leftOut) == events.MaxLeftOut {
		c.found.more++
		return
	}
	name = strings.NewReplacer("\n", "?", "\t", "?").Replace(redact.Printable(strings.ToValidUTF8(task.Cut(name, task.MaxPath), "?")))
	c.found.leftOut = append(c.found.leftOut, events.LeftOutFile{Path: name, Size: size, Reason: reason})
}

// read reads a file and replaces secrets. The reason is why the file cannot be in the log. The
// disk follows no link out of the workspace, and opens only regular files.
func (c *fileCollector) read(ctx context.Context, name string) (content []byte, size int64, reason string) {
	switch {
	case len(c.found.files) == events.MaxLoggedFiles:
		return nil, 0, events.LeftOutTooMany
	case !utf8.ValidString(name), strings.ContainsAny(name, "\n\t"), redact.Printable(name) != name, c.redact.String(name) != name:
		return nil, 0, events.LeftOutName
	}
	f, err := c.disk.Open(ctx, name)
	switch {
	case errors.Is(err, backend.ErrNotFound):
		return nil, 0, events.LeftOutNotFound
	case err != nil:
		return nil, 0, events.LeftOutUnreadable
	}
	defer f.Close()
	if f.Size > c.room {
		return nil, f.Size, events.LeftOutTooLarge
	}
	raw, err := io.ReadAll(io.LimitReader(f, c.room+1)) // it may have grown
	if err != nil {
		return nil, f.Size, events.LeftOutUnreadable
	}
	clean := c.redact.String(string(raw))
	encoded := base64.StdEncoding.EncodeToString([]byte(clean))
	switch {
	case clean != string(raw) && !utf8.Valid(raw), c.redact.String(encoded) != encoded:
		return nil, f.Size, events.LeftOutSecret
	case int64(max(len(clean), len(raw))) > c.room:
		return nil, f.Size, events.LeftOutTooLarge
	}
	return []byte(clean), f.Size, ""
}

// emit writes the files to the log.
func (r resultFiles) emit(log interface {
	Emit(scope step.Scope, message string, p events.Payload)
},
) {
	if len(r.files)+len(r.leftOut) == 0 {
		return
	}
	summary := events.Files{LeftOut: r.leftOut, More: r.more}
	for _, f := range r.files {
		for offset := 0; offset == 0 || offset < len(f.content); offset += events.FilePart {
			part := f.content[offset:min(offset+events.FilePart, len(f.content))]
			log.Emit(step.Scope{}, "", events.File{Path: f.path, Size: int64(len(f.content)), Offset: int64(offset), Data: part})
		}
		digest := sha256.Sum256(f.content)
		summary.Files = append(summary.Files, events.LoggedFile{Path: f.path, Size: int64(len(f.content)), SHA256: hex.EncodeToString(digest[:])})
	}
	message := fmt.Sprintf("%d files of the Run are in the log", len(r.files))
	if len(r.files) == 1 {
		message = "1 file of the Run is in the log"
	}
	log.Emit(step.Scope{}, joinSentences(message, r.note()), summary)
}

// whyLeftOut describes, for users, why a file is not in the log.
var whyLeftOut = map[string]string{
	events.LeftOutTooLarge:   "too large, files may have 1 MiB in all",
	events.LeftOutTooMany:    "more than 64 files",
	events.LeftOutNotFound:   "no such file",
	events.LeftOutPattern:    "not a valid pattern",
	events.LeftOutUnreadable: "cannot be read",
	events.LeftOutSecret:     "has a secret",
	events.LeftOutName:       "its name cannot be written",
}

// note names the files that are not in the log, with what to do; empty: all are.
func (r resultFiles) note() string {
	if len(r.leftOut) == 0 {
		return ""
	}
	const most = 3
	var names []string
	missing := true // no volume would have kept one of them
	for i, f := range r.leftOut {
		if i < most {
			names = append(names, fmt.Sprintf("%s (%s)", task.Cut(f.Path, 100), whyLeftOut[f.Reason]))
		}
		missing = missing && (f.Reason == events.LeftOutNotFound || f.Reason == events.LeftOutPattern)
	}
	if more := int64(len(r.leftOut)) + r.more - int64(len(names)); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	text := "Not in the log: " + strings.Join(names, ", ")
	if !missing {
		text += ". To keep all files, set workspace.durability: Volume of the Agent"
	}
	return text
}
