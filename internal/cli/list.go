package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

const (
	// pageSize is how many objects one request lists. The API server answers from memory, so
	// that a large page is cheaper than many small ones.
	pageSize = 10_000
	// shownRuns is how many Runs list shows by default.
	shownRuns = 500
)

type listOptions struct {
	allNamespaces, children, watch bool
	continuable                    bool
	selector, agent                string
	states                         []string
	limit                          int
	output                         string
}

func newList(f *Factory) *cobra.Command {
	var o listOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List Runs with what they do, wait for and cost",
		Example: "  kubectl deckhand list\n" +
			"  kubectl deckhand list --state failed --agent reviewer\n" +
			"  kubectl deckhand list --children -w",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return lister{f, o}.list(c.Context()) },
	}
	c.Flags().BoolVar(&o.children, "children", false, "List child Runs too, which Workflows and agents create")
	c.Flags().BoolVar(&o.continuable, "continuable", false, "List the Runs that kubectl deckhand continue can continue, and until when")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "After the list, print each Run that is new or has changed, until you press Ctrl-C")
	c.Flags().StringSliceVar(&o.states, "state", nil, "List Runs in these states: active, succeeded, failed, or a reason such as AwaitingApproval")
	c.Flags().StringVar(&o.agent, "agent", "", "List the Runs of this Agent, or of workflow/NAME")
	c.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the Runs of all namespaces")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "Select Runs by labels, for example app=review")
	c.Flags().IntVar(&o.limit, "limit", shownRuns, "List only this many Runs, the newest; 0 lists all")
	bindOutput(c, &o.output, outputJSON, outputYAML, outputName, outputWide)
	return c
}

// A lister lists Runs.
type lister struct {
	*Factory
	o listOptions
}

func (l lister) list(ctx context.Context) error {
	if err := l.o.check(); err != nil {
		return err
	}
	chosen, err := l.o.filter()
	switch {
	case err != nil:
		return err
	case l.o.continuable:
		return l.listContinuable(ctx, chosen)
	case l.o.wholeRuns():
		return l.listObjects(ctx, chosen)
	}
	rows, err := l.rows(ctx)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(rows), func(r runRow) bool { return !chosen.has(factsOfRow(r)) })
	if len(shown) == 0 && l.o.output != outputName {
		if err := l.printNone(ctx, rows, chosen); err != nil {
			return err
		}
	} else if err := l.printRows(l.Out, newest(l, shown, func(r runRow) metav1.ObjectMeta { return r.Object.Metadata })); err != nil {
		return err
	}
	if !l.o.watch {
		return nil
	}
	return rowWatcher{l, chosen}.watch(ctx, shown)
}

// wholeRuns reports whether whole Runs are printed.
func (o listOptions) wholeRuns() bool { return o.output == outputJSON || o.output == outputYAML }

// check refuses flags that exclude each other.
func (o listOptions) check() error {
	switch {
	case o.limit < 0:
		return exit.Usagef("--limit %d: write how many Runs are listed, or 0 for all", o.limit)
	case o.wholeRuns() && o.watch:
		return exit.Usagef("-w prints lines, not %s: leave out -o, or use kubectl get runs -w -o %s", o.output, o.output)
	case o.continuable && o.watch:
		return exit.Usagef("--continuable prints a list once: leave out -w")
	}
	return nil
}

// listObjects prints whole Runs.
func (l lister) listObjects(ctx context.Context, chosen runFilter) error {
	c, err := l.Client()
	if err != nil {
		return err
	}
	options, err := l.selection(l.o.allNamespaces, l.o.selector)
	if err != nil {
		return err
	}
	runs, err := listRuns(ctx, c, options...)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r v1alpha1.Run) bool { return !chosen.has(factsOfRun(&r)) })
	return l.printRuns(newest(l, runs, func(r v1alpha1.Run) metav1.ObjectMeta { return r.ObjectMeta }))
}

