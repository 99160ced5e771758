package expr_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/workflow/celkubernetes"
)

// The hint for a name with hyphens, which is read with _, is not given for a
// subtraction.
func TestAHyphenIsMinus(t *testing.T) {
	node := expr.Object("node", map[string]expr.Type{"text": expr.String()})
	env, err := celkubernetes.Language.NewEnv(map[string]expr.Type{"nodes": expr.Object("nodes", map[string]expr.Type{"b": node, "write_unit_tests": node, "a_b": node})})
	if err != nil {
		t.Fatal(err)
	}
	const there = "; nodes has a_b, b, write_unit_tests"
	for text, want := range map[string]string{
		"nodes.a-b.text":                "there is no field a" + there + "; - is minus here: write a_b",
		"nodes.write-unit-tests.text":   "there is no field write" + there + "; - is minus here: write write_unit_tests",
		"nodes.write-unit-tests-1":      "there is no field write" + there + "; - is minus here: write write_unit_tests",
		"nodes.c-b.text":                "there is no field c" + there + "; did you mean b?",
		"size(nodes.b.text) - nodes.bb": "there is no field bb" + there + "; did you mean b?",
	} {
		if _, err := env.Compile(text, expr.Dyn()); err == nil || err.Message != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
