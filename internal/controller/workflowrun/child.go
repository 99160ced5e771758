package workflowrun

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// childName returns the name of a child. It depends only on its key, so that the child is created once.
func childName(parent *v1alpha1.Run, n v1alpha1.Node, number int) string {
	name := parent.Name + "-" + n.Name
	if n.ForEach != nil || n.Loop != nil {
		name += "-" + strconv.Itoa(number)
	}
	if len(name) <= children.MaxName {
		return name
	}
	return children.HashedName(name, name, 8)
}

// spareChildName returns the name of a child if another Run has the first name.
func spareChildName(parent *v1alpha1.Run, at childKey) string {
	return children.HashedName(parent.Name+"-"+at.node, fmt.Sprintf("%s/%s/%d", parent.UID, at.node, at.index), 8)
}

// keyOf returns the key of a child.
func keyOf(c *v1alpha1.Run) childKey {
	at := childKey{node: c.Labels[v1alpha1.LabelWorkflowNode]}
	for _, label := range []string{v1alpha1.LabelItemIndex, v1alpha1.LabelIteration} {
		if n, err := strconv.Atoi(c.Labels[label]); err == nil {
			at.index = n
		}
	}
	return at
}

// isChildOf reports whether a Run is a child of another. A Run that a backup tool created does not count, because its
// work may already be done.
func isChildOf(c metav1.Object, parent *v1alpha1.Run) bool {
	labels := c.GetLabels()
	return metav1.IsControlledBy(c, parent) && labels[v1alpha1.LabelWorkflowRun] == parent.Name && runstatus.RestoreMark(c) == ""
}

// succeeded reports whether a child succeeded.
func succeeded(c *v1alpha1.Run) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionSucceeded)
}

// childOf returns the child Run for a key, with its reservation as limits.
func (e *evaluation) childOf(at childKey, p *children.Budget) newChild {
	n, w := e.program.Node(at.node), e.works[at]
	labels := runstatus.InheritedLabels(e.run.Labels)
	labels[v1alpha1.LabelWorkflowRun], labels[v1alpha1.LabelWorkflowNode] = e.run.Name, at.node
	switch {
	case n.ForEach != nil:
		labels[v1alpha1.LabelItemIndex] = strconv.Itoa(at.index)
	case n.Loop != nil:
		labels[v1alpha1.LabelIteration] = strconv.Itoa(at.index)
	}
	c := &v1alpha1.Run{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       e.run.Namespace,
			Name:            childName(e.run, n, at.index),
			Labels:          labels,
			Annotations:     map[string]string{v1alpha1.AnnotationRevisionHash: e.revisionOf(n), v1alpha1.AnnotationRootRun: runstatus.RootUID(e.run)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e.run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: w.spec,
	}
	c.Spec.MaxRetries, c.Spec.Limits, c.Spec.DesiredState = n.MaxRetries, p.LimitsFor(n.Limits, e.grants[at]), v1alpha1.DesiredRunning
	w.mark(c, n)
	if root := volumeRoot(e.state, n.Name); root != "" {
		c.Annotations[v1alpha1.AnnotationVolumeClaim] = runnerpod.SharedVolumeClaimName(e.run, root)
	}
	return newChild{childKey: at, Child: children.Child{Run: c, Names: []string{c.Name, spareChildName(e.run, at)}, Is: isChildAt(e.run, at)}}
}

// mark adds to a child what its work is, and the Run whose work it takes over.
func (w work) mark(c *v1alpha1.Run, n v1alpha1.Node) {
	if w.hash != "" {
		c.Annotations[v1alpha1.AnnotationInputHash] = w.hash
	}
	switch {
	case w.reused != nil:
		c.Annotations[v1alpha1.AnnotationReuseOf] = string(w.reused.UID)
		c.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: w.reused.Name}
		c.Spec.Limits = n.Limits.DeepCopy() // nothing is reserved
	case w.retried != nil:
		c.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: w.retried.Name, UID: string(w.retried.UID)}
	}
}

