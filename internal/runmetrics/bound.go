package runmetrics

import "sync"

// Bounds of label values. Counters are never removed, so the first values of a process have
// series of their own, and all later ones are counted together.
const (
	maxNamespaces = 300
	maxPairs      = 1000
	maxReasons    = 200
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

// admit reports whether these values have series of their own.
func (b *bound) admit(values ...string) bool {
	var key [3]string
	copy(key[:], values)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known[key] && len(b.known) < b.max {
		b.known[key] = true
	}
	return b.known[key]
}

var namespaces, agents, models, reasons = newBound(maxNamespaces), newBound(maxPairs), newBound(maxPairs), newBound(maxReasons)

func namespaceLabel(namespace string) string {
	if namespaces.admit(namespace) {
		return namespace
	}
	return other
}

func agentLabel(namespace, agent string) string {
	if agent == "" || namespace != other && agents.admit(namespace, agent) {
		return agent
	}
	return other
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
