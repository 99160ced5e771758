package workflowrun

import (
	"sync"

	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// The maximum number of cached revisions, and of the expressions in them. A compiled expression takes about 26 KB, so
// that all of them take 26 MB.
const (
	maxCachedRevisions   = 128
	maxCachedExpressions = 1000
)

// revisionCache holds compiled revisions by their hashes. If there are too many, arbitrary ones are removed, because
// they can be read again.
type revisionCache struct {
	mu          sync.Mutex
	all         map[string]cachedRevision
	expressions int // of all
}

type cachedRevision struct {
	revision    *workflow.Revision
	expressions int
}

func (r *revisionCache) get(hash string) *workflow.Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[hash].revision
}

// put adds a revision. It keeps that one, even if it is larger than the bound.
func (r *revisionCache) put(hash string, revision *workflow.Revision) {
	expressions := 0
	if program, err := workflow.Compile(revision); err == nil {
		expressions = program.Expressions()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]cachedRevision{}
	}
	r.remove(hash)
	for other := range r.all {
		if len(r.all) < maxCachedRevisions && r.expressions+expressions <= maxCachedExpressions {
			break
		}
		r.remove(other)
	}
	r.all[hash] = cachedRevision{revision, expressions}
	r.expressions += expressions
}

func (r *revisionCache) remove(hash string) {
	r.expressions -= r.all[hash].expressions
	delete(r.all, hash)
}
