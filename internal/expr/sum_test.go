package expr_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/expr"
)

func TestSum(t *testing.T) {
	env, err := expr.NewEnv(map[string]expr.Type{"any": expr.Dyn(), "marks": expr.List(expr.Int())})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"any": []any{1.5, 2.5}, "marks": []int{1, 2, 3}}
	for text, want := range map[string]string{
		"marks.sum()":                               "6",
		"[].sum()":                                  "0",
		"[0.5, 1.0].sum()":                          "1.5",
		"marks.filter(m, m > 1).sum() * 2":          "10",
		"any.sum()":                                 "4",
		"[9223372036854775807, 1].sum()":            "overflow",
		`dyn(["a", "b"]).sum()`:                     "another type",
		"double(marks.sum()) / double(size(marks))": "2",
	} {
		p, e := env.Compile(text, expr.Dyn())
		if e != nil {
			t.Errorf("%s: %v", text, e)
			continue
		}
		got, err := p.Eval(values)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), want) || err == nil && string(got) != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if _, e := env.Compile(`["a"].sum()`, expr.Dyn()); e == nil {
		t.Error("texts are added up")
	}
}
