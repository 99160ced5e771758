package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

func TestSetArgs(t *testing.T) {
	cases := map[string]struct {
		args string
		set  map[string]string
		want string
	}{
		"what is there already stays as it is written": {`{ "path": "\u002fa", "x":1}`, map[string]string{"path": "/a"}, `{ "path": "\u002fa", "x":1}`},
		"another value":                      {`{"path":"a","limit":1e3}`, map[string]string{"path": "/w/a"}, `{"limit":1e3,"path":"/w/a"}`},
		"a value that is not there":          {`{}`, map[string]string{"path": "/w"}, `{"path":"/w"}`},
		"a value of another type":            {`{"path":null}`, map[string]string{"path": ""}, `{"path":""}`},
		"a name twice":                       {`{"path":"/w/a","path":"b","x":[1, 2]}`, map[string]string{"path": "/w/b"}, `{"path":"/w/b","x":[1, 2]}`},
		"characters of HTML are not escaped": {`{"path":"a"}`, map[string]string{"path": "<a&b>\n"}, `{"path":"<a&b>\n"}`},
		"no object":                          {`"text"`, map[string]string{"path": "/w"}, `"text"`},
		"nothing":                            {`null`, map[string]string{"path": "/w"}, `{"path":"/w"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tool.SetArgs(json.RawMessage(tc.args), tc.set); string(got) != tc.want {
				t.Errorf("SetArgs() = %s, want %s", got, tc.want)
			}
		})
	}
}

// lower is a tool whose argument may be written in any case.
func lower() tool.Tool {
	type in struct {
		Name string `json:"name"`
	}
	made := tool.Typed(tool.Spec{Name: "lower"}, func(context.Context, tool.Call, in) (tool.Result, error) {
		return tool.Result{}, nil
	})
	made.Canonicalize = func(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
		var given in
		if err := json.Unmarshal(args, &given); err != nil || given.Name == "" {
			return nil, &tool.Error{Message: "The name is empty: give one."}
		}
		return tool.SetArgs(args, map[string]string{"name": strings.ToLower(given.Name)}), nil
	}
	return made
}

func TestCanonicalArgs(t *testing.T) {
	tooltest.Canonical(t, lower(), `{"name":"a"}`, `{"name":"Ab"}`, `{"name":""}`)
	got, refused := lower().CanonicalArgs(t.Context(), json.RawMessage(`{"name":"Ab"}`))
	if refused != nil || string(got) != `{"name":"ab"}` {
		t.Errorf("CanonicalArgs() = %s, %v", got, refused)
	}
	if _, refused := lower().CanonicalArgs(t.Context(), json.RawMessage(`{"name":""}`)); refused == nil {
		t.Error("CanonicalArgs() accepts what the tool refuses")
	}
}
