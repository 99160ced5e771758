package request

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestCheck(t *testing.T) {
	with := func(change func(*task.Toolset)) task.Toolset {
		ts := one(task.RequestTool{Method: "GET", Path: "/a"})
		change(&ts)
		return ts
	}
	tooled := func(change func(*task.RequestTool)) task.Toolset {
		return with(func(ts *task.Toolset) { change(&ts.Requests.Tools[0]) })
	}
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	cases := map[string]struct {
		ts   task.Toolset
		want string
	}{
		"all in order":             {with(func(*task.Toolset) {}), ""},
		"no requests":              {with(func(ts *task.Toolset) { ts.Requests = nil }), "requests: is missing"},
		"no URL":                   {with(func(ts *task.Toolset) { ts.Requests.BaseURL = "api.test" }), `requests.baseURL: "api.test" must be an http or https URL: write https://host/path`},
		"a URL with a query":       {with(func(ts *task.Toolset) { ts.Requests.BaseURL = "http://api.test/?a=b" }), "requests.baseURL: has a query"},
		"a URL with a password":    {with(func(ts *task.Toolset) { ts.Requests.BaseURL = "http://u:p@api.test/" }), "put them into a Secret"},
		"metadata":                 {with(func(ts *task.Toolset) { ts.Requests.BaseURL = "http://169.254.169.254/" }), "may not be reached"},
		"the machine itself":       {with(func(ts *task.Toolset) { ts.Requests.BaseURL = "http://[::1]:8080/" }), "may not be reached"},
		"a header of the runner":   {with(func(ts *task.Toolset) { ts.Requests.Headers = map[string]string{"host": "a"} }), "requests.headers[host]: is set by the runner itself; remove it"},
		"a header with a line end": {with(func(ts *task.Toolset) { ts.Requests.Headers = map[string]string{"X-A": "a\nb"} }), "requests.headers[X-A]: has a line end"},
		"a header without a name":  {with(func(ts *task.Toolset) { ts.Requests.Headers = map[string]string{"": "a"} }), "is no name of a header"},
		"credentials in a header of the runner": {with(func(ts *task.Toolset) {
			ts.Requests.Auth = &task.Auth{Type: task.AuthHeader, Header: "Host"}
		}), "requests.auth.header.name: is set by the runner itself"},
		"tokens of the machine itself": {with(func(ts *task.Toolset) {
			ts.Requests.Auth = &task.Auth{Type: task.AuthOAuth, TokenURL: "http://169.254.169.254/token"}
		}), "requests.auth.oauthClientCredentials.tokenURL: the address 169.254.169.254 may not be reached"},
		"two tools of a name":           {with(func(ts *task.Toolset) { ts.Requests.Tools = append(ts.Requests.Tools, ts.Requests.Tools[0]) }), `requests.tools[1].name: is "do", and so is another`},
		"another method":                {tooled(func(r *task.RequestTool) { r.Method = "TRACE" }), `requests.tools[0].method: is "TRACE"; write GET,`},
		"a schema that is none":         {tooled(func(r *task.RequestTool) { r.Input = json.RawMessage(`{"type":"string"}`) }), "requests.tools[0].input: type must be object"},
		"an unknown value":              {tooled(func(r *task.RequestTool) { r.Path = "/${{ input.z }}" }), "requests.tools[0].path: column 12: there is no field z; input has list, n, o, x, y; did you mean n?"},
		"a value that may not be given": {tooled(func(r *task.RequestTool) { r.Path = "/${{ input.y }}" }), "requests.tools[0].path: column 6: input.y may be absent: write input.?y.orValue(''), or list it in required of input"},
		"one inside of a text":          {tooled(func(r *task.RequestTool) { r.Query = map[string]string{"q": "a ${{ input.y }}"} }), "requests.tools[0].query.q: column 7: input.y may be absent: write input.?y.orValue(''), or list it in required of input, or let the text be ${{ }} alone, which is then left out"},
		"an open place":                 {tooled(func(r *task.RequestTool) { r.Path = "/${{ input.x" }), "requests.tools[0].path: column 2: ${{ is not closed by }}"},
		"another place":                 {tooled(func(r *task.RequestTool) { r.Query = map[string]string{"q": "${{ env.HOME }}"} }), "there is no env; an expression here reads input; strings need quotes, as in 'env'; write $${{ where a literal ${{ is meant"},
		"a place in a name":             {tooled(func(r *task.RequestTool) { r.Query = map[string]string{"${{ input.x }}": "a"} }), "has ${{ in its name; only values are bound"},
		"a query in a path":             {tooled(func(r *task.RequestTool) { r.Path = "/a?b=${{ input.x }}" }), "requests.tools[0].path: has ? or #; write parameters in query"},
		"a path that leads up":          {tooled(func(r *task.RequestTool) { r.Path = "/a/%2e%2E/b" }), `leads elsewhere`},
		"a reference of another tool":   {tooled(func(r *task.RequestTool) { r.Path = "/a/{{ input.x }}" }), "requests.tools[0].path: {{ input.x }} is no reference to the input; write ${{ input.x }}"},
		"a path with a space":           {tooled(func(r *task.RequestTool) { r.Path = "/a b" }), "write it percent-encoded"},
		"a path that is none":           {tooled(func(r *task.RequestTool) { r.Path = "a" }), "must begin with /"},
		"a body that is not sent":       {tooled(func(r *task.RequestTool) { r.Body = json.RawMessage(`{}`) }), "requests.tools[0].body: is not sent with GET"},
		"a value deep in a body": {tooled(func(r *task.RequestTool) {
			r.Method, r.Body = "POST", json.RawMessage(`{"a":[{"b":"${{ input.z }}"}]}`)
		}), "requests.tools[0].body.a[0].b: column 11: there is no field z"},
		"a member with a place":   {tooled(func(r *task.RequestTool) { r.Method, r.Body = "POST", json.RawMessage(`{"${{ input.x }}":1}`) }), "in the name of a member"},
		"a body that is too deep": {tooled(func(r *task.RequestTool) { r.Method, r.Body = "POST", json.RawMessage(deep) }), "is nested deeper than 32"},
		"a body that is no JSON":  {tooled(func(r *task.RequestTool) { r.Method, r.Body = "POST", json.RawMessage(`{`) }), "is no JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Check(tc.ts)
			if tc.want == "" {
				if err != nil {
					t.Errorf("Check() = %v", err)
				}
				return
			}
			var told *InvalidError
			if !errors.As(err, &told) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Check() = %v\nwant %s", err, tc.want)
			}
		})
	}
}
