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
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/runner/redact"
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
)

// tokens are those of the grant "client_credentials", one at a time.
type tokens struct {
	base    http.RoundTripper
	options Options

	mu    sync.Mutex
	token string
	until time.Time
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
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	got, err := t.ask(ctx, keys, inHeader)
	var told *tokenError
	if errors.As(err, &told) && told.client() { // some want to be told in the body who asks
		got, err = t.ask(ctx, keys, inBody)
	}
	if err != nil {
		return "", fmt.Errorf("getting a token from %s: %w", t.options.Auth.TokenURL, err)
	}
	t.token, t.until = got.Token, t.options.Now().Add(got.life())
	t.options.Learn(redact.Secret{Name: t.options.Auth.Secret, Key: "access-token", Value: []byte(got.Token)})
	return t.token, nil
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

// A tokenError is what the server of tokens answered instead of one.
type tokenError struct {
	status int
	code   string
}

func (e *tokenError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("it answered %d %s", e.status, e.code))
}

// client says whether it did not understand who asked.
func (e *tokenError) client() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusBadRequest && e.code == "invalid_client"
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
	return readToken(resp)
}

func readToken(resp *http.Response) (issued, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return issued{}, err
	}
	var got issued
	malformed := json.Unmarshal(body, &got) != nil
	switch {
	case resp.StatusCode != http.StatusOK:
		return issued{}, &tokenError{status: resp.StatusCode, code: word(got.Error)}
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
