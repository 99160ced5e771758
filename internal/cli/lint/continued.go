package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// checkContinued finds why a Run cannot continue another Run of the files. Most Runs that are continued are not in
// them.
func (l *linter) checkContinued(ctx context.Context, o *object, run *v1alpha1.Run) error {
	source := l.sourceOf(run)
	if source == nil {
		return nil
	}
	chain := l.chainOf(run)
	refused := func(format string, args ...any) error {
		return fmt.Errorf("spec.continueFrom.run: "+format, args...)
	}
	switch {
	case run.Spec.Workflow != "" && source.Spec.Workflow != run.Spec.Workflow:
		return refused("Run %s is no Run of Workflow %s, which can retry its own Runs only: name one of them", source.Name, run.Spec.Workflow)
	case run.Spec.Workflow != "" && !snapshot.SameInput(run.Spec, source.Spec):
		return refused("Run %s has another spec.input: write the same in both", source.Name)
	case run.Spec.Workflow == "" && source.Spec.Workflow != "":
		return refused("Run %s is a Run of Workflow %s, and only Runs of Agents can be continued: name a Run of an Agent", source.Name, source.Spec.Workflow)
	case source.Spec.User != run.Spec.User:
		return refused("Run %s has spec.user %q, and this Run %q: write the same in both", source.Name, source.Spec.User, run.Spec.User)
	case slices.Contains(chain, run.Name):
		return refused("Runs %s continue each other, so that none can begin: continue a Run that has ended", strings.Join(chain, ", "))
	case len(chain) > v1alpha1.MaxContinued:
		return refused("it continues %d Runs, one after the other, and a Run can continue at most %d: create a Run without continueFrom", len(chain), v1alpha1.MaxContinued)
	}
	var agent v1alpha1.Agent
	if source.Spec.Agent == "" || !l.get(ctx, run.Namespace, source.Spec.Agent, &agent) {
		return nil
	}
	switch agent.Spec.Workspace.Durability { //nolint:exhaustive // Volume keeps what is needed
	case v1alpha1.DurabilityPod:
		return refused("Run %s keeps no conversation and no files, because Agent %s has workspace.durability Pod: write Volume there", source.Name, agent.Name)
	case "":
		l.warn(o, fmt.Sprintf("spec.continueFrom.run: Run %s keeps no conversation and no files unless runDefaults.durability of the chart is Volume: write workspace.durability: Volume in Agent %s", source.Name, agent.Name))
	}
	return nil
}

// sourceOf returns the Run of the files that a Run continues; nil: it continues none, or that is not in the files.
func (l *linter) sourceOf(run *v1alpha1.Run) *v1alpha1.Run {
	if run.Spec.ContinueFrom == nil {
		return nil
	}
	o := l.find("Run", run.Namespace, run.Spec.ContinueFrom.Run)
	var source v1alpha1.Run
	if o == nil || o.decoded == nil || o.convert(&source) != nil {
		return nil
	}
	return &source
}

// chainOf returns the names of the Runs that a Run continues, the last first, as far as they are in the files. Each is
// in it once, the Run itself too if it is in a cycle.
func (l *linter) chainOf(run *v1alpha1.Run) []string {
	var names []string
	for at := l.sourceOf(run); at != nil && !slices.Contains(names, at.Name); at = l.sourceOf(at) {
		names = append(names, at.Name)
	}
	return names
}
