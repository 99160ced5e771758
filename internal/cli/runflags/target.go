package runflags

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
)

// RunOfTarget returns a Run of the target that a command line names: AGENT, agent/NAME or workflow/NAME.
func RunOfTarget(target string) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{Spec: v1alpha1.RunSpec{Agent: target}}
	switch kind, name := CutKind(target); {
	case kind == "workflow":
		run.Spec = v1alpha1.RunSpec{Workflow: name}
	case kind == "agent":
		run.Spec = v1alpha1.RunSpec{Agent: name}
	case slices.Contains(lint.ManifestExtensions, filepath.Ext(target)):
		return nil, exit.Usagef("%s is a file: write -f %s", target, target)
	case kind != "":
		return nil, exit.Usagef("%q: write AGENT or workflow/NAME", target)
	}
	run.GenerateName = GeneratedName(run)
	return run, nil
}

// CutKind returns the kind, in lower case, and the name of an object as this program and kubectl print it:
// run/NAME, runs/NAME, run.deckhand.dev/NAME or runs.deckhand.dev/NAME. A text without a kind is a name. The
// kind is as it is written if it is none of ours.
func CutKind(text string) (kind, name string) {
	word, name, found := strings.Cut(text, "/")
	if !found {
		return "", text
	}
	kind = strings.TrimSuffix(strings.ToLower(word), "."+v1alpha1.GroupVersion.Group)
	for _, lower := range []string{"agent", "decision", "model", "run", "schedule", "toolset", "workflow"} {
		if kind == lower || kind == lower+"s" {
			return lower, name
		}
	}
	return word, name
}

// GeneratedName returns the prefix of a generated name. A dot is allowed in the name of an Agent, but not in the name
// of a Run.
func GeneratedName(run *v1alpha1.Run) string {
	const longest = 40
	name := strings.ReplaceAll(run.Spec.Agent+run.Spec.Workflow, ".", "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-") + "-"
}
