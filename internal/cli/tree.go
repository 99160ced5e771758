package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

func newTree(f *Factory) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "tree RUN",
		Short: "Show a Run with the nodes of its Workflow and its child Runs",
		Args:  arguments(1, 1),
		RunE:  func(c *cobra.Command, args []string) error { return f.tree(c.Context(), args[0], output) },
	}
	bindOutput(c, &output, outputJSON, outputYAML)
	return c
}

func (f *Factory) tree(ctx context.Context, name, output string) error {
	c, run, err := f.openRun(ctx, name)
	if err != nil {
		return err
	}
	runs, err := readTree(ctx, c, client.ObjectKeyFromObject(run))
	if err != nil {
		return err
	}
	root, _ := branchOf(runs)
	if output != "" {
		tree := root.toJSON(f.Now())
		tree.ContinuedFrom = root.run.Status.ContinuedFrom
		return printValue(f.Out, output, tree)
	}
	if chain := chainText(root.run); chain != "" {
		fmt.Fprintln(f.Out, "Continues "+chain)
	}
	t := treePrinter{f: f, table: newTable(f.Out, "NAME", "RUN", "STATE", "STEPS", "TOKENS", "COST", "TIME")}
	t.print(root, "", "")
	return t.table.print()
}

// A branch is a Run, or a node of a Workflow without a Run, with its children.
type branch struct {
	name  string
	run   *v1alpha1.Run
	node  *v1alpha1.NodeStatus
	below []branch
}

// branchOf returns the first Run of a list as a branch, and the Runs that are not in it.
func branchOf(runs []treeRun) (branch, []treeRun) {
	run, rest := runs[0], runs[1:]
	b := branch{name: run.path[strings.LastIndexByte(run.path, '/')+1:], run: run.Run}
	if run.depth == 0 {
		b.name = target(run.Run)
	}
	for len(rest) > 0 && rest[0].depth > run.depth {
		var below branch
		below, rest = branchOf(rest)
		b.below = append(b.below, below)
	}
	b.below = append(b.below, nodesWithoutRun(run.Run, b.below)...)
	slices.SortStableFunc(b.below, func(x, y branch) int {
		return cmp.Compare(nodeIndex(run.Run, x), nodeIndex(run.Run, y))
	})
	return b, rest
}

// nodeIndex returns the position of a branch's node in the Workflow of a Run. Child Runs that an agent requested have
// none, and stay in the order of their creation.
func nodeIndex(run *v1alpha1.Run, b branch) int {
	name := ""
	if b.run != nil {
		name = b.run.Labels[v1alpha1.LabelWorkflowNode]
	} else {
		name = b.node.Name
	}
	return slices.IndexFunc(run.Status.Nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == name })
}

// nodesWithoutRun returns the nodes of a Workflow's Run that have no child Run: they wait, were
// skipped, need a Decision, or their Runs are deleted.
func nodesWithoutRun(run *v1alpha1.Run, below []branch) []branch {
	shown := map[string]bool{}
	for _, b := range below {
		shown[b.run.Labels[v1alpha1.LabelWorkflowNode]] = true
	}
	var nodes []branch
	for i := range run.Status.Nodes {
		if node := &run.Status.Nodes[i]; !shown[node.Name] {
			nodes = append(nodes, branch{name: node.Name, node: node})
		}
	}
	return nodes
}

type treePrinter struct {
	f     *Factory
	table *table
}

// print prints a branch. Its line begins with first, and the lines below it with the rest.
func (t treePrinter) print(b branch, first, rest string) {
	if b.run != nil {
		p := progressOf(b.run)
		t.table.indentedRow(first, b.name, b.run.Name, reason(b.run), strconv.FormatInt(p.Counts.Steps, 10),
			strconv.FormatInt(p.Usage.TotalTokens, 10), p.Usage.Cost, t.runTime(b.run))
	} else {
		state := string(b.node.State)
		if b.node.Reason != "" {
			state += ": " + b.node.Reason
		}
		t.table.indentedRow(first, b.name, "", state, "", "", "", t.nodeTime(b.node))
	}
	for i, below := range b.below {
		if i < len(b.below)-1 {
			t.print(below, rest+"├─ ", rest+"│  ")
		} else {
			t.print(below, rest+"└─ ", rest+"   ")
		}
	}
}

// runTime returns how long a Run has taken, waiting included.
func (t treePrinter) runTime(run *v1alpha1.Run) string {
	end := t.f.Now()
	if run.Status.CompletionTime != nil {
		end = run.Status.CompletionTime.Time
	}
	return terminal.Took(run.CreationTimestamp.Time, end)
}

// A treeNode is a branch as JSON.
type treeNode struct {
	Name string `json:"name"`
	// Run is the name of the Run. A node whose Run does not exist, not yet or not any more, has only a state.
	Run string `json:"run,omitempty"`
	// State is the reason of a Run, or the state of a node.
	State string `json:"state"`
	// Reason is why a node without a Run has its state.
	Reason       string `json:"reason,omitempty"`
	Steps        int64  `json:"steps,omitempty"`
	Tokens       int64  `json:"tokens,omitempty"`
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
	Seconds      int64  `json:"seconds,omitempty"`
	// ContinuedFrom is what the Run at the root continues.
	ContinuedFrom *v1alpha1.ContinuedFrom `json:"continuedFrom,omitempty"`
	Children      []treeNode              `json:"children,omitempty"`
}

func (b branch) toJSON(now time.Time) treeNode {
	var t treeNode
	if b.run != nil {
		p := progressOf(b.run)
		t = treeNode{Run: b.run.Name, State: reason(b.run), Steps: p.Counts.Steps, Tokens: p.Usage.TotalTokens, CostMicroUSD: p.Usage.CostMicroUSD}
		t.Seconds = secondsOf(&b.run.CreationTimestamp, b.run.Status.CompletionTime, now)
	} else {
		t = treeNode{State: string(b.node.State), Reason: b.node.Reason, Seconds: secondsOf(b.node.StartedAt, b.node.FinishedAt, now)}
	}
	t.Name = b.name
	for _, below := range b.below {
		t.Children = append(t.Children, below.toJSON(now))
	}
	return t
}

// secondsOf returns the time from begin to end, or to now; 0 if it has not begun.
func secondsOf(begin, end *metav1.Time, now time.Time) int64 {
	switch {
	case begin == nil:
		return 0
	case end != nil:
		now = end.Time
	}
	return max(0, int64(now.Sub(begin.Time)/time.Second))
}

func (t treePrinter) nodeTime(n *v1alpha1.NodeStatus) string {
	if n.StartedAt == nil {
		return ""
	}
	end := t.f.Now()
	if n.FinishedAt != nil {
		end = n.FinishedAt.Time
	}
	return terminal.Took(n.StartedAt.Time, end)
}

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
