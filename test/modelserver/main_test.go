package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const script = `{"key": "sk-1", "models": {
	"claude-opus-5": {"turns": [
		{"thinking": "hm", "text": "I look.", "calls": [{"name": "Ls", "args": {"path": "{{.LastUserMessage}}"}}], "usage": {"input": 100, "cacheRead": 60, "output": 7}},
		{"text": "There is: {{.LastToolResult}}"}
	]},
	"claude-opus-5?the tide": {"turns": [{"text": "It turns."}]},
	"claude-opus-5?the fog": {"turns": [{"text": "It lifts."}]},
	"down": {"turns": [{"faults": [{"kind": "Status", "status": 503, "message": "gone fishing", "times": -1}]}]}
}}`

func serve(t *testing.T, pages string) string {
	t.Helper()
	t.Setenv(envScript, script)
	t.Setenv(envPages, pages)
	handler, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// claude is our own adapter on that server.
func claude(t *testing.T, url, name string) model.Model {
	t.Helper()
	m, err := anthropic.New(anthropic.Options{
		Provider: anthropic.ProviderAnthropic, Model: name, Endpoint: url,
		Key: func() (string, error) { return "sk-1", nil },
		Now: func() time.Time { return time.Unix(0, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A script is played over the wire of Messages as our adapter reads it.
func TestMessages(t *testing.T) {
	m := claude(t, serve(t, ""), "claude-opus-5")
	session := []step.Step{user("/tmp")}
	first, err := model.Collect(m.Stream(t.Context(), &model.Request{System: "s", Steps: session}), nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := step.Step{Seq: 2, Role: step.RoleAssistant, Parts: first.Parts, Finish: first.Finish}
	if got := asked.Text(); got != "I look." {
		t.Errorf("it says %q", got)
	}
	if diff := cmp.Diff([]model.Call{{Name: "Ls", Args: `{"path": "/tmp"}`}}, first.Calls); diff != "" {
		t.Fatalf("calls -want +got:\n%s", diff)
	}
	if u := first.Usage; u.InputTokens != 100 || u.CacheReadTokens != 60 || u.OutputTokens != 7 {
		t.Errorf("usage is %+v", u)
	}
	asked.Calls = []step.Call{{ID: "s2c1", Name: "Ls", Args: json.RawMessage(first.Calls[0].Args)}}
	found := step.Step{Seq: 3, Role: step.RoleTool, CallID: "s2c1", Name: "Ls", Parts: []step.Part{{Kind: step.PartText, Text: "a.txt"}}}
	second, err := model.Collect(m.Stream(t.Context(), &model.Request{System: "s", Steps: append(session, asked, found)}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := (step.Step{Parts: second.Parts}).Text(); got != "There is: a.txt" {
		t.Errorf("then it says %q", got)
	}
}

func user(text string) step.Step {
	return step.Step{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

// What a request says last decides which variant of a model answers.
// Bedrock's wire is that of package modeltest.
func TestBedrock(t *testing.T) {
	m, err := anthropic.New(anthropic.Options{
		Provider: anthropic.ProviderBedrock, Model: "claude-opus-5", Endpoint: serve(t, "") + "/name",
		Key: func() (string, error) { return "sk-1", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.Collect(m.Stream(t.Context(), &model.Request{System: "s", Steps: []step.Step{user("/tmp")}}), nil)
	if err != nil || got.Usage.InputTokens != 100 {
		t.Fatalf("usage %+v, %v", got.Usage, err)
	}
	if diff := cmp.Diff([]model.Call{{Name: "Ls", Args: `{"path": "/tmp"}`}}, got.Calls); diff != "" {
		t.Errorf("calls -want +got:\n%s", diff)
	}
}

func TestVariants(t *testing.T) {
	m := claude(t, serve(t, ""), "claude-opus-5")
	for asked, want := range map[string]string{"the fog, then the tide": "It turns.", "the tide, then the fog": "It lifts.", "the rain": "I look."} {
		textResult, err := model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{user(asked)}}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := (step.Step{Parts: textResult.Parts}).Text(); got != want {
			t.Errorf("of %s it says %q, want %q", asked, got, want)
		}
	}
}

// Parts of a text are read as the text, as providers do.
func TestContentInParts(t *testing.T) {
	got := string(plain(json.RawMessage(`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":null}]`)))
	if want := `[{"content":"ab","role":"user"},{"content":null,"role":"assistant"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFaultsOfMessages(t *testing.T) {
	m := claude(t, serve(t, ""), "down")
	_, err := model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{user("x")}}), nil)
	if err == nil || !strings.Contains(err.Error(), "gone fishing") || !model.Transient(err) {
		t.Errorf("error is %v", err)
	}
}

// An answer is what a page answered.
type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, method, url string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("asked"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// Pages are served by pattern, and everything is written down.
func TestPagesAndJournal(t *testing.T) {
	url := serve(t, `{
		"GET /a/{$}": {"body": "ab", "repeat": 3, "headers": {"X-Of": "a"}},
		"POST /b": {"status": 418, "contentType": "application/json", "body": "{}"}
	}`)
	if a := get(t, http.MethodGet, url+"/a/?q=1"); a.body != "ababab" || a.header.Get("X-Of") != "a" || a.status != http.StatusOK {
		t.Errorf("the page is %+v", a)
	}
	if a := get(t, http.MethodPost, url+"/b"); a.status != http.StatusTeapot || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("the other page is %+v", a)
	}
	if a := get(t, http.MethodGet, url+"/nowhere"); a.status != http.StatusNotFound {
		t.Errorf("no page is %+v", a)
	}
	var asked []Entry
	if err := json.Unmarshal([]byte(get(t, http.MethodGet, url+"/journal").body), &asked); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range asked {
		got = append(got, e.Method+" "+e.Path+" "+e.Body)
	}
	if diff := cmp.Diff([]string{"GET /a/?q=1 asked", "POST /b asked", "GET /nowhere asked"}, got); diff != "" {
		t.Errorf("journal -want +got:\n%s", diff)
	}
}

// An answer without an end ends when its reader goes.
func TestEndlessPage(t *testing.T) {
	url := serve(t, `{"/flood": {"body": "data: x\n\n", "repeat": -1}}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/flood", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.CopyN(io.Discard, resp.Body, 4<<20); err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
}

func TestPagesThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct{ pages, want string }{
		"an unknown field":  {`{"/a": {"text": "x"}}`, "decoding the pages"},
		"no pattern":        {`{"a b c": {}}`, "adding the pages"},
		"patterns conflict": {`{"/{x}/a": {}, "/a/{x}": {}}`, "adding the pages"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parsePages([]byte(tc.pages)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// A pod that a Run is compared with asks as a Run does, and fails if it is not answered.
func TestAsk(t *testing.T) {
	t.Setenv(envScript, `{"models": {"*": {"turns": [{"text": "Done."}]}}}`)
	handler, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	if err := ask(t.Context(), server.URL+"/v1"); err != nil {
		t.Error(err)
	}
	if err := ask(t.Context(), serve(t, "")+"/v1"); !errors.Is(err, errRefused) {
		t.Errorf("without the key: %v", err)
	}
}