// revisionOf returns the revision that the children of a node run.
func (e *evaluation) revisionOf(n v1alpha1.Node) string {
	if n.Agent != "" {
		return e.revision.Agents[string(n.Agent)].Hash
	}
	return e.revision.Workflows[string(n.Workflow)].Hash
}

// volumeRoot returns the node that began the files on which a node works; empty: it shares no files.
func volumeRoot(s state, node string) string {
	from, shared := map[string]string{}, false
	for _, n := range s.nodes() {
		if n.Workspace != nil {
			from[n.Name] = n.Workspace.From
			shared = shared || n.Name == node || n.Workspace.From == node
		}
	}
	if !shared {
		return ""
	}
	for range len(from) { // a circle is refused before anything begins
		if from[node] == "" {
			break
		}
		node = from[node]
	}
	return node
}

// refusalOf returns the refusal for an error of creating a child Run; false: the API server did not refuse it.
func refusalOf(err error) (refusal, bool) {
	if taken, is := errors.AsType[*children.NamesTakenError](err); is {
		return refusal{reason: v1alpha1.NodeReasonRefused, text: taken.Error() + "; delete those, or give this Run another name"}, true
	}
	switch apierr.Classify(err) {
	case apierr.None, apierr.Transient, apierr.Conflict:
		return refusal{}, false
	case apierr.Forbidden, apierr.NotFound: // this says nothing about the node
		return waitingRefusal(err), true
	case apierr.Quota:
		return refusal{v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for another Run. Raise it, or wait until other Runs end: " + causeText(err), v1alpha1.ReasonQuotaExceeded}, true
	case apierr.Terminating:
		return refusal{reason: v1alpha1.NodeReasonRefused, text: "the namespace is being deleted"}, true
	default:
		return refusal{reason: v1alpha1.NodeReasonRefused, text: "the API server refused its Run: " + causeText(err)}, true
	}
}

// causeText returns the API server's error without the description of the request.
func causeText(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return apierr.Text(err)
}

// waitingRefusal returns the refusal of a request that is sent again until it succeeds.
func waitingRefusal(err error) refusal {
	return refusal{graph.ReasonQueued, task.Cut(apierr.Describe(err), runstatus.MaxCause), v1alpha1.ReasonPending}
}

// retried returns a refusal whose request is sent again; false: there is none. If there are several, it is always the
// same one.
func (e *evaluation) retried() (refusal, bool) {
	var all []refusal
	for _, r := range e.refused {
		if r.waits != "" {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return refusal{}, false
	}
	return slices.MinFunc(all, func(a, b refusal) int { return strings.Compare(a.text, b.text) }), true
}

// deletedChildren returns the keys of recorded children that do not exist. If the cache does not show all children yet,
// those are included.
func deletedChildren(s state) []childKey {
	exist := map[childKey]bool{}
	for _, c := range s.children {
		exist[keyOf(c)] = true
	}
	var out []childKey
	for _, n := range s.nodes() {
		first := 0
		if n.Loop != nil {
			first = 1
		}
		for i := range min(recordedState(s, n.Name).Started, graph.MaxItems) {
			if at := (childKey{n.Name, first + i}); !exist[at] {
				out = append(out, at)
			}
		}
	}
	return out
}

// reservationsOfDeleted returns what deleted children are charged: their reservation, since their usage after the last
// report is not known. A child without its own limit may have used all of the Workflow's limit.
func reservationsOfDeleted(s state) map[childKey]children.Amounts {
	out := map[childKey]children.Amounts{}
	main, finally := unusedBudgets(s)
	for _, at := range deletedChildren(s) {
		p, want := budgetOf(s, main, finally, at.node), wantedBy(s, main, s.program.Node(at.node))
		for d := range children.Resources {
			switch whole := max(p.Limit[d], 0); {
			case !p.Bounded[d]:
				want[d] = 0
			case want[d] == 0 || want[d] > whole:
				want[d] = whole
			}
		}
		out[at] = want
	}
	return out
}
