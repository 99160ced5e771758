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

func (c *revisionCache) get(hash string) *workflow.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[hash].revision
}

// put adds a revision. It keeps that one, even if it is larger than the bound.
func (c *revisionCache) put(hash string, revision *workflow.Revision) {
	expressions := 0
	if program, err := workflow.Compile(revision); err == nil {
		expressions = program.Expressions()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]cachedRevision{}
	}
	c.remove(hash)
	for other := range c.all {
		if len(c.all) < maxCachedRevisions && c.expressions+expressions <= maxCachedExpressions {
			break
		}
		c.remove(other)
	}
	c.all[hash] = cachedRevision{revision, expressions}
	c.expressions += expressions
}

func (c *revisionCache) remove(hash string) {
	c.expressions -= c.all[hash].expressions
	delete(c.all, hash)
}
