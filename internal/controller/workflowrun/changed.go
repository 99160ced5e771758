package workflowrun

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// ofWorkflows lets the Runs of workflows through: those of agents have a
// controller of their own.
var ofWorkflows = predicate.NewPredicateFuncs(func(o client.Object) bool {
	run, is := o.(*v1alpha1.Run)
	return is && run.Spec.Workflow != ""
})

// runChanged lets a Run through when somebody wants something else of it, or it
// took a step that another follows upon. The rest of its status is the
// controller's own.
var runChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && stepOf(was) != stepOf(is)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// step is the part of a Run that decisions depend on.
type step struct {
	generation       int64
	deleted, settled bool
	version, tracker string
}

func stepOf(r *v1alpha1.Run) step {
	return step{
		generation: r.Generation,
		deleted:    r.DeletionTimestamp != nil,
		settled:    runstatus.IsFinished(r),
		version:    r.Status.WorkflowRevision,
		tracker:    runstatus.TrackingKey(r),
	}
}

// childChanged lets a child through when its parent has something to say, or to
// do, that it had not before. That it works, and how far it came, is not that.
var childChanged = predicate.And(isChild, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && materialOf(was) != materialOf(is)
	},
})

var isChild = predicate.NewPredicateFuncs(func(o client.Object) bool {
	return o.GetLabels()[v1alpha1.LabelWorkflowRun] != ""
})

// material is the part of a child that its parent depends on.
type material struct {
	finished     bool
	waits, asked string // for people, or its turn
}

func materialOf(c *v1alpha1.Run) material {
	m := material{finished: runstatus.IsFinished(c)}
	switch o := runstatus.OutcomeOf(c.Status); o.Reason {
	case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonQueued:
		m.waits, m.asked = o.Reason, o.Message
	}
	return m
}
