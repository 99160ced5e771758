package engine

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/journal"
)

// maxWarnings is how many endpoints a warning names.
const maxWarnings = 3

// warning says which endpoints no call of the Run could reach. Models go on
// without a tool that fails, so the work may end well though its owner made a
// mistake.
func (r *run) warning() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return warningOf(r.book.Remotes())
}

func warningOf(all []journal.RemoteCalls) string {
	var told []string
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
