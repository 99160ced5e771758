package workflowrun

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxAbsences is for how many Runs is remembered which of their children are gone.
const maxAbsences = 4096

// absences are the children that are gone, as the API server itself said: what is
// gone stays so, and it is not asked with each look. They are kept as a hash, by the
// UID of the Run. Which goes first when there are too many is left to chance: it is
// only asked again.
type absences struct {
	mu  sync.Mutex
	all map[types.UID][sha256.Size]byte
}

func (a *absences) known(run types.UID, missing []place) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum, known := a.all[run]
	return known && sum == sumOf(missing)
}

func (a *absences) put(run types.UID, missing []place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[types.UID][sha256.Size]byte{}
	}
	for old := range a.all {
		if _, had := a.all[run]; had || len(a.all) < maxAbsences {
			break
		}
		delete(a.all, old)
	}
	a.all[run] = sumOf(missing)
}

func (a *absences) forget(run types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, run)
}

func sumOf(missing []place) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, at := range missing {
		fmt.Fprintf(h, "%s/%d\n", at.node, at.number)
	}
	h.Sum(sum[:0])
	return sum
}
