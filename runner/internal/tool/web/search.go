package web

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// DefaultSearch is the default of SearchOptions.Endpoint.
const DefaultSearch = "https://api.tavily.com"

const (
	defaultResults = 5
	maxResults     = 20
	// Bounds of one result and of the response, in bytes.
	maxExcerpt = 2000
	maxAnswer  = 4000
)

//go:embed search.md
var searchPage string

// SearchOptions configure WebSearch.
type SearchOptions struct {
	// Endpoint is the base URL of a service with the API of Tavily, which may be within
	// the cluster. Default: DefaultSearch.
	Endpoint string
	// Key is called before each search, because Secrets rotate. Nil: no key is sent.
	Key func() (string, error)

	resolver *net.Resolver // nil: that of Go
}

type searchIn struct {
	Query      string `json:"query" jsonschema:"what to search for"`
	Topic      string `json:"topic,omitempty" enum:"general,news,finance" jsonschema:"where to search; default general"`
	MaxResults int    `json:"maxResults,omitempty" jsonschema:"how many results to return; default 5"`
}

// Search returns the tool that searches the web. It fails if the options are
// invalid.
func Search(o SearchOptions) (tool.Tool, error) {
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = DefaultSearch
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return tool.Tool{}, fmt.Errorf("reading the endpoint of the search: %q is no URL with http:// or https://", endpoint)
	}
	if !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/search") {
		u = u.JoinPath("search")
	}
	transport := httpclient.Transport(address.DialContext(&net.Dialer{Timeout: dialTimeout, Resolver: o.resolver}))
	transport.DisableKeepAlives = true
	s := &searcher{url: u.String(), key: o.Key, client: httpclient.New(transport)}
	spec := external(task.BuiltinWebSearch, searchPage, tool.ReadOnly)
	spec.Internal = facts.Facts{Endpoint: facts.Endpoint{
		Name: "tool " + task.BuiltinWebSearch, Field: "the endpoint of the tool " + task.BuiltinWebSearch,
	}}.Internal()
	return tool.Typed(spec, s.call), nil
}

type searcher struct {
	url    string
	key    func() (string, error)
	client *http.Client
}

// A query is the request to the service.
type query struct {
	Query         string `json:"query"`
	Topic         string `json:"topic"`
	MaxResults    int    `json:"max_results"`
	IncludeAnswer bool   `json:"include_answer"`
}

// found is the response of the service.
type found struct {
	Answer  string `json:"answer"`
	Results []struct {
		Title   string  `json:"title"`
		URL     string  `json:"url"`
		Content string  `json:"content"`
		Score   float64 `json:"score"`
		Date    string  `json:"published_date"`
	} `json:"results"`
}

func (s *searcher) call(ctx context.Context, _ tool.Call, in searchIn) (tool.Result, error) {
	if strings.TrimSpace(in.Query) == "" {
		return tool.Fail("The query is empty.", "Write in a few words what to search for."), nil
	}
	limited, cancel := bounded(ctx, 0)
	defer cancel()
	req, err := s.request(limited, in)
	if err != nil {
		return tool.Fail(fmt.Sprintf("The search cannot be made: %v", err), ownerMustFix), nil
	}
	a, err := fetch(limited, s.client, req, maxBody)
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case errors.Is(err, errSlow):
		return tool.Fail("The search did not answer in time.", "Try it once more, or go on without it."), nil
	case err != nil:
		callreport.SetUnreachable(ctx, dialerror.Cause(err))
		return unreachable("The search", err), nil
	case a.code != http.StatusOK:
		return refusedSearch(a), nil
	}
	var f found
	if err := json.Unmarshal([]byte(a.text), &f); err != nil {
		return tool.Fail("The search answered something that cannot be read: "+show(err.Error())+".", ownerMustFix), nil
	}
	return f.show(in), nil
}

func (s *searcher) request(ctx context.Context, in searchIn) (*http.Request, error) {
	q := query{Query: in.Query, Topic: in.Topic, MaxResults: defaultResults, IncludeAnswer: true}
	if q.Topic == "" {
		q.Topic = "general"
	}
	if in.MaxResults > 0 {
		q.MaxResults = min(in.MaxResults, maxResults)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("writing the query: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	if s.key == nil {
		return req, nil
	}
	key, err := s.key()
	if err != nil {
		return nil, fmt.Errorf("reading its key: %w", err)
	}
	if key = strings.TrimSpace(key); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// show returns the results for the model.
func (f found) show(in searchIn) tool.Result {
	n := min(len(f.Results), maxResults)
	summary := fmt.Sprintf("%q: %d results", quote.Line(in.Query, 80), n)
	if n == 0 && f.Answer == "" {
		return tool.Result{Text: "Nothing was found. Use fewer or other words.", Summary: summary}
	}
	var out strings.Builder
	if f.Answer != "" {
		fmt.Fprintf(&out, "Answer: %s\n\n", quote.Clip(strings.TrimSpace(f.Answer), maxAnswer))
	}
	for i, r := range f.Results[:n] {
		fmt.Fprintf(&out, "%d. %s\n   %s\n", i+1, show(r.Title), quote.Line(r.URL, maxExcerpt))
		var about []string
		if r.Date != "" {
			about = append(about, show(r.Date))
		}
		if r.Score > 0 {
			about = append(about, fmt.Sprintf("score %.2f", r.Score))
		}
		if len(about) > 0 {
			fmt.Fprintf(&out, "   %s\n", strings.Join(about, ", "))
		}
		if excerpt := quote.Line(r.Content, maxExcerpt); excerpt != "" {
			fmt.Fprintf(&out, "   %s\n", excerpt)
		}
	}
	return tool.Result{Text: strings.TrimSpace(out.String()), Summary: summary}
}

const ownerMustFix = "The owner of the agent must fix the API key or the endpoint of WebSearch. Continue without searching, and say so in the result."

// The statuses of Tavily for a plan that is used up.
const (
	statusPlan    = 432
	statusPayment = 433
)

// refusedSearch returns the failure for an error status of the service.
func refusedSearch(a *answer) tool.Result {
	said := "The search answered " + a.status
	if why := complaint(a.text); why != "" {
		said += ": " + why
	}
	switch {
	case a.code == http.StatusBadRequest, a.code == http.StatusUnprocessableEntity:
		return tool.Fail(said, "Change the query: fewer words, one question.")
	case a.code == http.StatusTooManyRequests:
		return tool.Fail(said, "Do something else before you search again"+retryAfter(a.header)+", and search less.")
	case a.code == statusPlan, a.code == statusPayment, a.code == http.StatusPaymentRequired:
		return tool.Fail(said, "What was paid for is used up. Go on without searching, and say so in the result.")
	case a.code >= http.StatusInternalServerError:
		return tool.Fail(said, "The service has a problem. Search again later, or go on without it.")
	}
	return tool.Fail(said, ownerMustFix)
}

// complaint returns the error message in a response body.
func complaint(body string) string {
	var in struct {
		Detail  json.RawMessage `json:"detail"`
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal([]byte(body), &in) != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{in.Detail, in.Error} {
		var text string
		var inner struct {
			Error   string `json:"error"`
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return show(text)
		}
		if json.Unmarshal(raw, &inner) == nil && inner.Error+inner.Message != "" {
			return show(inner.Error + inner.Message)
		}
	}
	return show(in.Message)
}
