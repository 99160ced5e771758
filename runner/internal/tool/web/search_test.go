package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/address/addresstest"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func search(t *testing.T, o SearchOptions) tool.Tool {
	t.Helper()
	made, err := Search(o)
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	return made
}

// A Run tells its owner that no search reached its endpoint.
func TestASearchThatReachesNobodySaysSo(t *testing.T) {
	to := search(t, SearchOptions{Endpoint: "http://127.0.0.1:1"})
	ctx, report := callreport.New(t.Context())
	got, err := to.Call(ctx, tool.Call{Args: json.RawMessage(`{"query":"q"}`)})
	if err != nil || got.Error == nil || report.Unreachable() != "dial 127.0.0.1:1: connect: connection refused" || to.Internal.Facts().Endpoint.Name != "tool WebSearch" {
		t.Errorf("%+v, %q of %+v", got.Error, report.Unreachable(), to.Internal.Facts().Endpoint)
	}
}

// Its endpoint is in the spec of an Agent, whose author must not have the key of a metadata service
// shown, nor what listens on the machine of the runner.
func TestASearchReachesNoForbiddenAddress(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was requested") })
	resolver := addresstest.Resolver(map[string][]string{"here.example.": {"127.0.0.1"}, "any.example.": {"0.0.0.0"}})
	for name, host := range map[string]string{
		"the address of no host":              "0.0.0.0",
		"a name that leads to the machine":    "here.example",
		"a name that leads to no host at all": "any.example",
	} {
		t.Run(name, func(t *testing.T) {
			o := SearchOptions{Endpoint: strings.Replace(s.URL, "127.0.0.1", host, 1), resolver: resolver}
			got := call(t, search(t, o), map[string]any{"query": "q"}).Render()
			has(t, got, "may not be reached: it is this machine, its link or a metadata service")
		})
	}
}

func key() (string, error) { return "tvly-secret\n", nil }

func TestWebSearch(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		want := map[string]any{"query": "q", "topic": "news", "max_results": 20.0, "include_answer": true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("asked -want +got:\n%s", diff)
		}
		if r.URL.Path != "/base/search" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer tvly-secret" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, `{"query":"q","answer":"It is so.","response_time":1.2,"results":[
			{"title":"A\n  title","url":"https://a.example/","content":"An  excerpt\u001b[31m","score":0.987,"raw_content":null},
			{"title":"B","url":"https://b.example/","content":"","published_date":"Mon, 02 Mar 2026 10:00:00 GMT"}]}`)
	})
	to := search(t, SearchOptions{Endpoint: s.URL + "/base/", Key: key})
	got := call(t, to, map[string]any{"query": "q", "topic": "news", "maxResults": 50})
	want := `Answer: It is so.

