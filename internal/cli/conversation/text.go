package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// cutLines returns the first lines of a text, each cut at a width, and the number of lines left out.
func cutLines(text string, most, width int) string {
	lines := strings.Split(text, "\n")
	more := len(lines) - most
	if more == 1 { // the line about it would take as much room
		more, most = 0, most+1
	}
	if more > 0 {
		lines = lines[:most]
	}
	for i, line := range lines {
		lines[i] = task.Cut(line, width)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("… (%s more)", count(int64(more), "line")))
	}
	return strings.Join(lines, "\n")
}

// totals describes the usage of a session or a Run.
func totals(c task.Counts, u task.Usage) string {
	var parts []string
	if c.Steps > 0 {
		parts = append(parts, count(c.Steps, "step"))
	}
	if u.TotalTokens > 0 {
		parts = append(parts, count(u.TotalTokens, "token"))
	}
	for _, text := range []string{u.Cost, u.Duration} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " · " + strings.Join(parts, " · ")
}

// withID puts the id of a turn or call before a text. Logs of older runners lack some ids.
func withID(id, text string) string {
	if id == "" {
		return text
	}
	return id + " " + text
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// compact returns JSON on one line, in its original order. The characters <, > and &, which encoding/json escapes, are
// not escaped.
func compact(data json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, data) != nil {
		return string(data)
	}
	return escapes.ReplaceAllStringFunc(out.String(), func(escape string) string {
		switch escape {
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		case `\u0026`:
			return "&"
		}
		return escape
	})
}

// escapes matches the escapes in a string of JSON. An escaped backslash does not begin another escape.
var escapes = regexp.MustCompile(`\\(u[0-9a-f]{4}|.)`)
