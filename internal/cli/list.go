package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// pageSize is how many objects one request lists, as in kubectl.
const pageSize = 500

type listOptions struct {
	allNamespaces bool
	selector      string
	limit         int
	output        string
}

func newList(f *Factory) *cobra.Command {
	var o listOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List Runs with what they do, wait for and cost",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return f.list(c.Context(), o) },
	}
	c.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the Runs of all namespaces")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "Select Runs by labels, for example app=review")
	c.Flags().IntVar(&o.limit, "limit", pageSize, "List at most this many Runs; 0 lists all")
	bindOutput(c, &o.output, outputJSON, outputYAML, outputName, outputWide)
	return c
}

func (f *Factory) list(ctx context.Context, o listOptions) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	options, err := f.selection(o.allNamespaces, o.selector)
	if err != nil {
		return err
	}
	runs, more, err := listRuns(ctx, c, o.limit, options...)
	if err != nil {
		return err
	}
	if more {
		fmt.Fprintf(f.Err, "There are more than %d Runs: to list all, use --limit=0, or select some with -l\n", o.limit)
	}
	return f.printRuns(o, runs)
}

// selection returns the options that list the objects of a namespace, or of all, with labels.
func (f *Factory) selection(allNamespaces bool, selector string) ([]client.ListOption, error) { //nolint:revive // flag-parameter: it is the flag -A itself
	selected, err := labels.Parse(selector)
	if err != nil {
		return nil, usageErrorf("reading -l %q: %v", selector, err)
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selected}}
	if allNamespaces {
		return options, nil
	}
	namespace, err := f.Namespace()
	return append(options, client.InNamespace(namespace)), err
}

// listRuns lists Runs page by page, until limit is reached if it is not 0, and returns
// whether there are more.
func listRuns(ctx context.Context, c client.Client, limit int, options ...client.ListOption) ([]v1alpha1.Run, bool, error) {
	var runs []v1alpha1.Run
	next := ""
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(runs))
		}
		var page v1alpha1.RunList
		if err := c.List(ctx, &page, append(options, client.Limit(int64(size)), client.Continue(next))...); err != nil {
			return nil, false, err
		}
		runs, next = append(runs, page.Items...), page.Continue
		if full := limit > 0 && len(runs) >= limit; full || next == "" {
			return runs, next != "", nil
		}
	}
}

func (f *Factory) printRuns(o listOptions, runs []v1alpha1.Run) error {
	switch o.output {
	case outputJSON, outputYAML:
		list := &v1alpha1.RunList{Items: runs}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RunList"))
		for i := range runs {
			runs[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Run"))
		}
		return printObject(f.Out, o.output, list)
	case outputName:
		for i := range runs {
			fmt.Fprintln(f.Out, "run.deckhand.dev/"+runs[i].Name)
		}
		return nil
	}
	if len(runs) == 0 {
		fmt.Fprintln(f.Err, "No Runs found")
		return nil
	}
	t := newTable(f.Out, runColumns(o)...)
	for i := range runs {
		t.row(f.runCells(o, &runs[i])...)
	}
	return t.print()
}

func runColumns(o listOptions) []string {
	columns := []string{"NAME", "TARGET", "STATE", "STEPS", "TOKENS", "COST", "DURATION", "AGE"}
	if o.allNamespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if o.output == outputWide {
		columns = append(columns, "MODEL", "ATTEMPT", "MESSAGE")
	}
	return columns
}

func (f *Factory) runCells(o listOptions, run *v1alpha1.Run) []string {
	p := progressOf(run)
	cells := []string{
		run.Name, target(run), reason(run),
		strconv.FormatInt(p.Counts.Steps, 10), strconv.FormatInt(p.Usage.TotalTokens, 10),
		p.Usage.Cost, p.Usage.Duration, f.since(run.CreationTimestamp),
	}
	if o.allNamespaces {
		cells = append([]string{run.Namespace}, cells...)
	}
	if o.output == outputWide {
		attempt := ""
		if run.Status.Attempt != nil {
			attempt = strconv.Itoa(int(run.Status.Attempt.Number))
		}
		cells = append(cells, p.Model, attempt, message(run))
	}
	return cells
}

func progressOf(run *v1alpha1.Run) *v1alpha1.RunProgress {
	if run.Status.Progress == nil {
		return &v1alpha1.RunProgress{}
	}
	return run.Status.Progress
}

// target is the Agent, or workflow/NAME.
func target(run *v1alpha1.Run) string {
	if run.Spec.Workflow != "" {
		return "workflow/" + run.Spec.Workflow
	}
	return run.Spec.Agent
}

// reason is what the Run does or waits for, or how it ended.
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
