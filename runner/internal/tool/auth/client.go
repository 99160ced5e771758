package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/deadpath"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

const (
	handshake    = 10 * time.Second
	maxRedirects = 5
	// maxLeft is how much of an answer is read and dropped, so that its connection can be used
	// again, in bytes.
	maxLeft = 64 << 10
	// maxWord bounds a text of a token server in a message, in bytes.
	maxWord = 80
)

// NewClient makes a client that connects to all addresses that Toolsets may reach. It uses the proxy of the
// environment.
func NewClient() *http.Client {
	dialer := &net.Dialer{Timeout: handshake, ControlContext: address.Control}
	return &http.Client{Transport: httpclient.Transport(deadpath.Watch(dialer.DialContext, deadpath.Limit))}
}

// ReadURL parses the URL of a Toolset. Its error describes what to write instead.
func ReadURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err
		}
		return nil, fmt.Errorf("%q is no URL: %w", raw, err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%q must be an http or https URL: write https://host/path", raw)
	case u.User != nil:
		return nil, errors.New("the URL has a user or password before the host; put them into a Secret and name it in auth")
	case u.Fragment != "":
		return nil, fmt.Errorf("%q has a fragment, which is never sent: remove # and what follows", raw)
	}
	if err := address.CheckHost(u.Hostname()); err != nil {
		return nil, err //nolint:wrapcheck // it names the host
	}
	if address.IsLocal(u.Hostname()) {
		return nil, fmt.Errorf("%q is the runner itself; write the name of a Service, as in http://name.namespace.svc", raw)
	}
	return u, nil
}

// A RedirectError means that a redirect was not followed.
type RedirectError struct {
	To    *url.URL
	why   string
	cause error // an [address.RefusedError], or nil
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("the redirect to %s is not followed: %s", e.To.Redacted(), e.why)
}

// Unwrap returns the cause, if the target is an address that Toolsets may not reach.
func (e *RedirectError) Unwrap() error { return e.cause }

// redirect returns a function that follows redirects only within the origin.
func redirect(origin *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		next.Header.Del("Referer") // it may hold what is secret in a query
		if err := address.CheckHost(next.URL.Hostname()); err != nil {
			return &RedirectError{To: next.URL, why: err.Error(), cause: err}
		}
		refuse := func(why string) error { return &RedirectError{To: next.URL, why: why} }
		switch {
		case !within(next.URL, origin):
			return refuse("it leads to another host, or from https to http; if that is where it is to go, write that URL in the Toolset")
		case len(via) > maxRedirects:
			return refuse(fmt.Sprintf("there were more than %d", maxRedirects))
		}
		return nil
	}
}

// within reports whether a URL has the same origin as another, or the same host with https.
func within(u, origin *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), origin.Hostname()) {
		return false
	}
	if u.Scheme == origin.Scheme {
		return port(u) == port(origin)
	}
	return origin.Scheme == "http" && u.Scheme == "https" && port(origin) == "80" && port(u) == "443"
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

const (
	// tokenTimeout bounds one request for a token.
	tokenTimeout = 30 * time.Second
	// early is how long before its expiry a token is no longer used.
	early = 30 * time.Second
	// lifetime is the lifetime of a token without an expiry.
	lifetime = 5 * time.Minute
	maxLife  = 24 * time.Hour
	// refusedFor is how long refused keys are not sent again.
	refusedFor = time.Minute
)

// tokens requests tokens with the grant "client_credentials", one at a time.
type tokens struct {
	base    http.RoundTripper
	options Options

	mu    sync.Mutex
	token string
	until time.Time

	refused *TokenError // why these keys were refused
	keys    []string
	again   time.Time // when they may be shown again
}

// get returns a valid token other than the refused one.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.token != refused && t.options.Now().Before(t.until) {
		return t.token, nil
	}
	keys, err := t.options.read(t.options.Auth)
	if err != nil {
		return "", err
	}
	if t.refused != nil && slices.Equal(keys, t.keys) && t.options.Now().Before(t.again) {
		return "", t.wrap(t.refused)
	}
	got, err := t.request(ctx, keys)
	if err != nil {
		if refused, ok := errors.AsType[*TokenError](err); ok && refused.IsFinal() {
			t.refused, t.keys, t.again = refused, keys, t.options.Now().Add(refusedFor)
		}
		return "", t.wrap(err)
	}
	t.refused = nil
	t.token, t.until = got.AccessToken, t.options.Now().Add(life(got))
	t.options.Learn(redact.Secret{Name: t.options.Auth.Secret, Key: "access-token", Value: []byte(got.AccessToken)})
	return t.token, nil
}

