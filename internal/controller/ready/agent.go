package ready

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
)

var agents = kind[*v1alpha1.Agent, snapshot.Objects]{
	name:      "Agent",
	newObject: func() *v1alpha1.Agent { return new(v1alpha1.Agent) },
	newList:   func() client.ObjectList { return new(v1alpha1.AgentList) },
	read:      fromCache(refs.OfAgent),
	check:     timeless(checkAgent),
	status: func(a *v1alpha1.Agent) statusFields {
		return statusFields{status: &a.Status, generation: &a.Status.ObservedGeneration, conditions: &a.Status.Conditions}
	},
	revisionLabel: v1alpha1.LabelAgent,
	watches: []watch{
		{&v1alpha1.Agent{}, agentsUsingAgent, specChanged, 0},
		{&v1alpha1.Model{}, agentsUsingModel, specChanged, 0},
		{&v1alpha1.Toolset{}, agentsUsingToolset, specChanged, 0},
		{&v1alpha1.Run{}, agentOfRun, gc.RunReleasedRevision, 0},
		{revision.Metadata(), agentsRequiredBy, gc.WorkflowRevisionDeleted, 0},
	},
}

func checkAgent(agent *v1alpha1.Agent, objects snapshot.Objects) result {
	found := result{more: []metav1.Condition{durable(agent)}}
	v, err := snapshot.Of(agent, objects)
	if v != nil {
		found.revision = snapshot.Name(v.Hash)
	}
	problem, is := errors.AsType[*snapshot.NotReadyError](err)
	switch {
	case is:
		found.ready = notReady(problem.Reason, problem.Message)
	case err != nil:
		found.ready = notReady(v1alpha1.ReasonInvalid, err.Error())
	default:
		found.ready = isReady("Valid; Runs check Secrets and endpoints" + warnings(snapshot.Warnings(agent, objects)))
	}
	return found
}

// durable returns the condition Durable, which describes what is lost with a pod.
func durable(a *v1alpha1.Agent) metav1.Condition {
	if a.Spec.Workspace.Durability == v1alpha1.DurabilityVolume {
		return metav1.Condition{
			Type:    v1alpha1.ConditionDurable,
			Status:  metav1.ConditionTrue,
			Reason:  v1alpha1.ReasonVolumeDurability,
			Message: "Files and journal are on a PersistentVolumeClaim of the Run: after a lost pod, the next attempt resumes",
		}
	}
	return metav1.Condition{
		Type:    v1alpha1.ConditionDurable,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonPodDurability,
		Message: "Files and journal are in the pod: a Run whose pod is lost starts again only if it had changed nothing, otherwise it ends with reason PodLost. Set spec.workspace.durability to Volume, so that it resumes",
	}
}
