package celkubernetes

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

// A function that only Workflows have is not a spelling mistake elsewhere.
func TestOtherExpressionsSayWhereTheFunctionsAre(t *testing.T) {
	env, err := cel.NewCustomEnv(libraries()...)
	if err != nil {
		t.Fatal(err)
	}
	here, err := Language.NewEnv(nil)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := expr.CEL.NewEnv(nil)
	if err != nil {
		t.Fatal(err)
	}
	const unknown = "there is no function "
	for name := range env.Functions() {
		text := name + "()"
		if _, err := here.Compile(text, expr.Dyn()); err == nil || strings.HasPrefix(err.Message, unknown) {
			t.Errorf("%s: %v", text, err)
		}
		_, err := elsewhere.Compile(text, expr.Dyn())
		if err != nil && strings.HasPrefix(err.Message, unknown) && !strings.Contains(err.Message, "it is a function of Kubernetes, which only Workflows have") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
