package workflowrun

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
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
	n, in := e.program.Node(at.node), e.evaluator.inputs[at]
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
		Spec: v1alpha1.RunSpec{
			Agent:        string(n.Agent),
			Workflow:     string(n.Workflow),
			Prompt:       in.prompt,
			User:         e.run.Spec.User,
			MaxRetries:   n.MaxRetries,
			Limits:       p.LimitsFor(n.Limits, e.grants[at]),
			DesiredState: v1alpha1.DesiredRunning,
		},
	}
	if len(in.input) > 0 {
		c.Spec.Input = &runtime.RawExtension{Raw: in.input}
	}
	if root := volumeRoot(e.state, n.Name); root != "" {
		c.Annotations[v1alpha1.AnnotationVolumeClaim] = runnerpod.SharedVolumeClaimName(e.run, root)
	}
	return newChild{childKey: at, Child: children.Child{Run: c, Names: []string{c.Name, spareChildName(e.run, at)}, Is: isChildAt(e.run, at)}}
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
