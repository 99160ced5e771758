package workflowrun

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// ofWorkflows passes on Runs of Workflows. Runs of Agents have their own controller.
var ofWorkflows = predicate.NewPredicateFuncs(func(o client.Object) bool {
	run, is := o.(*v1alpha1.Run)
	return is && run.Spec.Workflow != ""
})

// runChanged passes on events of a Run when its spec changed, or when it took a step that another step follows. This
// controller writes the rest of its status itself.
var runChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && reconcileKeyOf(was) != reconcileKeyOf(is)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// reconcileKey is the part of a Run that decisions depend on.
type reconcileKey struct {
	generation        int64
	deleted, settled  bool
	revision, tracker string
}

func reconcileKeyOf(r *v1alpha1.Run) reconcileKey {
	return reconcileKey{
		generation: r.Generation,
		deleted:    r.DeletionTimestamp != nil,
		settled:    runstatus.IsFinished(r),
		revision:   r.Status.WorkflowRevision,
		tracker:    runstatus.TrackingKey(r),
	}
}

// childChanged passes on events of a child when its parent has something new to report or to do. Progress of an active
// child does not count.
var childChanged = predicate.And(isChild, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && childFieldsOf(was) != childFieldsOf(is)
	},
})

var isChild = predicate.NewPredicateFuncs(func(o client.Object) bool {
	return o.GetLabels()[v1alpha1.LabelWorkflowRun] != ""
})

// childKeyFields has the fields of a child that its parent depends on.
type childKeyFields struct {
	finished     bool
	waits, asked string // for people, or its turn
}

func childFieldsOf(c *v1alpha1.Run) childKeyFields {
	m := childKeyFields{finished: runstatus.IsFinished(c)}
	switch o := runstatus.OutcomeOf(c.Status); o.Reason {
	case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonQueued:
		m.waits, m.asked = o.Reason, o.Message
	}
	return m
}
