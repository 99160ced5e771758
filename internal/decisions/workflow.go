package decisions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// toWorkflow judges a Decision on the Run of a workflow. It has no runner: what it
// asks stands in its status from when a node of kind approval is reached until it
// is decided, and the operator itself hears the answer.
func toWorkflow(run *v1alpha1.Run, d *v1alpha1.Decision) Outcome {
	if d.Spec.Type == v1alpha1.DecisionMessage {
		return refused("Run %s is of a workflow, which has no agent that could read a message: create the Decision for the Run of a node (kubectl get runs -l %s=%s)", run.Name, v1alpha1.LabelWorkflowRun, run.Name)
	}
	if d.Spec.Type != v1alpha1.DecisionApprove && d.Spec.Type != v1alpha1.DecisionDeny {
		return refused("Run %s is of a workflow, which takes only Approve and Deny, not %s: questions and limits belong to the Runs of its nodes (kubectl get runs -l %s=%s); %s", run.Name, d.Spec.Type, v1alpha1.LabelWorkflowRun, run.Name, asks(run))
	}
	if run.Status.Progress == nil {
		return refused("Run %s does not wait for %s: it has not begun", run.Name, d.Spec.Request)
	}
	for _, p := range run.Status.Progress.Pending {
		if p.ID == d.Spec.Request {
			return toApproval(run, p, d)
		}
	}
	return refused("Run %s does not wait for %s; %s", run.Name, d.Spec.Request, asks(run))
}

// toApproval judges a Decision on an approval of a workflow.
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
