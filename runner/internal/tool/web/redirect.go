package web

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A policyError means that the policy of the session does not allow the target of
// a redirect.
type policyError struct{ refused *tool.Error }

func (e *policyError) Error() string { return e.refused.Message }

// authorizing is a client that follows a redirect only where the policy of the
// session allows the call that requests its target, whose arguments are given by
// a function. The rules of the client itself come first.
func authorizing(client *http.Client, call tool.Call, args func(*http.Request) any) *http.Client {
	if call.Session == nil {
		return client
	}
	judged := *client
	judged.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if err := client.CheckRedirect(next, via); err != nil {
			return err
		}
		if refused := call.Session.Authorize(next.Context(), encode(args(next))); refused != nil {
			to := *next.URL
			return &redirectError{to: &to, err: &policyError{refused}}
		}
		return nil
	}
	return &judged
}

// encode writes arguments in their one form.
func encode(args any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(args) // strings and numbers only: cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