// printRuns prints whole Runs.
func (l lister) printRuns(runs []v1alpha1.Run) error {
	list := &v1alpha1.RunList{Items: runs}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RunList"))
	for i := range runs {
		runs[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Run"))
	}
	return printObject(l.Out, l.o.output, list)
}

// newest sorts Runs, the newest first, and returns as many as the user wants.
func newest[R any](l lister, runs []R, metadata func(R) metav1.ObjectMeta) []R {
	slices.SortFunc(runs, func(x, y R) int {
		a, b := metadata(x), metadata(y)
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if limit := l.o.limit; limit > 0 && len(runs) > limit {
		fmt.Fprintf(l.Err, "The newest %d of %d Runs: to list all, use --limit=0, or select some with -l\n", limit, len(runs))
		runs = runs[:limit]
	}
	return runs
}

// selection returns the options that list the objects of a namespace, or of all, with labels.
func (f *Factory) selection(allNamespaces bool, selector string) ([]client.ListOption, error) { //nolint:revive // flag-parameter: it is the flag -A itself
	selected, err := labels.Parse(selector)
	if err != nil {
		return nil, exit.Usagef("reading -l %q: %v", selector, err)
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selected}}
	if allNamespaces {
		return options, nil
	}
	namespace, err := f.Namespace()
	return append(options, client.InNamespace(namespace)), err
}

// listRuns lists Runs page by page.
func listRuns(ctx context.Context, c client.Client, options ...client.ListOption) ([]v1alpha1.Run, error) {
	runs, next := []v1alpha1.Run{}, "" // as JSON, no Runs are an empty list
	for {
		var page v1alpha1.RunList
		if err := c.List(ctx, &page, append(options, client.Limit(pageSize), client.Continue(next))...); err != nil {
			return nil, err
		}
		runs, next = append(runs, page.Items...), page.Continue
		if next == "" {
			return runs, nil
		}
	}
}

// printNone prints that no Run is listed, and whether child Runs would be. If the Agent or Workflow does not exist, it
// returns an error.
func (l lister) printNone(ctx context.Context, rows []runRow, chosen runFilter) error {
	chosen.children = true
	if slices.ContainsFunc(rows, func(r runRow) bool { return chosen.has(factsOfRow(r)) }) {
		fmt.Fprintln(l.Err, "No Runs found but child Runs. To list these, add --children")
		return nil
	}
	if l.o.allNamespaces {
		fmt.Fprintln(l.Err, "No Runs found")
		return nil
	}
	namespace, err := l.Namespace()
	if err != nil {
		return err
	}
	fmt.Fprintf(l.Err, "No Runs found in namespace %s. To list those of all namespaces, add -A\n", namespace)
	return l.checkTarget(ctx, chosen.target)
}

// checkTarget returns an error if the Agent or Workflow that --agent names does not exist. A user may list
// Runs without reading Agents.
func (l lister) checkTarget(ctx context.Context, target string) error {
	if target == "" {
		return nil
	}
	kind, name, o := "Agent", target, client.Object(&v1alpha1.Agent{})
	if workflow, is := strings.CutPrefix(target, "workflow/"); is {
		kind, name, o = "Workflow", workflow, &v1alpha1.Workflow{}
	}
	c, err := l.Client()
	if err != nil {
		return err
	}
	if err := l.find(ctx, c, kind, name, o); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

func (l lister) printRows(out io.Writer, rows []runRow) error {
	if l.o.output == outputName {
		for _, r := range rows {
			fmt.Fprintln(out, "run.deckhand.dev/"+r.Object.Metadata.Name)
		}
		return nil
	}
	t := newTable(out, runColumns(l.o)...)
	for _, r := range rows {
		t.row(l.cells(r)...)
	}
	return t.print()
}

func runColumns(o listOptions) []string {
	columns := []string{"NAME", "TARGET", "STATE", "STEPS", "TOKENS", "COST", "ELAPSED", "AGE"}
	if o.allNamespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if o.output == outputWide {
		columns = append(columns, "MODEL", "ATTEMPT", "MESSAGE")
	}
	return columns
}

func (l lister) cells(r runRow) []string {
	run := r.Object.Metadata
	facts := factsOfRow(r)
	cells := []string{
		run.Name, facts.target, facts.reason,
		cmp.Or(r.cell("Steps"), "0"), cmp.Or(r.cell("Tokens"), "0"), r.cell("Cost"), l.elapsed(r), l.Since(run.CreationTimestamp),
	}
	if l.o.allNamespaces {
		cells = append([]string{run.Namespace}, cells...)
	}
	if l.o.output == outputWide {
		cells = append(cells, r.cell("Model"), r.cell("Attempt"), strings.TrimSpace(r.cell("Message")))
	}
	return cells
}

func progressOf(run *v1alpha1.Run) *v1alpha1.RunProgress {
	if run.Status.Progress == nil {
		return &v1alpha1.RunProgress{}
	}
	return run.Status.Progress
}

// target returns the name of the Agent, or workflow/NAME.
func target(run *v1alpha1.Run) string {
	if run.Spec.Workflow != "" {
		return "workflow/" + run.Spec.Workflow
	}
	return run.Spec.Agent
}

// reason returns the current activity of the Run, or how it ended.
func reason(run *v1alpha1.Run) string {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	if succeeded == nil {
		return "Pending"
	}
	return succeeded.Reason
}

func message(run *v1alpha1.Run) string {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	if succeeded == nil {
		return ""
	}
	return strings.TrimSpace(succeeded.Message)
}

// watchEvery is how many intervals of the Factory pass between two looks at the Runs: a list of
// 10,000 Runs costs the API server about a tenth of a second.
const watchEvery = 2

// A rowWatcher prints the Runs of a list that change.
type rowWatcher struct {
	lister
	chosen runFilter
}

// watch prints a line for each Run that is new or has changed, until the user ends the command. A Run
// that leaves the selected states is printed once more.
func (w rowWatcher) watch(ctx context.Context, rows []runRow) error {
	shown := map[types.UID]string{}
	for _, r := range rows {
		shown[r.Object.Metadata.UID] = r.state()
	}
	saidWhy := ""
	for {
		timer := time.NewTimer(watchEvery * w.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		rows, err := w.rows(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user ended the command
		case isUnreachable(err), isServerError(err):
			if why := explain(err); why != saidWhy {
				saidWhy = why
				fmt.Fprintln(w.Err, "Cannot list Runs and tries again: "+why)
			}
			continue
		case err != nil:
			return err
		}
		if err := w.printChanged(rows, shown); err != nil {
			return err
		}
	}
}

// printChanged prints the rows that differ from the shown ones, oldest first.
func (w rowWatcher) printChanged(rows []runRow, shown map[types.UID]string) error {
	var listed []runRow
	var changed []bool
	slices.SortStableFunc(rows, func(a, b runRow) int {
		return a.Object.Metadata.CreationTimestamp.Compare(b.Object.Metadata.CreationTimestamp.Time)
	})
	for _, r := range rows {
		before, seen := shown[r.Object.Metadata.UID]
		if !seen && !w.chosen.has(factsOfRow(r)) {
			continue
		}
		shown[r.Object.Metadata.UID] = r.state()
		changed = append(changed, !seen || before != r.state())
		listed = append(listed, r)
	}
	text := &bytes.Buffer{} // the rows that are left out keep the columns as wide as they were
	if err := w.printRows(text, listed); err != nil {
		return err
	}
	lines := strings.Split(text.String(), "\n")
	if w.o.output != outputName {
		lines = lines[1:] // without the header
	}
	for i, prints := range changed {
		if !prints {
			continue
		}
		if _, err := fmt.Fprintln(w.Out, lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// state returns the cells whose change causes another line: all but the age.
func (r runRow) state() string {
	var cells []string
	for name, i := range r.columns {
		if name != "Age" && i < len(r.Cells) {
			cells = append(cells, fmt.Sprint(name, r.Cells[i]))
		}
	}
	slices.Sort(cells)
	return strings.Join(cells, "\n")
}
