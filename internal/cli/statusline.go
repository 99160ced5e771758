package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// eraseLine moves to the beginning of the line and erases it (ECMA-48, CR and Erase in Line).
const eraseLine = "\r\x1b[2K"

// A statusLine is the last line of a terminal, which is redrawn in place. Only a console uses it.
type statusLine struct {
	out io.Writer
	// columns returns how wide the terminal is; 0: unknown.
	columns func() int
	text    string
	isDrawn bool
}

// newStatusLine returns a status line; nil: conversations do not go to a terminal, or it has no line
// that can be redrawn.
func newStatusLine(s *Streams) *statusLine {
	if os.Getenv("TERM") == "dumb" || !isTerminal(s.Out) || !isTerminal(s.Err) {
		return nil
	}
	return &statusLine{out: s.Err, columns: func() int { return columns(s.Err) }}
}

// draw draws a text, or the last one again.
func (s *statusLine) draw() {
	width := s.columns() - 1 // a full line would move the cursor on some terminals
	if width < 1 || s.text == "" {
		return
	}
	_, _ = io.WriteString(s.out, eraseLine+conversation.Fit(s.text, width)) // an error shows when a conversation is printed
	s.isDrawn = true
}

func (s *statusLine) erase() {
	if s.isDrawn {
		_, _ = io.WriteString(s.out, eraseLine) // as above
		s.isDrawn = false
	}
}

// statusText is how it stands with a Run: state, step, tokens, cost and the time since it was created.
func statusText(run *v1alpha1.Run, now time.Time) string {
	p := progressOf(run)
	parts := []string{reason(run)}
	switch {
	case run.Spec.Workflow != "":
		over := 0
		for i := range run.Status.Nodes {
			if s := run.Status.Nodes[i].State; s != v1alpha1.NodeWaiting && s != v1alpha1.NodeRunning {
				over++
			}
		}
		parts = append(parts, fmt.Sprintf("%d of %s", over, plural(len(run.Status.Nodes), "node")))
	case p.Step != nil:
		parts = append(parts, stepText(run, now))
	}
	if p.Usage.TotalTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", p.Usage.TotalTokens))
	}
	if p.Usage.Cost != "" {
		parts = append(parts, p.Usage.Cost)
	}
	return untrusted.Line(strings.Join(append(parts, elapsed(run.CreationTimestamp, now)), " · "), 400)
}

// stepText is what an agent does, and for how long if it works.
func stepText(run *v1alpha1.Run, now time.Time) string {
	step := progressOf(run).Step
	text := step.Name
	if step.ID != "" { // an older runner reports none
		text = fmt.Sprintf("step %s, %s", step.ID, text)
	}
	if reason(run) == v1alpha1.ReasonRunning && step.StartedAt != nil {
		text += " " + elapsed(*step.StartedAt, now)
	}
	return text
}

// elapsed is the time since then, in seconds. The clocks of cluster and user may differ.
func elapsed(then metav1.Time, now time.Time) string {
	return took(now.Add(-max(now.Sub(then.Time), 0)), now)
}
