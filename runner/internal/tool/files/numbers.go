package files

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// lineLabel matches what Read puts before a line, or before a part of a long line.
var lineLabel = regexp.MustCompile(`^ *(\d+)(\.\d+)?  `)

// numbered reports whether each line of a text begins as a line shown by Read.
func numbered(text string) bool {
	for _, line := range splitLines(text) {
		if !lineLabel.MatchString(line) {
			return false
		}
	}
	return true
}

// splitLines returns the lines of a text, without their ends.
func splitLines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// A copied is a text that looks like consecutive lines shown by Read.
type copied struct {
	first int      // number of the first line
	lines []string // without the numbers
}

// copiedLines returns the lines of a text each of which begins with a number, the
// numbers counting up by one. Parts of one line have the same number.
func copiedLines(text string) (copied, bool) {
	var c copied
	for i, line := range splitLines(text) {
		of := lineLabel.FindStringSubmatch(line)
		if of == nil {
			return copied{}, false
		}
		n, err := strconv.Atoi(of[1])
		part := of[2] != ""
		switch {
		case err != nil || n == 0:
			return copied{}, false
		case i == 0:
			c.first = n
		case part && n == c.first+len(c.lines)-1:
			continue
		case part || n != c.first+len(c.lines):
			return copied{}, false
		}
		c.lines = append(c.lines, line[len(of[0]):])
	}
	return c, true
}

// refuseNumbers returns errNumbered for a new text that was copied with the line
// numbers of Read. A file may have numbered lines of its own, so the numbers must
// be those of the file: either old stands at the first of them, or the file has
// one of the lines under its number, and has no numbers there itself.
func (t *Toolset) refuseNumbers(ctx context.Context, at string, e backend.Edit) error {
	c, ok := copiedLines(e.New)
	if !ok || e.Old == "" || numbered(e.Old) {
		return nil
	}
	page, err := t.backend.Read(ctx, at, backend.Window{Offset: c.first - 1, Limit: len(c.lines)})
	if err != nil {
		return nil //nolint:nilerr // Edit reads the same file next: it fails too and reports the cause.
	}
	for i, line := range page.Lines {
		first := i == 0 && strings.HasPrefix(strings.TrimSpace(line), strings.TrimSpace(splitLines(e.Old)[0]))
		same := i < len(c.lines) && line == c.lines[i] && strings.TrimSpace(line) != ""
		if (first || same) && !lineLabel.MatchString(line) {
			return errNumbered
		}
	}
	return nil
}
