// Package auth is the HTTP client of Toolsets: which addresses it reaches, and how it authenticates. The author of the
// Toolset chose the URL, so addresses in the cluster are allowed. The machine itself, link-local addresses and metadata
// services are not, whatever a name resolves to. Credentials are added when a request is sent, and only to requests to
// the Toolset's URL: a redirect to another host is not followed. If the server refuses them and the Secret has changed
// meanwhile, the request is sent once more.
package auth

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The keys of a Secret that Basic and OAuthClientCredentials need.
const (
	keyDefault      = "api-key"
	keyUsername     = "username"
	keyPassword     = "password"
	keyClientID     = "client-id"
	keyClientSecret = "client-secret"
)

// Options say how the requests of a Toolset authenticate.
type Options struct {
	// URL is the origin of the server: credentials are sent nowhere else.
	URL *url.URL
	// Headers are added to each request.
	Headers map[string]string
	// Auth is how requests authenticate; nil: without credentials.
	Auth *task.Auth
	// Key returns the current value of a key of a Secret.
	Key func(task.SecretKey) (string, error)
	// Learn is called with each secret before it is sent, so that it can be redacted. May be nil.
	Learn func(redact.Secret)
	// Now is the current time; nil: the machine's.
	Now func() time.Time
}

// Client returns base with the headers and credentials of a Toolset.
func Client(base *http.Client, o Options) *http.Client {
	o.Now = clock.Or(o.Now)
	if o.Learn == nil {
		o.Learn = func(redact.Secret) {}
	}
	under := base.Transport
	if under == nil {
		under = http.DefaultTransport
	}
	client := *base
	client.CheckRedirect = redirect(o.URL)
	client.Transport = &transport{base: under, options: o, tokens: tokens{base: under, options: o}}
	return &client
}

// Keys returns the keys of Secrets that Auth needs.
func Keys(a *task.Auth) []task.SecretKey {
	if a == nil {
		return nil
	}
	key := func(name string) task.SecretKey { return task.SecretKey{Secret: a.Secret, Key: name} }
	switch a.Type {
	case task.AuthBasic:
		return []task.SecretKey{key(keyUsername), key(keyPassword)}
	case task.AuthOAuth:
		return []task.SecretKey{key(keyClientID), key(keyClientSecret)}
	}
	if a.Key == "" {
		return []task.SecretKey{key(keyDefault)}
	}
	return []task.SecretKey{key(a.Key)}
}

// A transport adds credentials to requests.
type transport struct {
	base    http.RoundTripper
	options Options
	tokens  tokens
}

// A credential is a header.
type credential struct{ name, value string }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !within(req.URL, t.options.URL) { // redirects do not come here; whatever else might
		return t.base.RoundTrip(req)
	}
	first, err := t.credential(req, "")
	if err != nil {
		return nil, refuse(req, err)
	}
	resp, err := t.send(req, first)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || t.options.Auth == nil {
		return resp, err
	}
	again, err := repeat(req)
	if err != nil {
		return resp, nil //nolint:nilerr // the answer stands: the request cannot be made twice
	}
	second, err := t.credential(req, first.value)
	if err != nil || second == first {
		return resp, nil //nolint:nilerr // the answer stands: there is nothing new to show
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxLeft)
	_ = resp.Body.Close()
	return t.send(again, second)
}

// send sends a copy of a request with headers and a credential.
func (t *transport) send(req *http.Request, c credential) (*http.Response, error) {
	out := req.Clone(req.Context())
	for name, value := range t.options.Headers {
		if out.Header.Get(name) == "" {
			out.Header.Set(name, value)
		}
	}
	if c.name != "" {
		out.Header.Set(c.name, c.value)
	}
	return t.base.RoundTrip(out)
}

// credential returns the current credential. refused is a credential that the server has refused, which must not be
// used again.
func (t *transport) credential(req *http.Request, refused string) (credential, error) {
	a := t.options.Auth
	if a == nil {
		return credential{}, nil
	}
	if a.Type == task.AuthOAuth {
		token, err := t.tokens.get(req.Context(), strings.TrimPrefix(refused, bearer))
		return credential{"Authorization", bearer + token}, err
	}
	keys, err := t.options.read(a)
	if err != nil {
		return credential{}, err
	}
	switch a.Type {
	case task.AuthBasic:
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(keys[0], keys[1])
		value := basic.Header.Get("Authorization")
		t.options.Learn(redact.Secret{Name: a.Secret, Key: "basic", Value: []byte(strings.TrimPrefix(value, "Basic "))})
		return credential{"Authorization", value}, nil
	case task.AuthHeader:
		return credential{a.Header, keys[0]}, nil
	case task.AuthBearer:
		return credential{"Authorization", bearer + keys[0]}, nil
	}
	return credential{}, fmt.Errorf("this runner knows no auth of type %q", a.Type)
}

const bearer = "Bearer "

// read reads the current keys of Auth.
func (o Options) read(a *task.Auth) ([]string, error) {
	keys := Keys(a)
	values := make([]string, len(keys))
	for i, k := range keys {
		value, err := o.Key(k)
		if err != nil {
			return nil, fmt.Errorf("reading the key %s of the Secret %s: %w", k.Key, k.Secret, err)
		}
		values[i] = strings.TrimSpace(value)
		if values[i] == "" || !httpguts.ValidHeaderFieldValue(values[i]) {
			return nil, fmt.Errorf("the key %s of the Secret %s is empty, or has a line end or a control character in it", k.Key, k.Secret)
		}
		o.Learn(redact.Secret{Name: k.Secret, Key: k.Key, Value: []byte(values[i])})
	}
	return values, nil
}

// repeat returns a copy of a request that can be sent again.
func repeat(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return again, nil
	}
	if req.GetBody == nil {
		return nil, http.ErrBodyNotAllowed
	}
	body, err := req.GetBody()
	again.Body = body
	return again, err
}

// refuse closes a request that is not sent.
func refuse(req *http.Request, err error) error {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return &CredentialError{err: err}
}

// A CredentialError means that a request was not sent, because its credential could not be read.
type CredentialError struct{ err error }

func (e *CredentialError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *CredentialError) Unwrap() error { return e.err }

// Remedy describes what the owner of a Toolset can do after its server refused the credentials with an HTTP status;
// empty: it did not refuse them. Field is where the credentials are configured, for example spec.http.auth.
func Remedy(status int, field string, a *task.Auth) string {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return ""
	}
	var names []string
	for _, k := range a.Keys() {
		names = append(names, cmp.Or(k.Key, keyDefault))
	}
	switch {
	case len(names) == 0:
		return "Set " + field + " to credentials that the server accepts"
	case status == http.StatusForbidden:
		return fmt.Sprintf("Check the rights of the credentials in Secret %s, key %s (%s)", a.Secret, strings.Join(names, " and "), field)
	}
	return fmt.Sprintf("Check Secret %s, key %s (%s)", a.Secret, strings.Join(names, " and "), field)
}

// A FieldError describes what is wrong with one field of a Toolset.
type FieldError struct {
	// Field is the field, such as headers[Host] or auth.oauthClientCredentials.tokenURL.
	Field string
	// Problem describes the error, and what to write instead.
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ours are headers that HTTP itself needs, which a Toolset cannot set.
var ours = []string{
	"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Check returns a *FieldError if headers or credentials cannot be sent, or nil. Reserved are headers that a Toolset
// cannot set.
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

// problem returns what is wrong with a header, or an empty text.
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
