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

// refused is up to which step of a session a provider takes its own thinking
// back no more. Some bind it to all that was said before it, or to the account:
// once something is hidden, or the key is another's, it is refused.
type refused struct {
	mu    sync.Mutex
	steps map[string]int64
}

func (r *refused) upTo(session string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[session]
}

// add remembers that the thinking in a request was refused, and reports whether
// that is news.
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

// isThinkingRefused reports whether an error says that thinking was not taken
// back.
func isThinkingRefused(err error) bool {
	bad, ok := errors.AsType[*model.BadRequestError](err)
	if !ok || bad.Status != http.StatusBadRequest {
		return false
	}
	output := strings.ToLower(bad.Message)
	for _, words := range []string{"signature", "bound to", "cannot be modified", "must start with a thinking block"} {
		if strings.Contains(output, "thinking") && strings.Contains(output, words) {
			return true
		}
	}
	return false
}
