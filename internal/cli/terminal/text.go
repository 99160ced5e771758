package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Plural returns a number with a noun in the singular or plural, for example 2 Runs.
func Plural[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Took returns the time between two times, in seconds. Clocks may differ.
func Took(begin, end time.Time) string {
	return cmp.Or(task.Duration(int64(end.Sub(begin)/time.Second)), "0s")
}

// Since returns the time from then to now in the form of kubectl.
func (s *Streams) Since(then metav1.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(s.Now().Sub(then.Time))
}

// TimeOf returns a time that may be missing.
func TimeOf(t *metav1.Time) metav1.Time {
	if t == nil {
		return metav1.Time{}
	}
	return *t
}

// Field prints a value behind its name. An empty value is not printed.
func Field(out io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(out, "  %-11s%s\n", name+":", untrusted.Line(value, 1024))
	}
}

// Block prints lines that a model may have written, each behind a bar. On a terminal long lines are
// cut into several, because what the terminal wraps has no bar and passes for a line of this program.
func Block(out io.Writer, name, text string) {
	if text == "" {
		return
	}
	const bar = "    | "
	fmt.Fprintf(out, "  %s:\n", name)
	width := columns(out) - len(bar)
	for line := range strings.SplitSeq(strings.TrimRight(untrusted.Text(text), "\n"), "\n") {
		for _, part := range wrapped(line, width) {
			fmt.Fprintln(out, bar+part)
		}
	}
}

// IndentedJSON returns JSON on several lines, and other text, such as JSON that is truncated, as
// it is.
func IndentedJSON(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return shortEscapes(out.String())
}

// shortEscapes writes line feeds, carriage returns and tabs of JSON as \n, \r and \t. A runner writes
// them as it writes other invisible characters, for example \u000a.
func shortEscapes(text string) string {
	short := map[string]string{"u000a": `\n`, "u000d": `\r`, "u0009": `\t`}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, `\`)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		length := min(len(rest), 1) // of what is escaped
		if strings.HasPrefix(rest, "u") {
			length = min(len(rest), 5)
		}
		escape := strings.ToLower(rest[:length])
		out.WriteString(cmp.Or(short[escape], `\`+rest[:length]))
		text = rest[length:]
	}
}
