package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// get is a GET of a path with one parameter.
func get(path, q string) task.RequestTool {
	t := task.RequestTool{Method: "GET", Path: path}
	if q != "" {
		t.Query = map[string]string{"q": q}
	}
	return t
}

// post is a POST with a body.
func post(body string) task.RequestTool {
	return task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(body)}
}

func TestWhereValuesOfExpressionsGo(t *testing.T) {
	for name, tc := range map[string]struct {
		tool             task.RequestTool
		args, line, body string
	}{
		"a word in lower case":             {get("/a/${{ input.x.lowerAscii() }}", ""), `{"x":"ABC"}`, "GET /v1/a/abc", ""},
		"a path that stays one segment":    {get("/a/${{ input.x + '/?#' + input.x + 'b' }}", ""), `{"x":"c..d"}`, "GET /v1/a/c..d%2F%3F%23c..db", ""},
		"a slash in an expression":         {get("/a/${{ input.x.split('/')[1] }}/b", ""), `{"x":"c/d"}`, "GET /v1/a/d/b", ""},
		"a line end":                       {get("/a/${{ input.x + '\\r\\nHost: evil' }}", "${{ '\\r\\nb: ' + input.x }}"), `{"x":"b"}`, "GET /v1/a/b%0D%0AHost:%20evil?q=%0D%0Ab%3A+b", ""},
		"a number in a path":               {get("/a/${{ input.?n.orValue(0) + 1 }}", ""), `{"x":"","n":41}`, "GET /v1/a/42", ""},
		"a joined list":                    {get("/a", "${{ input.?list.orValue([]).join(',') }}"), `{"x":"","list":["a&c=d","b"]}`, "GET /v1/a?q=a%26c%3Dd%2Cb", ""},
		"a list that is computed":          {get("/a", "${{ input.?list.orValue([]).map(l, 'is:' + l) }}"), `{"x":"","list":["a","b"]}`, "GET /v1/a?q=is%3Aa&q=is%3Ab", ""},
		"a value that is absent":           {get("/a", "${{ input.?y }}"), `{"x":""}`, "GET /v1/a", ""},
		"one that is there":                {get("/a", "${{ input.?y }}"), `{"x":"","y":""}`, "GET /v1/a?q=", ""},
		"one that is made of it":           {get("/a", "${{ input.?y.optMap(y, y.upperAscii()) }}"), `{"x":"","y":"b"}`, "GET /v1/a?q=B", ""},
		"one that is made of nothing":      {get("/a", "${{ input.?y.optMap(y, y.upperAscii()) }}"), `{"x":""}`, "GET /v1/a", ""},
		"null":                             {get("/a", "${{ null }}"), `{"x":""}`, "GET /v1/a", ""},
		"a default":                        {get("/a", "by ${{ input.?y.orValue('none') }}"), `{"x":""}`, "GET /v1/a?q=by+none", ""},
		"members with their types":         {post(`{"n":"${{ input.?n.orValue(1) + 1 }}","l":"${{ [input.x] }}","o":"${{ {'a': input.x == ''} }}","t":"-${{ 1.5 }}"}`), `{"x":"\"},{"}`, "POST /v1/a", `{"n":2,"l":["\"},{"],"o":{"a":false},"t":"-1.5"}`},
		"members and items that are not":   {post(`{"a":"${{ input.?y }}","l":["${{ input.?y }}","${{ input.x }}"],"o":{"p":"${{ input.?o.?p }}"}}`), `{"x":"b"}`, "POST /v1/a", `{"l":["b"],"o":{}}`},
		"a body that is absent":            {post(`"${{ input.?o }}"`), `{"x":""}`, "POST /v1/a", ""},
		"a body that is computed":          {post(`"${{ {'title': input.x, ?'p': input.?o.?p} }}"`), `{"x":"<b>"}`, "POST /v1/a", `{"title":"<b>"}`},
		"a null in a body":                 {post(`{"a":"${{ null }}"}`), `{"x":""}`, "POST /v1/a", `{"a":null}`},
		"what looks like an expression":    {post(`{"a":"${{ input.x + ' }' + '}' }}"}`), `{"x":"${{ input.y"}`, "POST /v1/a", `{"a":"${{ input.y }}"}`},
		"an expression of more than lines": {post(`{"a":"${{ input.x ==\n 'b' ? 1 : 2 }}"}`), `{"x":"b"}`, "POST /v1/a", `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(one(tc.tool)); err != nil {
				t.Errorf("Check() = %v", err)
			}
			result, got := send(t, one(tc.tool), tc.args)
			if got == nil {
				t.Fatalf("nothing was sent: %s", result.Render())
			}
			if diff := cmp.Diff([]string{tc.line, tc.body}, []string{got.line, got.body}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What an expression gives leads nowhere else either, and the model reads why.
func TestExpressionsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		tool       task.RequestTool
		args, want string
	}{
		"two dots":         {get("/a/${{ input.x.replace('x', '.') }}/b", ""), `{"x":"xx"}`, `the path would have ".." in it, which leads elsewhere than meant; give another input.x.replace('x', '.')`},
		"two dots within":  {get("/a/${{ 'b/' + input.x + './c' }}", ""), `{"x":"."}`, `the path would have "b/../c" in it`},
		"nothing":          {get("/a/${{ input.x.trim() }}", ""), `{"x":" "}`, `the path would have "" in it`},
		"a list in a path": {get("/a/${{ input.x.split(',') }}", ""), `{"x":"a,b"}`, "The request was not sent: input.x.split(',') must be a string, a number or a boolean here"},
		"null in a path":   {get("/a/${{ null }}", ""), `{"x":"a"}`, "The request was not sent: null must be a string, a number or a boolean here"},
		"an item past the end": {
			get("/a", "${{ input.x.split(',')[1] }}"), `{"x":"a"}`, `The request was not sent: column 5 of "input.x.split(',')[1]": the list has no item 1`,
		},
		"too much work": {
			post(`{"a":"${{ lists.range(900).all(a, lists.range(900).all(b, lists.range(900).all(c, input.x == ''))) }}"}`), `{"x":""}`, "it does more than an expression may",
		},
		"a text that is too long": {post(`{"a":"-` + strings.Repeat("${{ input.x.trim() }}", 40) + `"}`), `{"x":"` + strings.Repeat("y", 60<<10) + `"}`, "the text has more than 1048576 bytes"},
		"a fault that nobody checked": {
			get("/a", "${{ input.z.trim() }}"), `{"x":"a"}`, "The request was not sent: there is no field z; input has list, n, o, x, y",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, got := send(t, one(tc.tool), tc.args)
			if got != nil {
				t.Errorf("%s was sent", got.line)
			}
			if result.Error == nil || !strings.Contains(result.Render(), tc.want) {
				t.Errorf("the model reads %s\nwant %s", result.Render(), tc.want)
			}
		})
	}
}

func TestCheckCompilesExpressions(t *testing.T) {
	for name, tc := range map[string]struct {
		tool task.RequestTool
		want string
	}{
		"a path":                    {get("/a/b/${{ input.x.lowercase() }}", ""), "requests.tools[0].path: column 27: there is no function lowercase"},
		"a parameter":               {get("/a", "${{ input.z.trim() }}"), "requests.tools[0].query.q: column 11: there is no field z; input has list, n, o, x, y"},
		"a member of a body":        {post(`{"a":{"b":["${{ input.x + 1 }}"]}}`), "requests.tools[0].body.a.b[0]: column 5: + does not go between a string and an int"},
		"an absent value in a text": {get("/a", "a${{ input.y.trim() }}"), "requests.tools[0].query.q: column 6: input.y may be absent: write input.?y.orValue(''), or list it in required of input, or let the text be ${{ }} alone"},
		"one in a path":             {get("/a/${{ input.?y }}", ""), "requests.tools[0].path: column 8: input.y may be absent: write input.?y.orValue(''), or list it in required of input"},
		"a slash in an expression":  {get("/a/${{ input.x.split('/').size( }}/b", ""), "requests.tools[0].path: column 33: mismatched input the end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, is := errors.AsType[*InvalidError](Check(one(tc.tool)))
			if err := Check(one(tc.tool)); !is || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Check() = %v\nwant %s", err, tc.want)
			}
		})
	}
}

// The operator compiles all expressions of a Toolset each time it changes.
func TestTheExpressionsOfAToolsetAreBounded(t *testing.T) {
	bodyOf := func(n int, expression string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf("%q", "${{ "+expression+" }}")
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	twice := func(body string) task.Toolset {
		ts := one(post(body))
		second := ts.Requests.Tools[0]
		second.Name = "other"
		ts.Requests.Tools = append(ts.Requests.Tools, second)
		return ts
	}
	if err := Check(twice(bodyOf(128, "input.x + ''"))); err != nil {
		t.Errorf("256 expressions: %v", err)
	}
	if err := Check(twice(bodyOf(1000, "input.x"))); err != nil {
		t.Errorf("2000 paths: %v", err)
	}
	const want = "requests.tools[1].body[127]: is one expression too many; a Toolset has at most 256 besides paths such as ${{ input.x }}"
	if err := Check(twice(strings.Replace(bodyOf(128, "input.x + ''"), "[", `["${{ 1 + 1 }}",`, 1))); err == nil || !strings.HasPrefix(err.Error(), want[:40]) {
		t.Errorf("258 expressions: %v, want %s", err, want)
	}
}

// Making the tools compiles nothing: a runner that starts does not wait for it.
func TestNewCompilesNothing(t *testing.T) {
	if _, err := New(one(get("/a", "${{ input.z.trim() }}")), Options{}); err != nil {
		t.Errorf("New() = %v", err)
	}
}
