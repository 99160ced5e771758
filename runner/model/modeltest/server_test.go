package modeltest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// post asks a server that plays a script, and returns its status and body.
func post(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// serve plays a script, as JSON.
func serve(t *testing.T, script string) (*modeltest.Server, string) {
	t.Helper()
	s, err := modeltest.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server := modeltest.NewServer(s)
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	return server, listener.URL
}

const script = `{"models": {
	"worker": {"turns": [
		{"text": "I look.", "calls": [{"name": "Ls", "args": {"path": "{{.LastUserMessage}}"}}]},
		{"text": "There is: {{.LastToolResult}}"}
	]},
	"stubborn": {"turns": [{"calls": [{"name": "Ls"}]}], "after": "Repeat"},
	"flaky": {"turns": [{"text": "Hi", "faults": [{"kind": "Status", "status": 503, "times": 2}, {"kind": "HTML"}]}]}
}}`

const (
	user   = `{"role":"user","content":"a \"quoted\" path"}`
	called = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"Ls","arguments":"{}"}}]}`
	result = `{"role":"tool","tool_call_id":"c1","content":"a.txt"}`
)

func ask(model string, messages ...string) string {
	return `{"model":"` + model + `","messages":[` + strings.Join(messages, ",") + `]}`
}

// message is what a whole answer says.
func message(t *testing.T, body string) (text, args string) {
	t.Helper()
	var answer struct {
		Choices []struct {
			Message struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Function struct{ Arguments string } `json:"function"`
				} `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Choices) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	m := answer.Choices[0].Message
	if len(m.ToolCalls) > 0 {
		args = m.ToolCalls[0].Function.Arguments
	}
	return m.Content, args
}

func TestTheTurnIsTheNumberOfAnswersBefore(t *testing.T) {
	_, url := serve(t, script)
	_, first := post(t, url, ask("worker", user))
	if text, args := message(t, first); text != "I look." || args != `{"path": "a \"quoted\" path"}` {
		t.Errorf("the first turn: %q, %s", text, args)
	}
	// A server that never saw the first request goes on with the second.
	_, other := serve(t, script)
	_, second := post(t, other, ask("worker", user, called, result))
	if text, _ := message(t, second); text != "There is: a.txt" {
		t.Errorf("the second turn: %q", text)
	}
}

func TestAScriptEndsOrGoesOn(t *testing.T) {
	_, url := serve(t, script)
	if status, body := post(t, url, ask("worker", user, called, result, `{"role":"assistant","content":"x"}`, user)); status != 400 || !strings.Contains(body, "has 2 turns") {
		t.Errorf("after the last turn: %d %s", status, body)
	}
	if status, _ := post(t, url, ask("stubborn", user, called, result, `{"role":"assistant","content":"x"}`, user)); status != 200 {
		t.Errorf("a turn that repeats: %d", status)
	}
	if status, body := post(t, url, ask("nobody", user)); status != 400 || !strings.Contains(body, `no script for model \"nobody\"`) {
		t.Errorf("an unknown model: %d %s", status, body)
	}
}

func TestFaultsBefallTheFirstRequestsOfATurn(t *testing.T) {
	_, url := serve(t, script)
	statuses := []int{}
	for range 4 {
		status, _ := post(t, url, ask("flaky", user))
		statuses = append(statuses, status)
	}
	if want := []int{503, 503, 200, 200}; statuses[0] != want[0] || statuses[1] != want[1] || statuses[2] != want[2] || statuses[3] != want[3] {
		t.Errorf("statuses %v, want %v", statuses, want)
	}
	if status, _ := post(t, url, ask("flaky", `{"role":"user","content":"another session"}`)); status != 503 {
		t.Errorf("another session has its own faults, got %d", status)
	}
}

func TestTheServerIsAsStrictAsProviders(t *testing.T) {
	_, url := serve(t, script)
	cases := map[string]string{
		"no messages":                         ask("worker"),
		"a call without a result":             ask("worker", user, called),
		"a call without a result before more": ask("worker", user, called, user),
		"a result without a call":             ask("worker", user, result),
		"an empty result":                     ask("worker", user, called, strings.Replace(result, "a.txt", "", 1)),
		"an empty answer":                     ask("worker", user, `{"role":"assistant","content":""}`),
		"arguments that are no JSON":          ask("worker", user, strings.Replace(called, `"{}"`, `"{"`, 1), result),
		"no JSON":                             `{"model":`,
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			if status, body := post(t, url, body); status != 400 {
				t.Errorf("got %d: %s", status, body)
			}
		})
	}
}

func TestOtherPathsAndKeys(t *testing.T) {
	server, url := serve(t, `{"key":"sk-1","models":{"*":{"turns":[{"text":"Hi"}]}}}`)
	health := httptest.NewRecorder()
	server.ServeHTTP(health, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
	if health.Code != http.StatusOK {
		t.Fatalf("healthz: %d", health.Code)
	}
	if status, _ := post(t, url, ask("any", user)); status != 401 {
		t.Errorf("without the key: %d", status)
	}
	if status, _ := post(t, url, ask("any", user), "Authorization", "Bearer sk-1"); status != 200 {
		t.Errorf("with the key: %d", status)
	}
	if got := server.Requests(); len(got) != 2 || got[1].Model != "any" || got[1].Header.Get("Authorization") != "Bearer sk-1" {
		t.Errorf("recorded %+v", got)
	}
}

func TestParseRefusesAScriptThatIsNone(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"an unknown field":        {`{"models":{},"turns":[]}`, `unknown field "turns"`},
		"a model without turns":   {`{"models":{"m":{"turns":[]}}}`, `checking model "m": it has no turns`},
		"an unknown fault":        {`{"models":{"m":{"turns":[{"faults":[{"kind":"Fire"}]}]}}}`, `turn 0: no such fault: "Fire"`},
		"an unknown continuation": {`{"models":{"m":{"turns":[{}],"after":"Loop"}}}`, `after is "Loop"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := modeltest.Parse([]byte(tc.script)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
