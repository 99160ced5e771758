package lint

import (
	"context"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// checkRulesOfInvalid checks the policy of an Agent that the API server refuses for something else, so that
// all errors are in one report. If the error is in its tools, it is unknown what the rules are about.
func (l *linter) checkRulesOfInvalid(ctx context.Context, o *object) {
	if o.kind() != "Agent" || o.decoded == nil || slices.ContainsFunc(o.invalidPaths, isIn("spec.tools")) {
		return
	}
	var a v1alpha1.Agent
	if o.withoutInvalid().convert(&a) != nil {
		return
	}
	_, objects, err := l.withObjects(ctx, &a)
	if err != nil {
		return
	}
	before := slices.Clone(o.invalidPaths)
	for _, problem := range snapshot.PolicyProblems(&a, objects) {
		path, message := o.locate(problem)
		if !slices.ContainsFunc(before, isIn(path)) {
			l.addRefused(o, path, message)
		}
	}
}

// isIn returns a function that reports whether a path is a field or below it.
func isIn(field string) func(path string) bool {
	return func(path string) bool {
		rest, is := strings.CutPrefix(path, field)
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
}

// withoutInvalid returns a copy of an object without the fields of spec that have errors, but for its policy.
func (o *object) withoutInvalid() *object {
	out := &object{document: o.document, content: o.decoded}
	out.decoded = out.copyContent()
	spec, _ := out.decoded["spec"].(map[string]any)
	for name := range spec {
		if name != "policy" && slices.ContainsFunc(o.invalidPaths, isIn("spec."+name)) {
			delete(spec, name)
		}
	}
	return out
}
