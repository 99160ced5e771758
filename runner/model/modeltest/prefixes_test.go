package modeltest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// parts are as many parts of 40 bytes, which are ten tokens, as there are
// letters.
func parts(letters string) [][]byte {
	var list [][]byte
	for letter := range strings.SplitSeq(letters, "") {
		list = append(list, []byte(strings.Repeat(letter, 40)))
	}
	return list
}

func TestPrefixes(t *testing.T) {
	type asked struct {
		key, parts string
		read       int
	}
	cases := map[string][]asked{
		"the first prompt is new":                     {{"k", "abc", 0}},
		"what grows at its end is read":               {{"k", "abc", 0}, {"k", "abcd", 30}, {"k", "abcdef", 40}},
		"the same again is read whole":                {{"k", "abc", 0}, {"k", "abc", 30}},
		"a change at the start voids all":             {{"k", "abc", 0}, {"k", "xbc", 0}},
		"a change in the middle leaves the beginning": {{"k", "abcd", 0}, {"k", "abxd", 20}, {"k", "abcd", 40}},
		"a shorter one is read":                       {{"k", "abc", 0}, {"k", "ab", 20}},
		"another key has seen nothing":                {{"k", "abc", 0}, {"l", "abc", 0}, {"k", "abc", 30}},
		"the parts matter, not the bytes in all":      {{"k", "aa", 0}, {"k", "a", 10}},
	}
	for name, list := range cases {
		t.Run(name, func(t *testing.T) {
			var p modeltest.Prefixes
			for i, a := range list {
				read, total := p.Count(a.key, parts(a.parts))
				if read != a.read || total != 10*len(a.parts) {
					t.Errorf("prompt %d: read %d of %d, want %d of %d", i, read, total, a.read, 10*len(a.parts))
				}
			}
		})
	}
	if read, total := new(modeltest.Prefixes).Count("k", nil); read != 0 || total != 0 {
		t.Errorf("nothing: read %d of %d", read, total)
	}
}

// What a Server says of its cache, on each wire, when a prompt grows and its
// marks move.
func TestServerCountsPrefixes(t *testing.T) {
	const system = "You are brief, and you say so."
	said := strings.Repeat("word ", 40)
	chat := func(messages ...string) string {
		return `{"model":"m","prompt_cache_key":"k","messages":[{"role":"system","content":"` + system + `"},` + strings.Join(messages, ",") + `]}`
	}
	user := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	marked := func(text string) string {
		return `{"role":"user","content":[{"type":"text","text":"` + text + `","cache_control":{"type":"ephemeral"}}]}`
	}
	claude := func(messages ...string) string {
		return `{"model":"m","max_tokens":9,"tools":[{"name":"Ls","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"` + system + `"}],"messages":[` + strings.Join(messages, ",") + `]}`
	}
	block := func(role, text string) string {
		return `{"role":"` + role + `","content":[{"type":"text","text":"` + text + `"}]}`
	}
	answer := `{"role":"assistant","content":"Yes."}`
	cases := map[string]struct {
		path     string
		requests []string
		want     []string // read, of each
	}{
		"chat": {"/chat/completions", []string{chat(user(said)), chat(user(said), answer, user("And?"))}, []string{`"cached_tokens":0`, `"cached_tokens":72`}},
		"chat, where marks say how far": {
			"/chat/completions",
			[]string{chat(marked(said)), chat(user(said), answer, marked("And?"), answer, user("More."))},
			[]string{`"cached_tokens":0`, `"cached_tokens":72`},
		},
		"messages": {"/messages", []string{claude(marked(said)), claude(block("user", said), block("assistant", "Yes."), marked("And?"))}, []string{
			`"cache_creation_input_tokens":77,"cache_read_input_tokens":0,"input_tokens":0`,
			`"cache_creation_input_tokens":17,"cache_read_input_tokens":77,"input_tokens":0`,
		}},
		"messages without marks are not cached": {"/messages", []string{claude(block("user", said)), claude(block("user", said))}, []string{
			`"cache_creation_input_tokens":0,"cache_read_input_tokens":0`, `"cache_creation_input_tokens":0,"cache_read_input_tokens":0`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := modeltest.NewServer(modeltest.Script{Cache: true, Models: map[string]modeltest.Dialogue{
				modeltest.AnyModel: {Turns: []modeltest.Turn{{Text: "Yes."}}, After: modeltest.Repeat},
			}})
			for i, body := range tc.requests {
				recorder := httptest.NewRecorder()
				server.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.path, strings.NewReader(body)))
				if got := recorder.Body.String(); recorder.Code != http.StatusOK || !strings.Contains(got, tc.want[i]) {
					t.Errorf("request %d: %d %s, want %s", i, recorder.Code, got, tc.want[i])
				}
			}
		})
	}
}

func TestAContentMayBeAList(t *testing.T) {
	cases := map[string]struct {
		content string
		ok      bool
	}{
		"a text":                   {`"Hi"`, true},
		"a list of texts":          {`[{"type":"text","text":"H"},{"type":"text","text":"i"}]`, true},
		"an empty list":            {`[]`, false},
		"a part without a text":    {`[{"type":"text","text":""}]`, false},
		"a part of another type":   {`[{"type":"image"}]`, false},
		"a list of something else": {`[1]`, false},
		"a number":                 {`7`, false},
	}
	got := map[string]bool{}
	want := map[string]bool{}
	for name, tc := range cases {
		server := modeltest.NewServer(modeltest.Script{Models: map[string]modeltest.Dialogue{"m": {Turns: []modeltest.Turn{{Text: "{{.LastUserMessage}}"}}}}})
		recorder := httptest.NewRecorder()
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%s}]}`, tc.content)
		server.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(body)))
		got[name] = recorder.Code == http.StatusOK && strings.Contains(recorder.Body.String(), `"content":"Hi"`)
		want[name] = tc.ok
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
