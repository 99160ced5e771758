package decisions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// toWorkflow evaluates a Decision on the Run of a workflow. It has no runner: the status has a
// request from when an approval node is reached until it is decided, and the operator applies
// the Decision.
func toWorkflow(run *v1alpha1.Run, d *v1alpha1.Decision) Outcome {
	if d.Spec.Type == v1alpha1.DecisionMessage {
		return refused("Run %s is of a workflow, which has no agent that could read a message: create the Decision for the Run of a node (kubectl get runs -l %s=%s)", run.Name, v1alpha1.LabelWorkflowRun, run.Name)
	}
	if d.Spec.Type != v1alpha1.DecisionApprove && d.Spec.Type != v1alpha1.DecisionDeny {
		return refused("Run %s is of a workflow, which takes only Approve and Deny, not %s: questions and limits belong to the Runs of its nodes (kubectl get runs -l %s=%s); %s", run.Name, d.Spec.Type, v1alpha1.LabelWorkflowRun, run.Name, listRequests(run))
	}
	if run.Status.Progress == nil {
		return refused("Run %s does not wait for %s: it has not begun", run.Name, d.Spec.Request)
	}
	for _, p := range run.Status.Progress.Pending {
		if p.ID == d.Spec.Request {
			return toApproval(run, p, d)
		}
	}
	return refused("Run %s does not wait for %s; %s", run.Name, d.Spec.Request, listRequests(run))
}

// toApproval evaluates a Decision on an approval node of a workflow.
func toApproval(run *v1alpha1.Run, p v1alpha1.PendingRequest, d *v1alpha1.Decision) Outcome {
	if d.Spec.Scope == v1alpha1.ScopeRun {
		return refused("%s is asked once, so scope: Run means nothing: remove spec.scope", p.ID)
	}
	v := toRequest(run, p, d)
	if v.Deliver {
		v.Message = "On its way to Run " + run.Name
		v.Applied = metav1.ConditionUnknown
	}
	return v
}
