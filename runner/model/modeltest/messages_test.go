package modeltest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a Server refuses on the wire of Messages, as strict providers do.
func TestMessagesAreRefused(t *testing.T) {
	request := func(messages, more string) string {
		return `{"model":"m","max_tokens":2000,"messages":[` + messages + `]` + more + `}`
	}
	const (
		user   = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
		called = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]}`
		marked = `{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}`
	)
	cases := map[string]struct{ body, want string }{
		"no limit":                  {`{"model":"m","messages":[` + user + `]}`, "max_tokens"},
		"no message":                {request("", ""), "user role"},
		"an assistant first":        {request(`{"role":"assistant","content":[{"type":"text","text":"Hi"}]}`, ""), "user role"},
		"two turns of one side":     {request(user+","+user, ""), "roles must alternate"},
		"an empty text":             {request(`{"role":"user","content":[{"type":"text","text":" "}]}`, ""), "non-whitespace"},
		"an empty turn":             {request(`{"role":"user","content":[]}`, ""), "must not be empty"},
		"a call without a result":   {request(user+","+called+","+user, ""), "tool_use without tool_result"},
		"a call at the end":         {request(user+","+called, ""), "tool_use without tool_result"},
		"a result without content":  {request(user+","+called+`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]}`, ""), "tool_result without content"},
		"a result after a text":     {request(user+","+called+`,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"y"}]}`, ""), "is not the next"},
		"arguments that are a text": {request(user+`,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":"{}"}]},`+user, ""), "input should be an object"},
		"a name that is none":       {request(user+`,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x y","input":{}}]},`+user, ""), "a name that is none"},
		"thinking of somebody else": {request(user+`,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]},`+user, ""), "signature"},
		"a budget over the limit":   {request(user, `,"thinking":{"type":"enabled","budget_tokens":2000}`), "budget_tokens"},
		"thinking and a temperature": {
			request(user, `,"temperature":0,"thinking":{"type":"enabled","budget_tokens":1024}`), "temperature",
		},
		"five marks":              {request(`{"role":"user","content":[`+strings.Repeat(marked+",", 4)+marked+`]}`, ""), "cache_control"},
		"a tool without a schema": {request(user, `,"tools":[{"name":"x"}]`), "input_schema"},
	}
	server := NewServer(Script{Models: map[string]Dialogue{AnyModel: {Turns: []Turn{{Text: "Hi"}}, After: Repeat}}})
	post := func(body string) *httptest.ResponseRecorder {
		return recorded(server, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body)))
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := post(tc.body)
			if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), tc.want) || !strings.Contains(got.Body.String(), "invalid_request_error") {
				t.Errorf("got %d %s, want %q", got.Code, got.Body, tc.want)
			}
		})
	}
	if got := post(request(user, "")); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"text":"Hi"`) {
		t.Errorf("a plain request: %d %s", got.Code, got.Body)
	}
}

// Those who sign no thinking want some with every call.
func TestUnsignedMessagesDemandThinking(t *testing.T) {
	server := NewServer(Script{Unsigned: true, Models: map[string]Dialogue{AnyModel: {Turns: []Turn{{Text: "Hi"}}, After: Repeat}}})
	for thinking, want := range map[string]int{"": http.StatusBadRequest, `{"type":"thinking","thinking":"x"},`: http.StatusOK} {
		body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},` +
			`{"role":"assistant","content":[` + thinking + `{"type":"tool_use","id":"a","name":"x","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"y"}]}]}`
		got := recorded(server, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body)))
		if got.Code != want {
			t.Errorf("with %q: got %d %s, want %d", thinking, got.Code, got.Body, want)
		}
	}
}
