package agent

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do next, as data.
type plan struct {
	conditions []metav1.Condition // nil: the Agent is gone
	remove     []corev1.ConfigMap
	wake       time.Duration
}

func decide(w world) plan {
	var p plan
	current := ""
	if w.agent != nil {
		v, err := snapshot.Of(w.agent, w.objects)
		if v != nil {
			current = snapshot.Name(v.Hash)
		}
		c := ready(err)
		if err == nil {
			c.Message = task.Cut(c.Message+foreign(w.agent), task.MaxMessage)
		}
		p.conditions = append(statuspatch.ReadyConditions(c), durable(w.agent))
	}
	p.remove, p.wake = w.versions.Old(current, w.now)
	return p
}

// telling is a plan that tells of stored versions which could not be removed.
func (p plan) telling(err error) plan {
	if err != nil && len(p.conditions) > 0 {
		p.conditions = slices.Clone(p.conditions)
		p.conditions[0].Message = task.Cut(p.conditions[0].Message+". "+apierr.Describe(err), task.MaxMessage)
	}
	return p
}

func ready(err error) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: statuspatch.ConditionStatus(err == nil), Reason: v1alpha1.ReasonReady, Message: "Valid; Runs check Secrets and endpoints"}
	var problem *snapshot.NotReadyError
	switch {
	case errors.As(err, &problem):
		c.Reason, c.Message = problem.Reason, problem.Message
	case err != nil:
		c.Reason, c.Message = v1alpha1.ReasonInferenceInvalid, err.Error()
	}
	return c
}

// foreign warns of a reference in the instructions that is written in the syntax of
// another tool, {{ x }} or $(params.x).
func foreign(a *v1alpha1.Agent) string {
	f, found := template.FindForeign(a.Spec.Instructions)
	if !found {
		return ""
	}
	return "; " + f.Warning("spec.instructions")
}

// durable says what a lost pod costs.
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
