package workflowrun

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// nameOf is the name of a child: pure, so that it is made once.
func nameOf(parent *v1alpha1.Run, n v1alpha1.Node, number int) string {
	name := parent.Name + "-" + n.Name
	if n.ForEach != nil || n.Loop != nil {
		name += "-" + strconv.Itoa(number)
	}
	if len(name) <= children.MaxName {
		return name
	}
	return children.HashedName(name, name, 8)
}

// spareOf is its name where somebody else has the first.
func spareOf(parent *v1alpha1.Run, at place) string {
	return children.HashedName(parent.Name+"-"+at.node, fmt.Sprintf("%s/%s/%d", parent.UID, at.node, at.number), 8)
}

// placeOf is where a child is.
func placeOf(c *v1alpha1.Run) place {
	at := place{node: c.Labels[v1alpha1.LabelWorkflowNode]}
	for _, label := range []string{v1alpha1.LabelItemIndex, v1alpha1.LabelIteration} {
		if n, err := strconv.Atoi(c.Labels[label]); err == nil {
			at.number = n
		}
	}
	return at
}

// ours says whether a Run is a child of another. One that a backup brought back
// is not: its work may have been done.
func ours(c metav1.Object, parent *v1alpha1.Run) bool {
	labels := c.GetLabels()
	return metav1.IsControlledBy(c, parent) && labels[v1alpha1.LabelWorkflowRun] == parent.Name && runstatus.RestoreMark(c) == ""
}

// succeeded says whether a child did its work.
func succeeded(c *v1alpha1.Run) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionSucceeded)
}

// childOf is the Run of a place. A purse says what it may use of what was set
// aside for it.
func (t *turn) childOf(at place, p *children.Budget) child {
	n, in := t.program.Node(at.node), t.mind.inputs[at]
	labels := runstatus.InheritedLabels(t.run.Labels)
	labels[v1alpha1.LabelWorkflowRun], labels[v1alpha1.LabelWorkflowNode] = t.run.Name, at.node
	switch {
	case n.ForEach != nil:
		labels[v1alpha1.LabelItemIndex] = strconv.Itoa(at.number)
	case n.Loop != nil:
		labels[v1alpha1.LabelIteration] = strconv.Itoa(at.number)
	}
	c := &v1alpha1.Run{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       t.run.Namespace,
			Name:            nameOf(t.run, n, at.number),
			Labels:          labels,
			Annotations:     map[string]string{v1alpha1.AnnotationRevisionHash: t.hash(n)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t.run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: v1alpha1.RunSpec{
			Agent:        string(n.Agent),
			Workflow:     string(n.Workflow),
			Prompt:       in.prompt,
			User:         t.run.Spec.User,
			MaxRetries:   n.MaxRetries,
			Limits:       p.LimitsFor(n.Limits, t.grants[at]),
			DesiredState: v1alpha1.DesiredRunning,
		},
	}
	if len(in.input) > 0 {
		c.Spec.Input = &runtime.RawExtension{Raw: in.input}
	}
	if root := shareRoot(t.world, n.Name); root != "" {
		c.Annotations[v1alpha1.AnnotationVolumeClaim] = runnerpod.SharedVolumeClaimName(t.run, root)
	}
	return child{place: at, Child: children.Child{Run: c, Names: []string{c.Name, spareOf(t.run, at)}, Is: isChildAt(t.run, at)}}
}

// hash is the version that the children of a node run.
func (t *turn) hash(n v1alpha1.Node) string {
	if n.Agent != "" {
		return t.version.Agents[string(n.Agent)].Hash
	}
	return t.version.Workflows[string(n.Workflow)].Hash
}

// shareRoot is the node with which the files that a node works on begin; empty:
// it shares them with none.
func shareRoot(w world, node string) string {
	from, shared := map[string]string{}, false
	for _, n := range w.nodes() {
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
