package httpapi_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// The wires' own tests, and the suite that both pass, hold what a Call does of
// time, size and errors. Here is what they share besides.

func TestAddresses(t *testing.T) {
	cases := map[string]struct{ address, base, query, err string }{
		"a plain one":                        {"https://h/v1", "https://h/v1", "", ""},
		"slashes at its end are no matter":   {"https://h/v1//", "https://h/v1", "", ""},
		"a query is apart":                   {"https://h/v1?a=b", "https://h/v1", "a=b", ""},
		"a fragment is nothing":              {"https://h/v1#x", "https://h/v1", "", ""},
		"an empty one":                       {"", "", "", "the endpoint is empty"},
		"one without a scheme":               {"ollama:11434", "", "", "not a http or https URL"},
		"one that is none, with a password":  {"https://u:hunter2@h:port/", "", "", "the endpoint is not a URL"},
		"one that holds a credential":        {"https://u:hunter2@h/", "", "", "give it as the key of the model"},
		"one of another scheme, with a word": {"ftp://u:hunter2@h/", "", "", "not a http or https URL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			base, query, err := httpapi.Parse(tc.address)
			if base != tc.base || query != tc.query {
				t.Errorf("got %q and %q", base, query)
			}
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	cases := map[string]struct{ patch, want string }{
		"nothing":            {"", `{"a":{"x":1},"b":2}`},
		"objects are merged": {`{"a":{"y":{"z":null}}}`, `{"a":{"x":1,"y":{}},"b":2}`},
		"null removes":       {`{"a":null}`, `{"b":2}`},
		"all else replaces":  {`{"b":[1],"a":3.10}`, `{"a":3.10,"b":[1]}`},
	}
	for name, tc := range cases {
		for _, a := range []any{map[string]any{"x": 1}, json.RawMessage(`{"x":1}`)} {
			body := map[string]any{"a": a, "b": 2}
			err := httpapi.Merge(body, tc.patch)
			got, _ := json.Marshal(body)
			if string(got) != tc.want || err != nil {
				t.Errorf("%s into %T: got %s, %v", name, a, got, err)
			}
		}
	}
	for _, patch := range []string{"[]", "{", `{} {}`} {
		if httpapi.Merge(map[string]any{}, patch) == nil {
			t.Errorf("%s is accepted", patch)
		}
	}
}

func TestStringsAreReadAsTheStandardDecoderDoes(t *testing.T) {
	for _, value := range []string{`"a"`, `""`, `"a\"\u00e4\ud83d\ude00\n"`, `"` + "\xff" + `"`, `"\ud800"`} {
		var want string
		if err := json.Unmarshal([]byte(value), &want); err != nil {
			t.Fatal(err)
		}
		if got := httpapi.String([]byte(value)); got != want {
			t.Errorf("%s is read as %q, want %q", value, got, want)
		}
	}
	for _, value := range []string{``, `1`, `null`, `{}`, `"`} {
		if got := httpapi.String([]byte(value)); got != "" {
			t.Errorf("%s is read as %q", value, got)
		}
	}
}

// roundTrip is a network of one answer.
type roundTrip func(*http.Request) (*http.Response, error)

func (rt roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

// A call may send several requests: what one of them came to does not color the
// next.
func TestACallSendsSeveralRequests(t *testing.T) {
	answers := []*http.Response{
		{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("busy"))},
		{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("data: 1\ndata: 2"))},
		{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(` {"a":1}`))},
	}
	c := httpapi.New(provider.Options{
		Headers: map[string]string{"Host": "elsewhere"},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Host != "elsewhere" || r.Header.Get("User-Agent") != "deckhand" {
				return nil, errors.New("not dressed")
			}
			next := answers[0]
			answers = answers[1:]
			return next, nil
		}),
	}, httpapi.IdleHosted, nil)
	call := c.Begin(t.Context())
	defer call.End()
	send := func() (*httpapi.Answer, error) {
		req, err := http.NewRequestWithContext(call.Context(), http.MethodPost, "http://h/", nil)
		if err != nil {
			t.Fatal(err)
		}
		return call.Send(req)
	}
	_, err := send()
	if diff := cmp.Diff(&model.UnavailableError{Status: 503, Message: "busy"}, err, cmp.Transformer("", func(e error) string { return e.Error() })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	stream, err := send()
	if err != nil || stream.IsDocument {
		t.Fatalf("got %+v, %v", stream, err)
	}
	read := &recorder{}
	if wanted, cause := stream.Relay(read, nil); !errors.Is(cause, httpapi.ErrEnd) || !wanted || !slices.Equal(read.data, []string{"1", "2"}) {
		t.Errorf("got %q, %v", read.data, cause)
	}
	document, err := send()
	if err != nil || !document.IsDocument {
		t.Fatalf("got %+v, %v", document, err)
	}
	read = &recorder{}
	if wanted, cause := document.Relay(read, nil); !errors.Is(cause, httpapi.ErrDone) || !wanted || !slices.Equal(read.data, []string{`{"a":1}`}) {
		t.Errorf("got %q, %v", read.data, cause)
	}
}

func TestAnUnknownPathNamesTheAddressThatWasAsked(t *testing.T) {
	long := "https://h/" + strings.Repeat("a", 300)
	cases := map[string]struct {
		status    int
		url, want string
	}{
		"an unknown path":          {404, "https://u:hunter2@h:8443/v1%2Fb/chat?key=hunter2#hunter2", "POST https://h:8443/v1%2Fb/chat"},
		"another method":           {405, "http://h/v1", "POST http://h/v1"},
		"the key in a path":        {404, "http://h/sk-1234/v1", "POST http://h/‹key›/v1"},
		"a long path":              {404, long, ("POST " + long)[:240] + "…"},
		"another kind of refusal":  {400, "http://h/v1", ""},
		"a refusal by another API": {422, "http://h/v1", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := httpapi.New(provider.Options{
				Key: func() (string, error) { return "sk-1234", nil },
				Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: tc.status, Header: http.Header{}, Body: http.NoBody}, nil
				}),
			}, httpapi.IdleHosted, map[string]string{"Authorization": "Bearer "})
			call := c.Begin(t.Context())
			defer call.End()
			req, err := http.NewRequestWithContext(call.Context(), http.MethodPost, tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = call.Send(req)
			refused, ok := errors.AsType[*model.BadRequestError](err)
			if !ok || refused.Asked != tc.want || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %+v (%v), want %s", refused, err, tc.want)
			}
		})
	}
}

// recorder records what it is to decode.
type recorder struct{ data []string }

func (r *recorder) Event(e httpapi.Event) error { return r.Document(e.Data) }

func (r *recorder) Document(data []byte) error {
	r.data = append(r.data, string(data))
	return nil
}

func (*recorder) Take() []model.Delta { return nil }
