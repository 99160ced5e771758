package auth

import (
	"maps"
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A FieldError says what is wrong with one field of a Toolset.
type FieldError struct {
	// Field is which, such as headers[Host] or auth.oauthClientCredentials.tokenURL.
	Field string
	// Problem is what, and what to write instead.
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ours are headers that HTTP itself needs.
var ours = []string{
	"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Check says whether headers and credentials can be sent: nil, or a *FieldError.
// Reserved are headers that are not the Toolset's to set.
func Check(headers map[string]string, a *task.Auth, reserved ...string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if problem := problem(name, headers[name], reserved); problem != "" {
			return &FieldError{Field: "headers[" + name + "]", Problem: problem}
		}
	}
	if a == nil {
		return nil
	}
	switch a.Type {
	case task.AuthHeader:
		if problem := problem(a.Header, "", reserved); problem != "" {
			return &FieldError{Field: "auth.header.name", Problem: problem}
		}
	case task.AuthOAuth:
		if _, err := ReadURL(a.TokenURL); err != nil {
			return &FieldError{Field: "auth.oauthClientCredentials.tokenURL", Problem: err.Error()}
		}
	}
	return nil
}

// problem is what is wrong with a header; empty: nothing.
func problem(name, value string, reserved []string) string {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return "is no name of a header: write letters, digits and -"
	case !httpguts.ValidHeaderFieldValue(value):
		return "has a line end or a control character"
	case slices.Contains(ours, canonical), slices.Contains(reserved, canonical):
		return "is set by the runner itself; remove it"
	}
	return ""
}
