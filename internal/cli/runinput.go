package cli

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// declaration reads the input that the Agent or Workflow of a Run declares. If that does not exist, it returns an
// error, because the Run would wait for it, unless the Run comes from a manifest. If an Agent is not Ready, it prints a
// note.
func (r runCreator) declaration(ctx context.Context, c client.Client, run *v1alpha1.Run) (runflags.Declaration, error) {
	kind, name := "Agent", run.Spec.Agent
	var agent v1alpha1.Agent
	var workflow v1alpha1.Workflow
	var into client.Object = &agent
	if run.Spec.Workflow != "" {
		kind, name, into = "Workflow", run.Spec.Workflow, &workflow
	}
	key := client.ObjectKey{Namespace: run.Namespace, Name: name}
	err := c.Get(ctx, key, into)
	isManifest := len(r.o.Files) > 0
	switch {
	case apierrors.IsForbidden(err):
		return runflags.Declaration{}, nil
	case apierrors.IsNotFound(err) && !isNotInstalled(err) && isManifest:
		return runflags.Declaration{Waits: fmt.Sprintf("%s %s not found in namespace %s; the Run waits until it exists", kind, name, run.Namespace)}, nil
	case apierrors.IsNotFound(err) && !isNotInstalled(err):
		if other := otherTarget(ctx, c, kind, key); other != "" {
			return runflags.Declaration{}, exit.Usagef("there is no %s %s in namespace %s, but %s: write %s", kind, name, run.Namespace, other, other)
		}
		return runflags.Declaration{}, notFound(ctx, c, kind, key)
	case err != nil:
		return runflags.Declaration{}, err
	case kind == "Agent":
		d := runflags.DeclarationOf(&agent)
		d.Waits, d.Ends = notReady(kind, name, agent.Status.Conditions), cannotBeContinued(&agent)
		return d, nil
	}
	return runflags.Declaration{Known: true, Input: workflow.Spec.Input, Most: snapshot.MostOfWorkflow(workflow.Spec.Limits), Waits: notReady(kind, name, workflow.Status.Conditions)}, nil
}

// otherTarget returns KIND/NAME of a Workflow with the name of a missing Agent, or of an Agent with the name of a
// missing Workflow; empty: there is none, or it cannot be read.
func otherTarget(ctx context.Context, c client.Client, missing string, key client.ObjectKey) string {
	var other client.Object = &v1alpha1.Workflow{}
	kind := "workflow"
	if missing == "Workflow" {
		kind, other = "agent", &v1alpha1.Agent{}
	}
	if c.Get(ctx, key, other) != nil {
		return ""
	}
	return kind + "/" + key.Name
}

// notReady returns a note that a Run waits because its Agent or Workflow is not Ready; empty: it is Ready, or the
// operator has not read it yet.
func notReady(kind, name string, conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s %s is not ready: %s; the Run waits until then", kind, name, strings.TrimSuffix(ready.Message, "."))
}

// cannotBeContinued returns a note that the Runs of an Agent cannot be continued, because they keep nothing after their
// end; empty: they can, or the chart decides and the operator has not read the Agent yet.
func cannotBeContinued(a *v1alpha1.Agent) string {
	isPod := a.Spec.Workspace.Durability == v1alpha1.DurabilityPod
	if durable := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionDurable); a.Spec.Workspace.Durability == "" && durable != nil {
		isPod = durable.Reason == v1alpha1.ReasonPodDurability
	}
	if !isPod {
		return ""
	}
	return fmt.Sprintf("This Run cannot be continued after its end: Agent %s has workspace.durability Pod", a.Name)
}
