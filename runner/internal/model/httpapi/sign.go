package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// signWithKey returns the Sign of a key, which is sent in each of the headers after a prefix.
// A request that has such a header keeps it.
func signWithKey(key func() (string, error), headers map[string]string) func(*http.Request) error {
	if key == nil {
		return nil
	}
	return func(req *http.Request) error {
		secret, err := key()
		if err != nil || secret == "" {
			return err
		}
		for name, prefix := range headers {
			if req.Header.Get(name) == "" {
				req.Header.Set(name, prefix+secret)
			}
		}
		return nil
	}
}

// sign authenticates a request and records what that added to its headers.
func (c *Call) sign(req *http.Request) error {
	c.secrets = nil
	if c.client.Sign == nil {
		return nil
	}
	before := req.Header.Clone()
	if err := c.client.Sign(req); err != nil {
		if unauthorized, ok := errors.AsType[*model.UnauthorizedError](err); ok {
			return unauthorized
		}
		return &model.NoCredentialError{Message: err.Error()}
	}
	for name, values := range req.Header {
		if !slices.Equal(values, before[name]) {
			c.secrets = append(c.secrets, secretsIn(values)...)
		}
	}
	if slices.ContainsFunc(c.secrets, func(secret string) bool { return strings.ContainsFunc(secret, unicode.IsControl) }) {
		return &model.UnauthorizedError{Message: "the key holds a character that no header may hold"}
	}
	return nil
}

// secretsIn returns the values of a header without the scheme before a space, such as Bearer.
func secretsIn(values []string) []string {
	var secrets []string
	for _, value := range values {
		if _, after, ok := strings.Cut(value, " "); ok {
			value = after
		}
		if value != "" {
			secrets = append(secrets, value)
		}
	}
	return secrets
}
