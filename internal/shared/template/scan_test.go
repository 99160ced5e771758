package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

func TestScan(t *testing.T) {
	for text, want := range map[string][]template.Part{
		"":                             {{}},
		"a $${{ b }} $${{":             {{Words: "a ${{ b }} ${{"}},
		"é\né ${{ x }} b":              {{Words: "é\né ", Expression: " x ", HasExpression: true, Line: 2, Column: 3}, {Words: " b"}},
		"$${{${{}}":                    {{Words: "${{", HasExpression: true, Line: 1, Column: 5}, {}},
		"${{ {1: {2: 3}}}}":            {{Expression: " {1: {2: 3}}", HasExpression: true, Line: 1, Column: 1}, {}},
		"${{ '}}' + `}}` + r\"\\\" }}": {{Expression: " '}}' + `}}` + r\"\\\" ", HasExpression: true, Line: 1, Column: 1}, {}},
	} {
		got, err := template.Scan(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if _, err := template.Scan("a\n b ${{ '}}"); err == nil || err.Error() != "line 2, column 4: ${{ is not closed by }}; write $${{ where a literal ${{ is meant" {
		t.Errorf("Scan() of an expression that is not closed: %v", err)
	}
}

func TestHasAndCountFindEscapedExpressionsToo(t *testing.T) {
	for text, want := range map[string]int{"": 0, "$ {{ }}": 0, "${{ input.x }}": 1, "$${{ and ${{ input.x }}": 2, "${{": 1} {
		if has, count := template.Has(text), template.Count(text); has != (want > 0) || count != want {
			t.Errorf("%q: Has %t, Count %d, want %d", text, has, count, want)
		}
	}
}

// marks are what texts are made of that look like an expression.
var marks = []string{"${{", "$", "{", "{{", "}}", " ", "input.name", "$${{", "\n", "é", `"`, "${"}

func TestALiteralHasNoExpressions(t *testing.T) {
	for n := range 12 * 12 * 12 * 12 {
		text := marks[n%12] + marks[n/12%12] + marks[n/144%12] + marks[n/1728]
		checkLiteral(t, text)
	}
}

func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{"", "${{ input.name }}", "$${{", "$$${{ input.name }}", "${{${{", "$${$${{{", "{\"name\": \"${{ input.name }}\"}"} {
		f.Add(seed)
	}
	f.Fuzz(checkLiteral)
}

func checkLiteral(t *testing.T, text string) {
	t.Helper()
	parts, err := template.Scan(template.Literal(text))
	if err != nil || len(parts) != 1 || parts[0].HasExpression || parts[0].Words != text {
		t.Fatalf("%q is %q, which is scanned as %v, %v", text, template.Literal(text), parts, err)
	}
}
