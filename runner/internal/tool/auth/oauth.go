package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

const (
	// tokenTimeout bounds one request for a token.
	tokenTimeout = 30 * time.Second
	// maxToken bounds its answer.
	maxToken = 64 << 10
	// early is how long before its end a token is no longer used.
	early = 30 * time.Second
	// lifetime is that of a token that does not say.
	lifetime = 5 * time.Minute
	maxLife  = 24 * time.Hour
	// refusedFor is for how long keys that were refused are not shown again.
	refusedFor = time.Minute
)

// tokens are those of the grant "client_credentials", one at a time.
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

// get is a token that is good, and not the one that was refused.
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
	t.token, t.until = got.Token, t.options.Now().Add(got.life())
	t.options.Learn(redact.Secret{Name: t.options.Auth.Secret, Key: "access-token", Value: []byte(got.Token)})
	return t.token, nil
}

func (t *tokens) wrap(err error) error {
	return fmt.Errorf("getting a token from %s: %w", t.options.Auth.TokenURL, err)
}

// request asks for a token, in one of two ways: some servers read who asks only in
// the body.
func (t *tokens) request(ctx context.Context, keys []string) (issued, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	got, err := t.ask(ctx, keys, inHeader)
	if refused, ok := errors.AsType[*TokenError](err); ok && refused.isClient() {
		got, err = t.ask(ctx, keys, inBody)
	}
	return got, err
}

// A style is where a client says who it is.
type style int

const (
	inHeader style = iota
	inBody
)

// An issued token, or why there is none.
type issued struct {
	Token   string  `json:"access_token"`
	Type    string  `json:"token_type"`
	Expires float64 `json:"expires_in"`
	Error   string  `json:"error"`
}

func (i issued) life() time.Duration {
	d := lifetime
	if i.Expires > 0 {
		d = min(time.Duration(min(i.Expires, maxLife.Seconds()))*time.Second, maxLife)
	}
	return max(d-early, d/2)
}

// A TokenError is what the authorization server answered instead of a token.
type TokenError struct {
	// Status is the HTTP status, Code the error code of RFC 6749, section 5.2.
	Status int
	Code   string
	// Secret is the Secret whose keys were shown.
	Secret string
}

func (e *TokenError) Error() string {
	said := strings.TrimSpace(fmt.Sprintf("it answered %d %s", e.Status, e.Code))
	if advice := e.advice(); advice != "" {
		return said + ". " + advice
	}
	return said
}

// advice says what to do about an error that stays.
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

// IsFinal reports whether the same request would be refused again. All codes of
// RFC 6749, section 5.2 say so.
func (e *TokenError) IsFinal() bool {
	switch e.Code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
		return true
	}
	return e.isClient()
}

// isClient reports whether the server did not accept who asked.
func (e *TokenError) isClient() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusBadRequest && e.Code == "invalid_client"
}

func (t *tokens) ask(ctx context.Context, keys []string, s style) (issued, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if scopes := t.options.Auth.Scopes; len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if s == inBody {
		form.Set("client_id", keys[0])
		form.Set("client_secret", keys[1])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.options.Auth.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return issued{}, err
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if s == inHeader {
		req.SetBasicAuth(url.QueryEscape(keys[0]), url.QueryEscape(keys[1]))
	}
	resp, err := t.base.RoundTrip(req) // and so follows no redirect
	if err != nil {
		return issued{}, err
	}
	defer resp.Body.Close()
	return t.read(resp)
}

func (t *tokens) read(resp *http.Response) (issued, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return issued{}, err
	}
	var got issued
	malformed := json.Unmarshal(body, &got) != nil
	switch {
	case resp.StatusCode != http.StatusOK:
		return issued{}, &TokenError{Status: resp.StatusCode, Code: word(got.Error), Secret: t.options.Auth.Secret}
	case malformed || got.Token == "" || !httpguts.ValidHeaderFieldValue(got.Token):
		return issued{}, errors.New("its answer has no access_token in it")
	case !strings.EqualFold(cmp.Or(got.Type, "bearer"), "bearer"):
		return issued{}, fmt.Errorf("it gave a token of type %s; only bearer tokens can be sent", word(got.Type))
	}
	return got, nil
}

// word is a short text from outside as a part of one of our lines.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
	return s[:min(len(s), 80)]
}
