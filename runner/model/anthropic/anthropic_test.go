package anthropic_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// streaming is an endpoint that streams these events.
func streaming(events ...string) wiretest.RoundTrip {
	return wiretest.Answering(http.StatusOK, "text/event-stream", strings.Join(events, ""))
}

// at is a Model of Anthropic's behind a network.
func at(t testing.TB, network http.RoundTripper, mods ...func(*anthropic.Options)) model.Model {
	t.Helper()
	o := anthropic.Options{Provider: anthropic.ProviderAnthropic, Name: "main", Model: "claude-sonnet-4-5", Transport: network}
	for _, mod := range mods {
		mod(&o)
	}
	m, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// collect is the whole answer of a network.
func collect(t testing.TB, network http.RoundTripper, mods ...func(*anthropic.Options)) (model.Response, error) {
	t.Helper()
	return model.Collect(at(t, network, mods...).Stream(t.Context(), wiretest.Ask), nil)
}

func from(provider, name string) func(*anthropic.Options) {
	return func(o *anthropic.Options) {
		o.Provider, o.Model = provider, name
		if provider == anthropic.ProviderAnthropicCompatible {
			o.Endpoint = "http://endpoint"
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	cases := map[string]struct {
		options anthropic.Options
		want    string
	}{
		"an unknown provider":                {anthropic.Options{Provider: "Acme", Model: "m"}, `provider "Acme" is not one of Anthropic, AnthropicCompatible, Bedrock, DeepSeek, Kimi`},
		"no model":                           {anthropic.Options{Provider: "Anthropic"}, "name is empty"},
		"a compatible one without endpoint":  {anthropic.Options{Provider: "AnthropicCompatible", Model: "m"}, "the endpoint is empty"},
		"Bedrock without endpoint":           {anthropic.Options{Provider: "Bedrock", Model: "m"}, "the endpoint is empty"},
		"an endpoint that is no web address": {anthropic.Options{Provider: "Anthropic", Model: "m", Endpoint: "proxy:8080"}, "not a http or https URL"},
		"an endpoint with a credential":      {anthropic.Options{Provider: "Anthropic", Model: "m", Endpoint: "https://u:hunter2@h/v1"}, "give it as the key of the model"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.New(tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// sent is the one request that a model makes.
func sent(t *testing.T, mods ...func(*anthropic.Options)) *http.Request {
	t.Helper()
	var got *http.Request
	_, _ = collect(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		return nil, errors.New("enough")
	}), mods...)
	return got
}

func TestEndpoint(t *testing.T) {
	cases := map[string]struct{ provider, endpoint, want string }{
		"Anthropic needs none":            {"Anthropic", "", "https://api.anthropic.com/v1/messages"},
		"DeepSeek needs none":             {"DeepSeek", "", "https://api.deepseek.com/anthropic/v1/messages"},
		"Kimi needs none":                 {"Kimi", "", "https://api.moonshot.ai/anthropic/v1/messages"},
		"a slash at its end is no matter": {"AnthropicCompatible", "http://h/v1/", "http://h/v1/messages"},
		"without a version":               {"AnthropicCompatible", "http://h/proxy", "http://h/proxy/v1/messages"},
		"a whole address is understood":   {"AnthropicCompatible", "http://h/v1/messages", "http://h/v1/messages"},
		"a query stays":                   {"AnthropicCompatible", "http://h?tenant=2", "http://h/v1/messages?tenant=2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := sent(t, func(o *anthropic.Options) { o.Provider, o.Endpoint = tc.provider, tc.endpoint })
			if got.URL.String() != tc.want {
				t.Errorf("asked %s, want %s", got.URL, tc.want)
			}
		})
	}
}

// What reaches the network is ours alone: the official client tells of the
// machine, and takes keys from the environment.
func TestHeaders(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "sk-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: sk-environment")
	base := http.Header{
		"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "User-Agent": {"deckhand"},
	}
	with := func(pairs ...string) http.Header {
		h := base.Clone()
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	cases := map[string]struct {
		mods []func(*anthropic.Options)
		want http.Header
	}{
		"no key":              {nil, base},
		"an empty key":        {[]func(*anthropic.Options){wiretest.WithKey("")}, base},
		"Anthropic's":         {[]func(*anthropic.Options){wiretest.WithKey("k")}, with("X-Api-Key", "k")},
		"DeepSeek's":          {[]func(*anthropic.Options){wiretest.WithKey("k"), from("DeepSeek", "d")}, with("X-Api-Key", "k")},
		"Kimi's":              {[]func(*anthropic.Options){wiretest.WithKey("k"), from("Kimi", "k")}, with("Authorization", "Bearer k")},
		"a compatible server": {[]func(*anthropic.Options){wiretest.WithKey("k"), from("AnthropicCompatible", "m")}, with("X-Api-Key", "k", "Authorization", "Bearer k")},
		"the user's own": {
			[]func(*anthropic.Options){wiretest.WithKey("k"), func(o *anthropic.Options) {
				o.Headers = map[string]string{"anthropic-beta": "a,b", "x-api-key": "mine"}
			}},
			with("X-Api-Key", "mine", "Anthropic-Beta", "a,b"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, sent(t, tc.mods...).Header); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestARotatedKeyIsUsedAtOnce(t *testing.T) {
	var key string
	var got []string
	m := at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Header.Get("X-Api-Key"))
		return nil, errors.New("enough")
	}), func(o *anthropic.Options) { o.Key = func() (string, error) { return key, nil } })
	for _, key = range []string{"sk-old", "sk-new"} {
		_, _ = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
	}
	if diff := gocmp.Diff([]string{"sk-old", "sk-new"}, got); diff != "" {
		t.Error(diff)
	}
}

// Retrying is a decorator's work: here one request is one request.
func TestNothingIsRetried(t *testing.T) {
	for name, network := range map[string]wiretest.RoundTrip{
		"a failure":    wiretest.Answering(500, "application/json", `{"error":{"message":"no"}}`, "X-Should-Retry", "true"),
		"a rate limit": wiretest.Answering(429, "application/json", `{"error":{"message":"no"}}`, "Retry-After", "0"),
		"no network":   func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			_, err := collect(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				requests++
				return network(r)
			}))
			if requests != 1 || !model.Transient(err) {
				t.Errorf("%d requests, error %v", requests, err)
			}
		})
	}
}

func TestTheCallersEndIsNoFailureOfTheModel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := model.Collect(at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, r.Context().Err()
	})).Stream(ctx, wiretest.Ask), nil)
	if !errors.Is(err, context.Canceled) || model.Transient(err) || r.Usage != (step.Usage{}) {
		t.Errorf("got %v, usage %+v", err, r.Usage)
	}
}
