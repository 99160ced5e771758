package anthropic

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxSessions bounds how many sessions are remembered.
const maxSessions = 1024

// refused holds, for each session, the last step whose thinking the provider refused.
// Some providers bind thinking to the messages before it, or to the account: after a
// message was hidden, or the key was replaced, they refuse it.
type refused struct {
	mu    sync.Mutex
	steps map[string]int64
}

func (r *refused) upTo(session string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[session]
}

// add records that the thinking in a request was refused, and reports whether that was
// not known.
func (r *refused) add(req *model.Request) bool {
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

// isThinkingRefused reports whether an error means that the provider refused thinking
// of an earlier answer.
func isThinkingRefused(err error) bool {
	bad, ok := errors.AsType[*model.BadRequestError](err)
	if !ok || bad.Status != http.StatusBadRequest {
		return false
	}
	message := strings.ToLower(bad.Message)
	for _, phrase := range []string{"signature", "bound to", "cannot be modified", "must start with a thinking block"} {
		if strings.Contains(message, "thinking") && strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
