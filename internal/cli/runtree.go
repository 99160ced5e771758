package cli

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A treeRun is a Run in the tree of a Run and its child Runs.
type treeRun struct {
	*v1alpha1.Run
	// path names the nodes and agents that lead to the Run, such as "review[2]/fixer"; empty
	// for the Run at the root.
	path string
	// depth is how many Runs are above it.
	depth int
}

// readTree reads a Run and its child Runs at any depth. A Run precedes its children, which are in the order of their
// creation.
func readTree(ctx context.Context, c client.Client, key client.ObjectKey) ([]treeRun, error) {
	root := &v1alpha1.Run{}
	if err := c.Get(ctx, key, root); err != nil {
		return nil, err
	}
	return appendTree(ctx, c, nil, treeRun{Run: root})
}

func appendTree(ctx context.Context, c client.Client, tree []treeRun, run treeRun) ([]treeRun, error) {
	const deepest = 20 // deeper than Workflows and Agents can nest
	tree = append(tree, run)
	if run.depth == deepest {
		return tree, nil
	}
	children, err := childrenOf(ctx, c, run.Run)
	if err != nil {
		return nil, err
	}
	for i := range children {
		path := childName(&children[i])
		if run.path != "" {
			path = run.path + "/" + path
		}
		if tree, err = appendTree(ctx, c, tree, treeRun{&children[i], path, run.depth + 1}); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// childrenOf lists the child Runs of a Run, without a request if it cannot have any.
func childrenOf(ctx context.Context, c client.Client, run *v1alpha1.Run) ([]v1alpha1.Run, error) {
	label := v1alpha1.LabelParentRun
	switch {
	case run.Spec.Workflow != "":
		label = v1alpha1.LabelWorkflowRun
	case len(run.Status.Internal.Delegated) == 0:
		return nil, nil
	}
	children, err := listRuns(ctx, c, client.InNamespace(run.Namespace), client.MatchingLabels{label: run.Name})
	children = slices.DeleteFunc(children, func(child v1alpha1.Run) bool { return !metav1.IsControlledBy(&child, run) })
	slices.SortFunc(children, func(a, b v1alpha1.Run) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return children, err
}

// childName returns the node of a child Run with the number of the item or iteration, or the Agent to which it was
// delegated.
func childName(child *v1alpha1.Run) string {
	node := child.Labels[v1alpha1.LabelWorkflowNode]
	if node == "" {
		return child.Spec.Agent
	}
	for _, label := range []string{v1alpha1.LabelItemIndex, v1alpha1.LabelIteration} {
		if n := child.Labels[label]; n != "" {
			return node + "[" + n + "]"
		}
	}
	return node
}
