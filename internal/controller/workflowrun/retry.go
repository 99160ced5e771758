package workflowrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// source is the Run that a Run retries.
type source struct {
	run *v1alpha1.Run // nil: it does not exist
	// children are its child Runs, by key. They are shared with the cache and must not be changed.
	children map[childKey]*v1alpha1.Run
	// circle are the names of Runs that wait for each other: this Run, its source, and so on.
	circle []string
}

// isActive reports whether the source or one of its child Runs still works.
func (s *source) isActive() bool {
	for _, c := range s.children {
		if !runstatus.IsFinished(c) {
			return true
		}
	}
	return !runstatus.IsFinished(s.run)
}

// endedAt returns when the last Run of the source ended, or now if one still works. It is zero without a source.
func (s *source) endedAt(now time.Time) time.Time {
	if s == nil || s.run == nil {
		return time.Time{}
	}
	if s.isActive() {
		return now
	}
	last := s.run.Status.CompletionTime.Time
	for _, c := range s.children {
		if at := c.Status.CompletionTime.Time; at.After(last) {
			last = at
		}
	}
	return last
}

// sourceNotReady waits for the end of the Run that this Run retries, or ends this Run if it never can.
func sourceNotReady(s state) (plan, bool) {
	if s.hasStarted() || s.source == nil {
		return plan{}, false
	}
	if s.source.run == nil {
		text := fmt.Sprintf("Run %s (spec.continueFrom.run) does not exist in namespace %s", s.run.Spec.ContinueFrom.Run, s.run.Namespace)
		limit := pendingLimit(s)
		if until := pendingSince(s).Add(limit); until.After(s.now) {
			return waitUntil(s, waiting(v1alpha1.ReasonPending, text, 0), until), true
		}
		return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending) waiting for: %s. Create a Run that names another Run", limit, text)), true
	}
	if text := continuing.Replaced(s.run, s.source.run); text != "" {
		return failure(v1alpha1.ReasonNothingToContinue, text), true
	}
	if text := sourceMismatch(s); text != "" {
		return failure(v1alpha1.ReasonMisconfigured, text), true
	}
	if s.source.isActive() {
		return waiting(v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for the end of Run %s and its child Runs, which this Run retries", s.source.run.Name), 0), true
	}
	if text := nothingToRetry(s); text != "" {
		return failure(v1alpha1.ReasonNothingToContinue, text), true
	}
	return plan{}, false
}

// sourceMismatch returns why a Run can never retry its source; empty: it can.
func sourceMismatch(s state) string {
	is, was := s.run.Spec, s.source.run.Spec
	name, node := s.source.run.Name, is.ContinueFrom.Node
	switch {
	case was.Workflow == "":
		return fmt.Sprintf("Run %s is a Run of Agent %s, which a workflow cannot retry. Create a Run with spec.agent in place of spec.workflow, or name a Run of Workflow %s", name, was.Agent, is.Workflow)
	case was.Workflow != is.Workflow:
		return fmt.Sprintf("Run %s is a Run of Workflow %s, and this is a Run of Workflow %s. Create a Run of Workflow %[2]s, or name a Run of Workflow %[3]s", name, was.Workflow, is.Workflow)
	case was.User != is.User:
		return fmt.Sprintf("spec.user is %q, and that of Run %s is %q. A Run can be retried for the same user only: create a Run with that spec.user", is.User, name, was.User)
	case !snapshot.SameInput(is, was):
		return fmt.Sprintf("spec.input differs from the input of Run %s, or is missing. Create a Run with the same input (kubectl get run %[1]s -n %s -o jsonpath='{.spec.input}'), or without continueFrom", name, s.run.Namespace)
	case node != "" && !slices.ContainsFunc(s.nodes(), func(n v1alpha1.Node) bool { return n.Name == node }):
		return fmt.Sprintf("spec.continueFrom.node is %s, and Workflow %s has no such node. Create a Run that names one of: %s", node, is.Workflow, nodeNames(s))
	case len(s.source.circle) > 0:
		return fmt.Sprintf("Runs %s wait for each other, because each continues the next (spec.continueFrom). Delete them, and retry a Run that has ended", strings.Join(s.source.circle, ", "))
	case len(continuing.Chain(s.source.run)) > v1alpha1.MaxContinued:
		return fmt.Sprintf("A Run can continue at most %d Runs, one after the other, and Run %s has continued as many. Create a Run without continueFrom", v1alpha1.MaxContinued, name)
	}
	return ""
}

