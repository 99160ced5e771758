package httpapi

import (
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxSessions bounds how many sessions are remembered.
const maxSessions = 1024

// RefusedReasoning records, for each session, the last step whose reasoning the provider refused. Some providers bind
// reasoning to the messages before it, or to the account, and refuse it after a message was hidden or the key was
// replaced. The zero value is empty.
type RefusedReasoning struct {
	mu    sync.Mutex
	steps map[string]int64
}

// UpTo returns the last step whose reasoning is not sent in a session; 0: all reasoning is sent.
func (r *RefusedReasoning) UpTo(session string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[session]
}

// Add records that the reasoning in a request was refused, and reports whether that is new.
func (r *RefusedReasoning) Add(req *model.Request) bool {
	var last int64
	for _, s := range req.Steps {
		if s.Role == step.RoleAssistant {
			last = max(last, s.Seq)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last <= r.steps[req.CacheKey] {
		return false
	}
	if r.steps == nil || len(r.steps) >= maxSessions {
		r.steps = map[string]int64{}
	}
	r.steps[req.CacheKey] = last
	return true
}
