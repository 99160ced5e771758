package engine

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
)

// maxWarnings is how many endpoints a warning names.
const maxWarnings = 3

// warning says which endpoints could not be reached, at the start or by any call of
// the Run. Models go on without a tool that fails, so the work may end well though its
// owner made a mistake.
func (r *run) warning() string {
	var remotes []state.RemoteCalls
	r.state.View(func(now *state.Run) { remotes = now.Remotes() })
	return r.config.Redact.String(warningOf(r.config.Unavailable, remotes))
}

func warningOf(unavailable []journal.Remote, all []state.RemoteCalls) string {
	var told []string
	for _, u := range unavailable {
		told = append(told, fmt.Sprintf("The optional %s was not available: %s. Check %s.", u.Name, strings.TrimSuffix(u.Unreachable, "."), u.Field))
	}
	for _, c := range all {
		if c.Made == 0 || c.Failed < c.Made {
			continue
		}
		told = append(told, fmt.Sprintf("Every call of %s failed (%d of %d): %s. Check %s.", c.Name, c.Failed, c.Made, strings.TrimSuffix(c.Unreachable, "."), c.Field))
	}
	if more := len(told) - maxWarnings; more > 0 {
		told = append(told[:maxWarnings], fmt.Sprintf("The same happened with %d more.", more))
	}
	return strings.Join(told, " ")
}