func (t *tokens) wrap(err error) error {
	return fmt.Errorf("getting a token from %s: %w", t.options.Auth.TokenURL, err)
}

// request requests a token, in two ways if necessary: some servers read the client's credentials only in the body.
func (t *tokens) request(ctx context.Context, keys []string) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	config := clientcredentials.Config{
		ClientID: keys[0], ClientSecret: keys[1], TokenURL: t.options.Auth.TokenURL, Scopes: t.options.Auth.Scopes,
		AuthStyle: oauth2.AuthStyleInHeader,
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.client())
	got, err := t.ask(ctx, &config)
	if refused, ok := errors.AsType[*TokenError](err); ok && refused.isClient() {
		config.AuthStyle = oauth2.AuthStyleInParams
		got, err = t.ask(ctx, &config)
	}
	return got, err
}

// client returns the client for token requests. It follows no redirect, so that credentials go to one host only.
func (t *tokens) client() *http.Client {
	return httpclient.New(tokenTransport{t.base})
}

// tokenTransport closes the connection after each request, and labels each response as JSON, as RFC 6749, section 5.1
// requires: the library also reads forms, and would take JSON that a server labels as text for a form.
type tokenTransport struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Close = true
	req.Header.Set("Accept", "application/json")
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		resp.Header.Set("Content-Type", "application/json")
	}
	return resp, err
}

// ask makes one request. An error has nothing of the server's response but its error code.
func (t *tokens) ask(ctx context.Context, c *clientcredentials.Config) (*oauth2.Token, error) {
	got, err := c.Token(ctx)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return nil, &TokenError{Status: refused.Response.StatusCode, Code: quote.Line(refused.ErrorCode, maxWord), Secret: t.options.Auth.Secret}
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err
	}
	switch {
	case err != nil || !httpguts.ValidHeaderFieldValue(got.AccessToken):
		return nil, errors.New("its answer has no access_token in it")
	case !strings.EqualFold(got.Type(), "bearer"):
		return nil, fmt.Errorf("it gave a token of type %s; only bearer tokens can be sent", quote.Line(got.TokenType, maxWord))
	}
	return got, nil
}

// life returns how long a token is used. The library computes Expiry with the machine's clock, so that is not used.
func life(token *oauth2.Token) time.Duration {
	d := lifetime
	if seconds, ok := token.Extra("expires_in").(float64); ok && seconds > 0 {
		d = time.Duration(min(seconds, maxLife.Seconds())) * time.Second
	}
	return max(d-early, d/2)
}

// A TokenError is an error response of the authorization server.
type TokenError struct {
	// Status is the HTTP status, Code the error code of RFC 6749, section 5.2.
	Status int
	Code   string
	// Secret is the Secret whose keys were sent.
	Secret string
}

func (e *TokenError) Error() string {
	said := strings.TrimSpace(fmt.Sprintf("it answered %d %s", e.Status, e.Code))
	if advice := e.advice(); advice != "" {
		return said + ". " + advice
	}
	return said
}

// advice returns what to do about a permanent error.
func (e *TokenError) advice() string {
	switch {
	case e.isClient():
		return fmt.Sprintf("Check the keys %s and %s of the Secret %s", keyClientID, keyClientSecret, e.Secret)
	case e.Code == "invalid_scope":
		return "Check auth.oauthClientCredentials.scopes of the Toolset"
	case e.Code == "unauthorized_client":
		return "Allow the grant type client_credentials for this client, or use another"
	case e.Code == "unsupported_grant_type":
		return "The server does not offer the grant type client_credentials: use another kind of auth, or check auth.oauthClientCredentials.tokenURL"
	case e.IsFinal():
		return "Check auth of the Toolset"
	}
	return ""
}

// IsFinal reports whether the server would refuse the same request again. That is so for all codes of RFC 6749, section
// 5.2.
func (e *TokenError) IsFinal() bool {
	switch e.Code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
		return true
	}
	return e.isClient()
}

// isClient reports whether the server refused the client's credentials.
func (e *TokenError) isClient() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusBadRequest && e.Code == "invalid_client"
}
