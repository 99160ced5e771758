package openai_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// streaming is an endpoint that streams these lines.
func streaming(lines ...string) wiretest.RoundTrip {
	return wiretest.Answering(http.StatusOK, "text/event-stream", strings.Join(lines, "\n"))
}

// at is a compatible Model behind a network.
func at(t testing.TB, network http.RoundTripper, mods ...func(*openai.Options)) model.Model {
	t.Helper()
	o := openai.Options{Provider: openai.ProviderOpenAICompatible, Model: "m", Endpoint: "http://endpoint/v1", Transport: network}
	for _, mod := range mods {
		mod(&o)
	}
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// collect is the whole answer of a network.
func collect(t testing.TB, network http.RoundTripper, mods ...func(*openai.Options)) (model.Response, error) {
	t.Helper()
	return model.Collect(at(t, network, mods...).Stream(t.Context(), wiretest.Ask), nil)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	cases := map[string]struct {
		options openai.Options
		want    string
	}{
		"an unknown provider":                {openai.Options{Provider: "Acme", Model: "m"}, `provider "Acme" is not one of Azure, DeepSeek, Kimi, Ollama, OpenAI, OpenAICompatible, OpenRouter`},
		"no model":                           {openai.Options{Provider: "OpenAI"}, "name is empty"},
		"a compatible one without endpoint":  {openai.Options{Provider: "OpenAICompatible", Model: "m"}, "the endpoint is empty"},
		"an endpoint that is no web address": {openai.Options{Provider: "OpenAI", Model: "m", Endpoint: "ollama:11434"}, "not a http or https URL"},
		"an endpoint with a credential":      {openai.Options{Provider: "OpenAI", Model: "m", Endpoint: "https://u:hunter2@h/v1"}, "give it as the key of the model"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := openai.New(tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	cases := map[string]struct{ provider, endpoint, want string }{
		"OpenAI needs none":               {"OpenAI", "", "https://api.openai.com/v1/chat/completions"},
		"a slash at its end is no matter": {"OpenAICompatible", "http://h/v1/", "http://h/v1/chat/completions"},
		"a whole address is understood":   {"OpenAICompatible", "http://h/v1/chat/completions", "http://h/v1/chat/completions"},
		"a query stays":                   {"OpenAICompatible", "http://h/v1?api-version=2", "http://h/v1/chat/completions?api-version=2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := ""
			network := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.String()
				return nil, errors.New("enough")
			})
			_, _ = collect(t, network, func(o *openai.Options) { o.Provider, o.Endpoint = tc.provider, tc.endpoint })
			if asked != tc.want {
				t.Errorf("asked %s, want %s", asked, tc.want)
			}
		})
	}
}

// sent is the header of the one request that m makes.
func sent(t *testing.T, mods ...func(*openai.Options)) http.Header {
	t.Helper()
	var header http.Header
	_, _ = collect(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		header = r.Header
		return nil, errors.New("enough")
	}), mods...)
	return header
}

func TestHeaders(t *testing.T) {
	if got := sent(t, wiretest.WithKey("sk-1")).Get("Authorization"); got != "Bearer sk-1" {
		t.Errorf("with a key: Authorization is %q", got)
	}
	for name, mod := range map[string]func(*openai.Options){"no key": func(*openai.Options) {}, "an empty key": wiretest.WithKey("")} {
		if got, ok := sent(t, mod)["Authorization"]; ok {
			t.Errorf("with %s: Authorization is %q", name, got)
		}
	}
	own := func(o *openai.Options) { o.Headers = map[string]string{"X-Team": "a", "authorization": "Basic x"} }
	h := sent(t, own)
	if h.Get("X-Team") != "a" || h.Get("Authorization") != "Basic x" {
		t.Errorf("custom headers: %v", h)
	}
}

func TestARotatedKeyIsUsedAtOnce(t *testing.T) {
	var key string
	var got []string
	m := at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Header.Get("Authorization"))
		return nil, errors.New("enough")
	}), func(o *openai.Options) { o.Key = func() (string, error) { return key, nil } })
	for _, key = range []string{"sk-old", "sk-new"} {
		_, _ = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
	}
	if diff := gocmp.Diff([]string{"Bearer sk-old", "Bearer sk-new"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAKeyThatCannotBeUsed(t *testing.T) {
	_, err := collect(t, nil, wiretest.WithKey("sk-secret\x00value"))
	var unauthorized *model.UnauthorizedError
	if !errors.As(err, &unauthorized) || unauthorized.Status != 0 || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("a key that holds a control character: %v", err)
	}
	_, err = collect(t, nil, func(o *openai.Options) { o.Key = func() (string, error) { return "", os.ErrNotExist } })
	if _, unreadable := errors.AsType[*model.NoCredentialError](err); !unreadable || !model.Transient(err) {
		t.Errorf("a key that is not there, which may come back: %v", err)
	}
}

// Whatever an endpoint quotes, and wherever it quotes it, the key is in no error.
func TestNoErrorHoldsTheKey(t *testing.T) {
	const key = "sk-live-0123456789abcdef"
	page := "<html>" + strings.Repeat(" ", 4<<10-16) + key
	cases := map[string]http.RoundTripper{
		"an error body":          wiretest.Answering(401, "application/json", `{"error":{"message":"Incorrect API key: `+key+`"}}`),
		"escapes in it":          wiretest.Answering(401, "application/json", `{"error":{"message":"\u0073k-live-0123456789abcdef"}}`),
		"plain text":             wiretest.Answering(500, "text/plain", key),
		"a page":                 wiretest.Answering(200, "text/html", "<html>"+key),
		"a page cut in the key":  wiretest.Answering(200, "text/html", page),
		"a content type":         wiretest.Answering(200, "text/"+key, "<html>"),
		"a redirect":             wiretest.Answering(302, "text/html", "", "Location", "https://evil/?k="+key),
		"an error in the stream": streaming(`data: {"error":{"message":"`+key+`"}}`, ""),
		"a broken chunk":         streaming(`data: `+key, ""),
		"a network error":        wiretest.RoundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New(key) }),
	}
	for name, network := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := collect(t, network, wiretest.WithKey(key))
			wiretest.CheckNoKey(t, err, key)
		})
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	requests := 0
	_, err := collect(t, wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
		requests++
		return wiretest.Answering(http.StatusPermanentRedirect, "", "", "Location", "https://elsewhere/v1")(nil)
	}), wiretest.WithKey("sk-1"))
	var notAModel *model.NotAModelError
	if !errors.As(err, &notAModel) || !strings.Contains(err.Error(), "https://elsewhere/v1") || requests != 1 {
		t.Errorf("after %d requests: %v", requests, err)
	}
}

func TestTheCallersEndIsNoFailureOfTheModel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := model.Collect(at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, r.Context().Err()
	})).Stream(ctx, wiretest.Ask), nil)
	if !errors.Is(err, context.Canceled) || model.Transient(err) {
		t.Errorf("got %v", err)
	}
}

func TestACallCannotBeSplitIntoMillions(t *testing.T) {
	var lines strings.Builder
	for range 300 {
		lines.WriteString(`data: {"choices":[{"delta":{"tool_calls":[{"id":"","function":{"name":"x"}}]}}]}` + "\n")
	}
	lines.WriteString(`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")
	got, err := collect(t, streaming(lines.String()))
	if err != nil || len(got.Calls) != 256 || got.Finish != step.FinishLength {
		t.Errorf("%d calls, finished with %q, error %v; want it cut", len(got.Calls), got.Finish, err)
	}
}