1. A title
   https://a.example/
   score 0.99
   An excerpt[31m
2. B
   https://b.example/
   Mon, 02 Mar 2026 10:00:00 GMT`
	if diff := cmp.Diff(tool.Result{Text: want, Summary: `"q": 2 results`}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if spec := to.Spec; spec.Effect != tool.ReadOnly || spec.Name != task.BuiltinWebSearch {
		t.Errorf("Spec() = %+v", spec)
	}
	has(t, call(t, to, map[string]any{"query": "q", "topic": "sport"}).Render(), "`topic` must be one of \"general\", \"news\", \"finance\"")
	has(t, call(t, to, map[string]any{"query": " "}).Render(), "The query is empty")
}

func TestWebSearchByDefault(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got, want := string(body), `{"query":"q","topic":"general","max_results":5,"include_answer":true}`; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		if _, sent := r.Header["Authorization"]; sent || r.URL.Path != "/search" {
			t.Errorf("%s with a key: %v", r.URL, sent)
		}
		fmt.Fprint(w, `{"results":[]}`)
	})
	got := call(t, search(t, SearchOptions{Endpoint: s.URL + "/search"}), map[string]any{"query": "q"})
	if got.Text != "Nothing was found. Use fewer or other words." {
		t.Errorf("Text = %q", got.Text)
	}
}

func TestWebSearchFails(t *testing.T) {
	cases := map[string]struct {
		code int
		body string
		want string
	}{
		"a bad key":        {401, `{"detail":{"error":"Unauthorized: missing or invalid API key."}}`, "answered 401 Unauthorized: Unauthorized: missing or invalid API key.\n- " + ownerMustFix},
		"too often":        {429, `{"detail":{"error":"slow down"}}`, "slow down\n- Do something else before you search again (the server says Retry-After: 7), and search less."},
		"a plan used up":   {432, `{"detail":{"error":"over the limit"}}`, "over the limit\n- What was paid for is used up."},
		"a bad query":      {400, `{"detail":"Query is too long."}`, "Query is too long.\n- Change the query"},
		"a bad day":        {503, `<html>`, "answered 503 Service Unavailable\n- The service has a problem."},
		"a redirect":       {302, ``, "answered 302 Found\n- " + ownerMustFix},
		"nonsense":         {200, `<html>`, "answered something that cannot be read"},
		"another envelope": {400, `{"error":{"message":"no"}}`, "Bad Request: no\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/search" {
					t.Errorf("a redirect was followed to %s", r.URL)
				}
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.code)
				io.WriteString(w, tc.body)
			})
			got := call(t, search(t, SearchOptions{Endpoint: s.URL, Key: key}), map[string]any{"query": "q"}).Render()
			has(t, got, "Error: The search ", tc.want)
			hasNot(t, got, "secret")
		})
	}
	has(t, call(t, search(t, SearchOptions{Endpoint: "http://127.0.0.1:1", Key: key}), map[string]any{"query": "q"}).Render(),
		"Error: The search cannot be reached")
	noKey := func() (string, error) { return "", errors.New("no such file") }
	has(t, call(t, search(t, SearchOptions{Key: noKey}), map[string]any{"query": "q"}).Render(),
		"The search cannot be made: reading its key: no such file\n- "+ownerMustFix)
	for _, endpoint := range []string{"search.example", "ftp://search.example", "http://", "http://[", ":"} {
		if _, err := Search(SearchOptions{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "is no URL with http:// or https://") {
			t.Errorf("the endpoint %q: error %v", endpoint, err)
		}
	}
}

func TestWebSearchIsBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		long := strings.Repeat("é ", 5000)
		one := fmt.Sprintf(`{"title":%q,"url":%q,"content":%q,"published_date":%q}`, long, long, long, long)
		fmt.Fprintf(w, `{"answer":%q,"results":[%s]}`, long, strings.TrimSuffix(strings.Repeat(one+",", 25), ","))
	})
	got := call(t, search(t, SearchOptions{Endpoint: s.URL}), map[string]any{"query": strings.Repeat("q ", 1000)})
	if n := len(got.Text); n > maxResults*5000+maxAnswer {
		t.Errorf("the result has %d bytes", n)
	}
	if len(got.Summary) > 120 {
		t.Errorf("the summary has %d bytes", len(got.Summary))
	}
	hasNot(t, got.Text, "\n21. ")
}

func TestASlowSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		s := &searcher{url: "http://search.example/search", client: &http.Client{Transport: &http.Transport{DialContext: o.dial}}}
		got, err := s.call(t.Context(), toolCall, searchIn{Query: "q"})
		if err != nil {
			t.Fatal(err)
		}
		has(t, got.Render(), "The search did not answer in time.")
	})
}

func TestPagesSayTheEffect(t *testing.T) {
	for name, text := range map[string]string{task.BuiltinHTTPRequest: requestPage, task.BuiltinBrowse: browsePage, task.BuiltinWebSearch: searchPage} {
		if !strings.Contains(text, "if the work is interrupted") && !strings.Contains(text, "If the work is interrupted") {
			t.Errorf("the page of %s does not say what happens after an interruption", name)
		}
	}
}
