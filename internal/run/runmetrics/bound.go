package runmetrics

import (
	"sync"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Bounds of label values. Counters are never removed, so the first values of a process have
// series of their own, and all later ones are counted together.
const (
	maxNamespaces = 300
	maxPairs      = 1000
	maxReasons    = 200
	// maxUntried is how many Agents of a namespace have series of their own although no Run of them had
	// an attempt. A Run may name an Agent that does not exist.
	maxUntried = 20
)

// other is the label value of what is beyond a bound.
const other = "other"

// A bound remembers the values that have series of their own.
type bound struct {
	max   int
	mu    sync.Mutex
	known map[[3]string]bool
}

func newBound(limit int) *bound { return &bound{max: limit, known: map[[3]string]bool{}} }

func keyOf(values []string) (key [3]string) {
	copy(key[:], values)
	return key
}

// admit reports whether these values have series of their own.
func (b *bound) admit(values ...string) bool {
	key := keyOf(values)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known[key] && len(b.known) < b.max {
		b.known[key] = true
	}
	return b.known[key]
}

// knows reports whether these values have series of their own already.
func (b *bound) knows(values ...string) bool {
	key := keyOf(values)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[key]
}

var namespaces, agents, models, reasons = newBound(maxNamespaces), newBound(maxPairs), newBound(maxPairs), newBound(maxReasons)

// untried is how many Agents of each namespace were admitted before they had an attempt.
var untried = struct {
	mu    sync.Mutex
	count map[string]int
}{count: map[string]int{}}

func namespaceLabel(namespace string) string {
	if namespaces.admit(namespace) {
		return namespace
	}
	return other
}

func agentLabel(namespace string, run *v1alpha1.Run) string {
	agent := run.Spec.Agent
	switch {
	case agent == "" || namespace != other && agents.knows(namespace, agent):
		return agent
	case namespace == other || run.Status.Attempt == nil && !admitUntried(namespace) || !agents.admit(namespace, agent):
		return other
	}
	return agent
}

// admitUntried reports whether one more Agent of a namespace may have series of its own.
func admitUntried(namespace string) bool {
	untried.mu.Lock()
	defer untried.mu.Unlock()
	if untried.count[namespace] == maxUntried {
		return false
	}
	untried.count[namespace]++
	return true
}

func modelLabel(namespace, agent, model string) string {
	if model == "" || namespace != other && agent != other && models.admit(namespace, agent, model) {
		return model
	}
	return other
}

func reasonLabel(reason string) string {
	if reasons.admit(reason) {
		return reason
	}
	return other
}
