package httpapi_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// refusing is an endpoint that quotes all headers of a request in its refusal. It keeps them in
// got.
func refusing(got *http.Header) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		*got = r.Header
		body := ""
		for value := range maps.Values(r.Header) {
			body += strings.Join(value, ",") + "; "
		}
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func TestSign(t *testing.T) {
	key := func() (string, error) { return "sk-0123456789", nil }
	gone := func() (string, error) { return "", errors.New("gone") }
	bearer := map[string]string{"Authorization": "Bearer "}
	cases := map[string]struct {
		options provider.Options
		headers map[string]string
		want    string // Authorization, after X-Date
		err     string
	}{
		"nothing":                   {headers: bearer},
		"a key":                     {options: provider.Options{Key: key}, headers: bearer, want: "Bearer sk-0123456789"},
		"a header of the user":      {options: provider.Options{Key: key, Headers: map[string]string{"authorization": "mine"}}, headers: bearer, want: "mine"},
		"a key that cannot be read": {options: provider.Options{Key: gone}, headers: bearer, err: "credential cannot be read: gone"},
		"a signature in place of a key": {
			options: provider.Options{
				Key: gone, Headers: map[string]string{"X-Team": "a"},
				Sign: func(r *http.Request) error {
					body, err := r.GetBody()
					if err != nil {
						return err
					}
					text, _ := io.ReadAll(body)
					r.Header.Set("X-Date", "20261127T000000Z")
					r.Header.Set("Authorization", "AWS4 "+string(text)+r.Header.Get("X-Team")+"-0123456789")
					return nil
				},
			},
			headers: bearer, want: "20261127T000000ZAWS4 {}a-0123456789",
		},
		"a signature that is not there": {
			options: provider.Options{Sign: func(*http.Request) error { return errors.New("no token") }}, err: "credential cannot be read: no token",
		},
		"a credential that is wrong": {
			options: provider.Options{Sign: func(*http.Request) error { return &model.UnauthorizedError{Message: "bad token"} }},
			err:     "credential cannot be used: bad token",
		},
		"a header that cannot be sent": {
			options: provider.Options{Key: func() (string, error) { return "sk\n", nil }}, headers: bearer, err: "no header may hold",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent, err := signed(t, tc.options, tc.headers)
			if got := sent.Get("X-Date") + sent.Get("Authorization"); got != tc.want {
				t.Errorf("sent %q, want %q", got, tc.want)
			}
			if err == nil || !strings.Contains(err.Error(), tc.err) || (tc.err == "") != (sent != nil) {
				t.Errorf("sent %v, got %v, want %q", sent, err, tc.err)
			}
			if err != nil && (strings.Contains(err.Error(), "0123456789") || strings.Contains(err.Error(), "20261127")) {
				t.Errorf("the message quotes what authenticates: %v", err)
			}
		})
	}
}

// signed is the header of a request that is sent, nil if it is not, and its error.
func signed(t *testing.T, o provider.Options, keyHeaders map[string]string) (sent http.Header, err error) {
	t.Helper()
	o.Transport = refusing(&sent)
	call := httpapi.New(o, httpapi.IdleHosted, keyHeaders).Begin(t.Context())
	defer call.End()
	req, err := http.NewRequestWithContext(call.Context(), http.MethodPost, "http://h/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = call.Send(req)
	return sent, err
}
