package anthropic

import (
	"errors"
	"net/http"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
)

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
