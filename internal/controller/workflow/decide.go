package workflow

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do next, as data.
type plan struct {
	ready  *metav1.Condition // nil: the Workflow is gone
	nodes  int32
	remove []corev1.ConfigMap
	wake   time.Duration
}

func decide(w world) plan {
	var p plan
	current := ""
	if w.workflow != nil {
		v, err := workflow.Of(w.workflow, w.objects)
		if v != nil {
			current = workflow.Name(v.Hash)
		}
		p.nodes = int32(len(w.workflow.Spec.Nodes) + len(w.workflow.Spec.Finally)) //nolint:gosec // the schema allows 64
		c := ready(p.nodes, v, err)
		p.ready = &c
	}
	p.remove, p.wake = w.versions.Old(current, w.now)
	return p
}

// maxMessage is the most that a condition's message is given here: the API
// server refuses one of more than 32 KiB.
const maxMessage = 4 << 10

// telling is a plan that tells of stored versions which could not be removed.
func (p plan) telling(err error) plan {
	if err != nil && p.ready != nil {
		ready := *p.ready
		ready.Message = task.Cut(ready.Message+". "+apierr.Describe(err), maxMessage)
		p.ready = &ready
	}
	return p
}

func ready(nodes int32, v *workflow.Version, err error) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: statuspatch.ConditionStatus(err == nil), Reason: v1alpha1.ReasonReady, Message: fmt.Sprintf("%d nodes", nodes)}
	if nodes == 1 {
		c.Message = "1 node"
	}
	var problem *snapshot.NotReadyError
	switch {
	case err == nil:
		c.Message = task.Cut(c.Message+unheeded(v)+foreign(v), maxMessage)
	case errors.As(err, &problem):
		c.Reason, c.Message = problem.Reason, task.Cut(problem.Message, maxMessage)
	case err != nil:
		c.Reason, c.Message = v1alpha1.ReasonNodeInvalid, task.Cut(err.Error(), maxMessage)
	}
	return c
}

// foreign warns of references in the syntax of another tool.
func foreign(v *workflow.Version) string {
	var b strings.Builder
	for _, warning := range workflow.Foreign(v.Spec) {
		b.WriteString("; " + warning)
	}
	return b.String()
}

// unheeded warns of approvals that hold nothing back.
func unheeded(v *workflow.Version) string {
	p, err := workflow.Compile(v)
	if err != nil {
		return ""
	}
	names := p.UnawaitedApprovals()
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; no node waits for the approval %s: add it to dependsOn of the nodes that must wait for it", strings.Join(names, ", "))
}
