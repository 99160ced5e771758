package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// stateGroups are the values of --state in addition to the reasons, with the status of Succeeded for each.
var stateGroups = map[string]string{"active": "Unknown", "succeeded": "True", "failed": "False"}

// runFacts are the facts by which list selects Runs.
type runFacts struct {
	isChild                   bool
	target, reason, succeeded string
}

func factsOfRow(r runRow) runFacts {
	facts := runFacts{isChild(&r.Object.Metadata), r.cell("Target"), cmp.Or(r.cell("Reason"), v1alpha1.ReasonPending), cmp.Or(r.cell("Succeeded"), "Unknown")}
	if r.cell("Target-Kind") == string(v1alpha1.TargetWorkflow) {
		facts.target = "workflow/" + facts.target
	}
	return facts
}

func factsOfRun(run *v1alpha1.Run) runFacts {
	facts := runFacts{isChild(run), target(run), reason(run), "Unknown"}
	if succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded); succeeded != nil {
		facts.succeeded = string(succeeded.Status)
	}
	return facts
}

// isChild reports whether another Run created this one. Users choose labels, so these do not count.
func isChild(run metav1.Object) bool {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.Kind != "Run" {
		return false
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion) // other kinds are called Run too
	return err == nil && version.Group == v1alpha1.GroupVersion.Group
}

// A runFilter chooses the Runs that a user wants to see.
type runFilter struct {
	children bool
	target   string   // empty: any
	states   []string // in lower case; none: any
}

// states returns the values of --state.
func states() []string {
	return slices.Concat([]string{"active", "succeeded", "failed", v1alpha1.ReasonFinished, v1alpha1.ReasonReused}, v1alpha1.ActiveReasons, v1alpha1.FailureReasons)
}

// filter returns the filter of the flags, or an error that names the nearest state.
func (o listOptions) filter() (runFilter, error) {
	f := runFilter{children: o.children, target: strings.TrimPrefix(o.agent, "agent/")}
	known := states()
	for i := range known {
		known[i] = strings.ToLower(known[i])
	}
	for _, state := range o.states {
		state = strings.ToLower(state)
		if !slices.Contains(known, state) {
			return f, exit.Usagef("--state: a Run has no state %s. Write active, succeeded, failed, or a reason of docs/reference/reasons.md such as %s%s",
				state, v1alpha1.ReasonAwaitingApproval, template.Similar(state, known))
		}
		f.states = append(f.states, state)
	}
	return f, nil
}

func (f runFilter) has(run runFacts) bool {
	if run.isChild && !f.children || f.target != "" && f.target != run.target {
		return false
	}
	return len(f.states) == 0 || slices.ContainsFunc(f.states, func(state string) bool {
		return strings.EqualFold(state, run.reason) || stateGroups[state] == run.succeeded
	})
}

// elapsed returns how long a Run has taken since its first attempt started, waiting included. It differs from the
// duration of kubectl get runs -o wide and of limits.duration, where only active runners count.
func (l lister) elapsed(r runRow) string {
	started, err := time.Parse(time.RFC3339, r.cell("Started"))
	if err != nil {
		return "" // it has not started
	}
	end, err := time.Parse(time.RFC3339, r.cell("Completed"))
	if err != nil {
		end = l.Now()
	}
	return terminal.Took(started, end)
}
