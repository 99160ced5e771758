package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

func TestTemplate(t *testing.T) {
	env := newEnv(t)
	for name, tt := range map[string]struct{ text, want string }{
		"no expression":                     {"just words }} $ {{", "just words }} $ {{"},
		"nothing":                           {"", ""},
		"a value among words":               {"Run ${{ run.name }}, please", "Run r-1, please"},
		"values side by side":               {"${{run.name}}${{ run.name }}", "r-1r-1"},
		"text is put in as it is":           {"<${{ input.goal }}>", `<ship ${{ it }} "now">`},
		"a number":                          {"${{ input.depth }}", "9007199254740993"},
		"an object, as JSON":                {`${{ {"b": 1, "a": [true, null]} }}`, `{"a":[true,null],"b":1}`},
		"braces of objects in objects":      {`${{ {"a": {"b": {"c": 1}}}}}!`, `{"a":{"b":{"c":1}}}!`},
		"braces within text":                {`${{ "}}" + '}}' + r"\}}" }}`, `}}}}\}}`},
		"quotes within text":                {`${{ "a\"}}" + 'b\'}}' }}`, `a"}}b'}}`},
		"three quotes":                      {"${{ \"\"\"}} \" }}\"\"\" + '''}}'''}}", `}} " }}}}`},
		"raw text that ends in a backslash": {`${{ r"\" }}`, `\`},
		"a name that ends in r":             {`${{ "x" + [1].map(bar, "}}")[0] }}`, "x}}"},
		"a name in backticks":               {"${{ nodes.sure.output.?author.?`mail-address`.orValue('') }}", "a@b"},
		"a comment with a quote":            {"${{ run.name // it's }} is", "r-1 is"},
		"lines":                             {"a\n${{\n  run.name\n}}\nb", "a\nr-1\nb"},
		"a literal":                         {"$${{ run.name }} is ${{ run.name }}", "${{ run.name }} is r-1"},
		"a literal after dollars":           {"$$${{ x }}", "$${{ x }}"},
		"what is absent, replaced":          {"${{ nodes.maybe.?text.orValue('none') }}", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			template, e := env.Template(tt.text)
			if e != nil {
				t.Fatal(e)
			}
			got, err := template.Text(values(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTemplateRefused(t *testing.T) {
	env := newEnv(t)
	for name, tt := range map[string]struct {
		text, want   string
		line, column int
	}{
		"not closed":                        {"é ${{ run.name", "${{ is not closed by }}; write $${{ where a literal ${{ is meant", 1, 3},
		"closed within text only":           {`${{ "}}`, "is not closed", 1, 1},
		"empty":                             {"a ${{ }}", "the expression is empty; write one, for example true", 1, 6},
		"a field that is not there":         {"é\né ${{ nodes.sure.outputs }}", "did you mean output?", 2, 18},
		"on the second line of its own":     {"x ${{ 1 +\n nope }}", "there is no nope", 2, 2},
		"what may be absent":                {"x ${{ nodes.maybe.text }}", `write nodes.maybe.?text.orValue('')`, 1, 7},
		"too many":                          {manyPlaces(expr.MaxTemplateExpressions + 1), "a text has at most 256 expressions", 1, 256*9 + 4},
		"an input that is not declared":     {"${{ input.x }}", "there is no field x; input has any", 1, 11},
		"a second one that is not closed":   {"${{ 1 }} ${{ 2 }", "is not closed", 1, 10},
		"what is wrong in the second of it": {"${{ 1 }} ${{ x }}", "there is no x", 1, 14},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := env.Template(tt.text)
			if err == nil {
				t.Fatal("it is taken")
			}
			if !strings.Contains(err.Message, tt.want) || err.Line != tt.line || err.Column != tt.column {
				t.Errorf("got %d:%d: %s\nwant %d:%d: %s", err.Line, err.Column, err.Message, tt.line, tt.column, tt.want)
			}
		})
	}
}

func manyPlaces(n int) string { return strings.Repeat("${{ 1 }} ", n) }

func TestTemplateHasAsManyPlacesAsItMay(t *testing.T) {
	template, e := newEnv(t).Template(manyPlaces(expr.MaxTemplateExpressions) + "end")
	if e != nil {
		t.Fatal(e)
	}
	if got, err := template.Text(values(), 10_000); err != nil || got != strings.Repeat("1 ", expr.MaxTemplateExpressions)+"end" {
		t.Error(got, err)
	}
}

func TestTemplateFails(t *testing.T) {
	template, e := newEnv(t).Template("a\nb ${{ item.nope }}")
	if e != nil {
		t.Fatal(e)
	}
	_, err := template.Text(values(), 1000)
	var wrong *expr.Error
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	want := &expr.Error{Expression: "item.nope", Line: 2, Column: 7, Message: "there is no field nope"}
	if diff := cmp.Diff(want, wrong); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextThatIsTooLong(t *testing.T) {
	env := newEnv(t)
	for name, tt := range map[string]struct {
		text  string
		limit int
		want  *expr.TooLongError
	}{
		"it fits exactly":            {"12345${{ run.name }}67", 10, nil},
		"by a byte":                  {"12345${{ run.name }}67", 9, &expr.TooLongError{Expression: "run.name", Bytes: 3, Limit: 9}},
		"the longest is named":       {"${{ run.name }}${{ nodes.sure.output.tags }}${{ 1 }}", 8, &expr.TooLongError{Expression: "nodes.sure.output.tags", Bytes: 9, Limit: 8}},
		"one value many times":       {"${{ run.name }}${{ run.name }}${{ run.name }}", 8, &expr.TooLongError{Expression: "run.name", Bytes: 3, Limit: 8}},
		"words alone":                {"12345", 4, &expr.TooLongError{Bytes: 5, Limit: 4}},
		"words, whatever the values": {"12345${{ run.name }}", 4, &expr.TooLongError{Bytes: 5, Limit: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			template, e := env.Template(tt.text)
			if e != nil {
				t.Fatal(e)
			}
			_, err := template.Text(values(), tt.limit)
			var tooLong *expr.TooLongError
			errors.As(err, &tooLong)
			if diff := cmp.Diff(tt.want, tooLong); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodesAndSelects(t *testing.T) {
	env := newEnv(t)
	for name, tt := range map[string]struct {
		text    string
		nodes   []string
		selects bool // nodes.gate.output.approved
	}{
		"none":                        {`input.goal + item.nodes`, nil, false},
		"each once, in order":         {`nodes.sure.state + nodes.?maybe.?text.orValue(nodes.gate.state) + nodes.sure.state`, []string{"gate", "maybe", "sure"}, false},
		"in a loop":                   {`[1].map(x, nodes.sure.output.score + x)`, []string{"sure"}, false},
		"the range of a loop":         {`nodes.items.output.map(r, r.hasValue())`, []string{"items"}, false},
		"a loop's own nodes":          {`[{"gate": 1}].map(nodes, nodes.gate)`, nil, false},
		"in has":                      {`has(nodes.gate.output)`, []string{"gate"}, false},
		"approved":                    {`nodes.gate.?output.approved.orValue(false)`, []string{"gate"}, true},
		"approved, with marks":        {`nodes.?gate.?output.?approved.orValue(false)`, []string{"gate"}, true},
		"approved, in has":            {`has(nodes.gate.?output.approved)`, []string{"gate"}, true},
		"approved, of value()":        {`nodes.gate.?output.value().approved`, []string{"gate"}, true},
		"approved, within optMap":     {`nodes.gate.?output.optMap(o, !o.approved).orValue(true)`, []string{"gate"}, true},
		"approved, of another":        {`nodes.gate.?output.?by.orValue("approved")`, []string{"gate"}, false},
		"the whole that it is within": {`{"output": nodes.gate.?output}`, []string{"gate"}, false},
		"what stands in its place":    {`nodes.maybe.?text.orValue(nodes.gate.?output.?approved.orValue(true) ? "a" : "b")`, []string{"gate", "maybe"}, true},
		"an index":                    {`nodes.sure.output.tags[nodes.gate.?output.?approved.orValue(true) ? 0 : 1]`, []string{"gate", "sure"}, true},
		"as a key":                    {`{nodes.sure.state: 1}`, []string{"sure"}, false},
		"a part of the approved":      {`nodes.gate.?output.?input.?x.orValue(1)`, []string{"gate"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, e := env.Compile(tt.text, expr.Dyn())
			if e != nil {
				t.Fatal(e)
			}
			template, e := env.Template("x ${{ " + tt.text + " }} y ${{ 1 }}")
			if e != nil {
				t.Fatal(e)
			}
			if diff := cmp.Diff([][]string{tt.nodes, tt.nodes}, [][]string{p.Nodes(), template.Nodes()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			approved := []string{"nodes", "gate", "output", "approved"}
			if p.Selects(approved...) != tt.selects || template.Selects(approved...) != tt.selects {
				t.Error(p.Selects(approved...), template.Selects(approved...))
			}
		})
	}
}