func nodeNames(s state) string {
	var names []string
	for _, n := range s.nodes() {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// nothingToRetry returns why there is nothing to retry in a source that has ended; empty: there is.
func nothingToRetry(s state) string {
	name, outcome := s.source.run.Name, runstatus.OutcomeOf(s.source.run.Status)
	switch {
	case outcome.Reason == v1alpha1.ReasonRestored:
		return fmt.Sprintf("Run %s was restored from a backup, without its child Runs. Create a Run without continueFrom", name)
	case s.source.run.Status.WorkflowRevision == "":
		return fmt.Sprintf("Run %s ended before it started (%s), and has nothing to retry. Create a Run without continueFrom", name, outcome.Reason)
	case s.run.Spec.ContinueFrom.Node == "" && succeeded(s.source.run):
		return fmt.Sprintf("Run %s succeeded, and no node has to run again. Create a Run with spec.continueFrom.node, which names a node to run again, or without continueFrom", name)
	}
	return ""
}

// earlierChild returns the child of the source with a key whose work may be taken over, or nil. It is nil if the node
// was named to run again, waits for a node that runs again, or has files that its source keeps.
func (e *evaluation) earlierChild(at childKey) *v1alpha1.Run {
	if !e.restsOnSource(at.node) || volumeRoot(e.state, at.node) != "" {
		return nil
	}
	if e.program.Node(at.node).Loop != nil && at.index > 1 && !isReused(e.evaluator.child(childKey{at.node, at.index - 1})) {
		return nil
	}
	earlier := e.source.children[at]
	if earlier == nil || !runstatus.IsFinished(earlier) || earlier.DeletionTimestamp != nil {
		return nil
	}
	return earlier
}

// restsOnSource reports whether a node may reuse its results of the source: continueFrom.node does not name it or a node
// before it, and each node that it waits for was reused or skipped.
func (e *evaluation) restsOnSource(node string) bool {
	if e.source == nil || e.source.run == nil || e.isFinally(node) {
		return false
	}
	again := e.run.Spec.ContinueFrom.Node
	return again != node && (again == "" || !slices.Contains(e.program.Graph.Before(node), again)) && e.followsUnchanged(node)
}

// followsUnchanged reports whether all nodes that a node waits for did nothing in this Run. They have ended, so that it
// stays as it is.
func (e *evaluation) followsUnchanged(node string) bool {
	if known, is := e.unchanged[node]; is {
		return known
	}
	e.unchanged[node] = !slices.ContainsFunc(e.program.Graph.Before(node), func(before string) bool { return !e.isUnchanged(before) })
	return e.unchanged[node]
}

// isUnchanged reports whether a node did nothing in this Run: it was skipped, or has only results, or the approval, of
// the source.
func (e *evaluation) isUnchanged(node string) bool {
	status := e.evaluator.nodeState(node)
	if status.State != graph.Succeeded {
		return status.State == graph.Skipped
	}
	if e.program.Node(node).Approval != nil {
		done := decidedFor(e.decided(), requestOf(node))
		return done != nil && decisions.IsReused(e.run, *done)
	}
	reused := 0
	for _, c := range e.children {
		if keyOf(c).node != node {
			continue
		}
		if !isReused(c) {
			return false
		}
		reused++
	}
	return reused == status.Started
}

func isReused(c *v1alpha1.Run) bool { return c != nil && children.ReuseOf(c) != "" }

// work is what a child is given, with the hash of it, and the Run whose work it takes over: reused is a Run whose result
// it has, retried a failed Run of a nested Workflow that it retries. Without both, the work begins from its start.
type work struct {
	spec            v1alpha1.RunSpec
	hash            string
	reused, retried *v1alpha1.Run
}

// workOf returns what a child is given.
func (e *evaluation) workOf(at childKey) work {
	n, in := e.program.Node(at.node), e.evaluator.inputs[at]
	spec := v1alpha1.RunSpec{Agent: string(n.Agent), Workflow: string(n.Workflow), Prompt: in.prompt, User: e.run.Spec.User}
	if len(in.input) > 0 {
		spec.Input = &runtime.RawExtension{Raw: in.input}
	}
	w := work{spec: spec, hash: children.InputHash(spec, e.revisionOf(n))}
	earlier := e.earlierChild(at)
	switch {
	case earlier == nil || earlier.Spec.Agent != spec.Agent || earlier.Spec.Workflow != spec.Workflow:
	case succeeded(earlier):
		if w.hash != "" && earlier.Annotations[v1alpha1.AnnotationInputHash] == w.hash {
			w.reused = earlier
		}
	case canRetry(earlier, spec):
		w.retried = earlier
	}
	return w
}

// canRetry reports whether the child of a nested Workflow can retry a failed one.
func canRetry(earlier *v1alpha1.Run, spec v1alpha1.RunSpec) bool {
	return spec.Workflow != "" && earlier.Spec.User == spec.User && snapshot.SameInput(earlier.Spec, spec) &&
		earlier.Status.WorkflowRevision != "" && len(continuing.Chain(earlier)) <= v1alpha1.MaxContinued
}
