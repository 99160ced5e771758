package decisions

import (
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// FreeName returns a name for the next Decision on a request that is not in taken. The schema
// requires <run>.<request>, or that with a suffix.
func FreeName(run, request string, taken []string) string {
	first := run + "." + request
	name := first
	for n := 2; slices.Contains(taken, name); n++ {
		name = first + "." + strconv.Itoa(n)
	}
	return name
}

// FinalNames returns the names of the Decisions that are applied or refused. The others may
// still be the answer.
func FinalNames(decisions []v1alpha1.Decision) []string {
	var out []string
	for i := range decisions {
		if IsFinal(&decisions[i]) {
			out = append(out, decisions[i].Name)
		}
	}
	return out
}

// BecameFinal lets a Decision through when it is applied or refused.
var BecameFinal = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isDecision := e.ObjectOld.(*v1alpha1.Decision)
		is, alsoDecision := e.ObjectNew.(*v1alpha1.Decision)
		return isDecision && alsoDecision && !IsFinal(was) && IsFinal(is)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// BecameProtected lets a Decision through when its Run became the owner: it can be acted on
// from then on.
var BecameProtected = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isDecision := e.ObjectOld.(*v1alpha1.Decision)
		is, alsoDecision := e.ObjectNew.(*v1alpha1.Decision)
		return isDecision && alsoDecision && OwnerUID(was) != OwnerUID(is)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// NextStep says which Decision to create after one that was refused: all names in taken are
// used. It is empty if there is no request that the refused Decision can be about.
func NextStep(run *v1alpha1.Run, d *v1alpha1.Decision, taken []string) string {
	if run == nil || !run.DeletionTimestamp.IsZero() || run.Status.CompletionTime != nil || d.Spec.Type == v1alpha1.DecisionMessage {
		return ""
	}
	if uid := OwnerUID(d); uid != "" && uid != run.UID {
		return ""
	}
	request := intendedRequest(run, d)
	if request == "" {
		return ""
	}
	return fmt.Sprintf(". Create Decision %s", FreeName(run.Name, request, append(slices.Clone(taken), d.Name)))
}

// intendedRequest returns the id of the open request that a Decision names or, if there is only
// one, of that; empty otherwise.
func intendedRequest(run *v1alpha1.Run, d *v1alpha1.Decision) string {
	if run.Status.Progress == nil {
		return ""
	}
	open := forUsers(run.Status.Progress.Pending)
	for _, p := range open {
		if p.ID == d.Spec.Request {
			return p.ID
		}
	}
	if len(open) == 1 {
		return open[0].ID
	}
	return ""
}
