package tooltest

import (
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Canonical tests a tool against [tool.CanonicalFunc]. For each of the arguments, which must match the tool's schema,
// the canonical form matches the schema and is its own canonical form, byte for byte, and computing it does not change
// the arguments. Arguments that are refused must be refused each time.
func Canonical(t *testing.T, made tool.Tool, all ...string) {
	t.Helper()
	if made.Canonicalize == nil {
		t.Fatalf("%s has no Canonicalize", made.Name)
	}
	known, err := toolbox.New(made)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range all {
		canonical(t, known, made, args)
	}
}

func canonical(t *testing.T, known *toolbox.Toolbox, made tool.Tool, args string) {
	t.Helper()
	name := made.Name
	if wrong := known.Check(name, json.RawMessage(args)); wrong != nil {
		t.Fatalf("%s %s: the arguments do not fit the schema: %s", name, args, wrong.Message)
	}
	given := json.RawMessage(args)
	once, refused := made.CanonicalArgs(t.Context(), given)
	if string(given) != args {
		t.Errorf("%s %s: Canonical changed the arguments that it was given to %s", name, args, given)
	}
	if refused != nil {
		if _, again := made.CanonicalArgs(t.Context(), given); again == nil {
			t.Errorf("%s %s: Canonical refused the arguments once and accepted them then", name, args)
		}
		return
	}
	if wrong := known.Check(name, once); wrong != nil {
		t.Errorf("%s %s: the canonical form %s does not fit the schema: %s", name, args, once, wrong.Message)
	}
	twice, refused := made.CanonicalArgs(t.Context(), once)
	switch {
	case refused != nil:
		t.Errorf("%s %s: the canonical form %s is refused: %s", name, args, once, refused.Message)
	case string(twice) != string(once):
		t.Errorf("%s %s: the canonical form %s has another canonical form, %s", name, args, once, twice)
	}
}
