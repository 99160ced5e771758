package template_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

func TestParsePath(t *testing.T) {
	for expression, want := range map[string]struct{ text, cel string }{
		"input":                          {"input", "input"},
		" input . b [ 3 ] [ \"c d\" ]\n": {`input.b[3]["c d"]`, "input.`b`[3].`c d`"},
		`input["re\u0070o"].my-key`:      {"input.repo.my-key", "input.`repo`.`my-key`"},
		"input.ä":                        {"input.ä", ""},
		`input["\""]`:                    {`input["\""]`, ""},
		"input.2x":                       {"input.2x", "input.`2x`"},
	} {
		p, ok := template.ParsePath(expression)
		source, _ := p.CEL()
		if !ok || p.String() != want.text || source != want.cel {
			t.Errorf("%q is %t, %s, CEL %s; want %s, CEL %s", expression, ok, p, source, want.text, want.cel)
		}
		if again, ok := template.ParsePath(p.String()); !ok || !cmp.Equal(p, again) {
			t.Errorf("%q is written %s, which is %v", expression, p, again)
		}
	}
}

func TestOtherExpressionsAreNoPaths(t *testing.T) {
	for _, expression := range []string{
		"", "inputs.x", "input.", "input.n + 1", "input.n -1", "input.list[-1]", "input.list[99999999999]", "input.list[]", `input["\x"]`, `input["x`,
		"input.list[0", "input['x']", "input.?x", "input.x.size()", "input x", "(input)", "input.`x`", "input // x",
	} {
		if p, ok := template.ParsePath(expression); ok {
			t.Errorf("%q is the path %s", expression, p)
		}
	}
}

func TestValue(t *testing.T) {
	v := template.NewValue(json.RawMessage(` {"a": [1.50, {"b": " x "}], "n": null}`))
	for expression, want := range map[string]string{
		"input.a[0]": "1.50", "input.a[1].b": " x ", "input.a[1]": `{"b":" x "}`, "input.n": "null",
		"input.a[2]": "", "input.a.b": "", "input.x": "", "input.n.x": "", "input[0]": "", "input.a[0].x": "",
	} {
		p, _ := template.ParsePath(expression)
		raw, found := v.At(p)
		if found != (want != "") || found && template.Text(raw) != want {
			t.Errorf("%s is %s, %t; want %s", expression, raw, found, want)
		}
	}
}
