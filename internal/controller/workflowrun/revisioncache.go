package workflowrun

import (
	"sync"

	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// maxVersions is how many versions stay in memory.
const maxVersions = 128

// revisionCache are those that were read last, compiled, by their hashes. Which goes
// first when there are too many is left to chance: it is only read again.
type revisionCache struct {
	mu  sync.Mutex
	all map[string]*workflow.Version
}

func (v *revisionCache) get(hash string) *workflow.Version {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all[hash]
}

func (v *revisionCache) put(hash string, version *workflow.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[string]*workflow.Version{}
	}
	for old := range v.all {
		if len(v.all) < maxVersions {
			break
		}
		delete(v.all, old)
	}
	v.all[hash] = version
}
