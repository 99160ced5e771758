package template

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplates(t *testing.T) {
	cases := map[string]struct {
		text, input, want string
		alone             bool
		paths             []string
	}{
		"words":                  {"a b", `{}`, "a b", false, nil},
		"one value alone":        {"${{ input.a }}", `{"a":"x"}`, `<"x">`, true, []string{"input.a"}},
		"a value among words":    {"a ${{ input.a }}", `{"a":[1, 2]}`, "a <[1, 2]>", false, []string{"input.a"}},
		"two values":             {"${{ input.a }}${{ input.b.c }}", `{"a":1,"b":{"c":null}}`, "<1><null>", false, []string{"input.a", "input.b.c"}},
		"a literal":              {"$${{ input.a }}", `{}`, "${{ input.a }}", false, nil},
		"a value with a place":   {"${{ input.a }}", `{"a":"${{ input.b }}"}`, `<"${{ input.b }}">`, true, []string{"input.a"}},
		"an input that is empty": {"a", ``, "a", false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, p := range tmpl.Paths() {
				paths = append(paths, p.String())
			}
			if diff := cmp.Diff(tc.paths, paths); diff != "" || tmpl.Alone() != tc.alone {
				t.Errorf("alone %v, paths -want +got:\n%s", tmpl.Alone(), diff)
			}
			in, err := NewInput(json.RawMessage(tc.input))
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Bind(in, func(v json.RawMessage) (string, error) { return "<" + string(v) + ">", nil })
			if err != nil || got != tc.want {
				t.Errorf("Bind() = %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestTemplatesRefuse(t *testing.T) {
	if _, err := Parse("${{ env.a }}"); err == nil {
		t.Error("Parse() of another root says nothing")
	}
	if _, err := NewInput(json.RawMessage(`{`)); err == nil {
		t.Error("NewInput() of what is no JSON says nothing")
	}
	tmpl, err := Parse("a ${{ input.a }}")
	if err != nil {
		t.Fatal(err)
	}
	in, _ := NewInput(json.RawMessage(`{"a":"x"}`))
	_, err = tmpl.Bind(in, func(json.RawMessage) (string, error) { return "", errors.New("must be a number here") })
	if want := "column 3: input.a must be a number here"; err == nil || err.Error() != want {
		t.Errorf("Bind() = %v, want %s", err, want)
	}
	_, err = tmpl.Bind(in, func(json.RawMessage) (string, error) { return strings.Repeat("x", MaxText), nil })
	if err == nil {
		t.Error("Bind() of too much says nothing")
	}
	none, _ := NewInput(nil)
	if _, err := tmpl.Bind(none, nil); err == nil {
		t.Error("Bind() without the value says nothing")
	}
	if _, ok := none.Value(tmpl.Paths()[0]); ok {
		t.Error("Value() of what is not there is something")
	}
	if v, ok := in.Value(tmpl.Paths()[0]); !ok || string(v) != `"x"` {
		t.Errorf("Value() = %s, %v", v, ok)
	}
}

func TestCertain(t *testing.T) {
	schema := json.RawMessage(`{"required":["a","l"],"properties":{"a":{"required":["b"],"properties":{"b":{},"c":{}}},"d":{},"l":{"items":{}}}}`)
	for path, want := range map[string]bool{
		"input.a": true, "input.a.b": true, "input.a.c": false, "input.d": false, "input.d.b": false, "input.l[0]": false, "input": true, "input.a.b.x": false,
	} {
		tmpl, err := Parse("${{ " + path + " }}")
		if err != nil {
			t.Fatal(err)
		}
		if got := tmpl.Paths()[0].Certain(schema); got != want {
			t.Errorf("%s is certain: %v", path, got)
		}
	}
}
