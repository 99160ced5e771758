package ready

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

var workflows = kind[*v1alpha1.Workflow, workflow.Objects]{
	name:      "Workflow",
	newObject: func() *v1alpha1.Workflow { return new(v1alpha1.Workflow) },
	newList:   func() client.ObjectList { return new(v1alpha1.WorkflowList) },
	read:      fromCache(workflow.From),
	check:     timeless(checkWorkflow),
	status: func(w *v1alpha1.Workflow) statusFields {
		return statusFields{status: &w.Status, generation: &w.Status.ObservedGeneration, conditions: &w.Status.Conditions, nodes: &w.Status.Nodes}
	},
	revisionLabel: v1alpha1.LabelWorkflow,
	watches: []watch{
		{&v1alpha1.Workflow{}, workflowsUsingWorkflow, specChanged, 0},
		{&v1alpha1.Agent{}, workflowsUsing(agentsUsingAgent), specChanged, 0},
		{&v1alpha1.Model{}, workflowsUsing(agentsUsingModel), specChanged, 0},
		{&v1alpha1.Toolset{}, workflowsUsing(agentsUsingToolset), specChanged, 0},
		{&v1alpha1.Run{}, workflowOfRun, gc.RunReleasedRevision, 0},
		{revision.Metadata(), workflowsRequiredBy, gc.WorkflowRevisionDeleted, 0},
	},
}

// checkWorkflow checks the graph, the expressions and everything that the nodes refer to.
func checkWorkflow(w *v1alpha1.Workflow, objects workflow.Objects) result {
	var found result
	v, err := workflow.Of(w, objects)
	if v != nil {
		found.revision = workflow.Name(v.Hash)
	}
	found.nodes = int32(min(len(w.Spec.Nodes)+len(w.Spec.Finally), graph.MaxNodes))
	found.ready = workflowReady(found.nodes, v, err)
	return found
}

func workflowReady(nodes int32, v *workflow.Revision, err error) metav1.Condition {
	problem, is := errors.AsType[*snapshot.NotReadyError](err)
	switch {
	case is:
		return notReady(problem.Reason, problem.Message)
	case err != nil:
		return notReady(v1alpha1.ReasonInvalid, err.Error())
	case nodes == 1:
		return isReady("1 node" + warnings(workflow.Warnings(v)))
	default:
		return isReady(fmt.Sprintf("%d nodes", nodes) + warnings(workflow.Warnings(v)))
	}
}
