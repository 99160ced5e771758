package attempt

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
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

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
