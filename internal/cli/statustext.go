package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// statusText returns the state of a Run: state, step, tokens, cost and age.
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
		parts = append(parts, fmt.Sprintf("%d of %s", over, terminal.Plural(len(run.Status.Nodes), "node")))
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

// stepText returns the current step of an agent, and for how long it has taken.
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

// elapsed returns the time since then, in seconds. The clocks of cluster and user may differ.
func elapsed(then metav1.Time, now time.Time) string {
	return terminal.Took(now.Add(-max(now.Sub(then.Time), 0)), now)
}
