package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Allows reports whether policies let a call be made without asking a user.
type Allows func(ctx context.Context, name string, args json.RawMessage) bool

// maxFileName bounds the name of a file, in bytes.
const maxFileName = 512

// show stores files and returns the parts that show them, and one line for each file that is not shown.
func (c *Config) show(files []tool.File) (parts []step.Part, lines []string) {
	for i, f := range files {
		if i == model.MaxFiles {
			return parts, append(lines, fmt.Sprintf(ResultMoreFiles, len(files)-i, i))
		}
		part, err := c.attach(f)
		if err != nil {
			lines = append(lines, fmt.Sprintf(ResultFileRefused, c.fileName(f.Name), err))
			continue
		}
		parts = append(parts, part)
	}
	return parts, lines
}

// ShowPath returns the part that shows a file of the workspace that a user attached, or a line that explains why it is
// not shown.
func (r *Runner) ShowPath(ctx context.Context, path string) step.Part {
	part, err := r.LoadPath(ctx, path)
	if err != nil {
		line := fmt.Sprintf(ResultFileRefused, r.config.fileName(path), err)
		return step.Part{Kind: step.PartText, Text: r.config.Redact.String(line)}
	}
	return part
}

// LoadPath returns the part that shows a file of the workspace that a user attached, if the policies let the agent read
// it.
func (r *Runner) LoadPath(ctx context.Context, path string) (step.Part, error) {
	if r.config.LoadFile == nil {
		return step.Part{}, errors.New("there is no workspace")
	}
	file, err := r.config.LoadFile(context.WithoutCancel(ctx), path, r.Allows)
	if err != nil {
		return step.Part{}, err
	}
	return r.config.attach(file)
}

// attach stores a file and returns the part that shows it.
func (c *Config) attach(f tool.File) (step.Part, error) {
	if c.Attach == nil {
		return step.Part{}, errors.New("this runner shows none")
	}
	return c.Attach(c.fileName(f.Name), f.Data)
}

// fileName returns the name of a file for the model and the log: one bounded line without secrets.
func (c *Config) fileName(name string) string {
	return redact.Printable(strings.Map(withoutBreaks, task.Cut(c.Redact.String(name), maxFileName)))
}

// withoutBreaks replaces characters that would break the line of a name.
func withoutBreaks(r rune) rune {
	if r == '\n' || r == '\t' {
		return ' '
	}
	return r
}
