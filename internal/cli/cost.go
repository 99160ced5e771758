package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

type costOptions struct {
	by, since, selector string
	all                 bool
	// isGrouped is whether the command line has --by.
	isGrouped bool
	output    string
}

func newCost(f *Factory) *cobra.Command {
	var o costOptions
	c := &cobra.Command{
		Use:     "cost [RUN]",
		Short:   "Sum up what Runs cost; with RUN, what it cost with the Runs that it continues",
		Example: "  kubectl deckhand cost --by model --since 7d\n  kubectl deckhand cost -A --by label=team",
		Args:    arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o.isGrouped = c.Flags().Changed("by")
			if len(args) > 0 {
				return accountant{f, o}.printRun(c.Context(), args[0])
			}
			return accountant{f, o}.print(c.Context())
		},
	}
	c.Flags().StringVar(&o.by, "by", "agent", "What is summed up: agent, model, user, namespace or label=KEY")
	c.Flags().StringVar(&o.since, "since", "", "Only Runs that were created in this time, for example 12h or 7d; by default all that exist")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "Only Runs with these labels")
	c.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Runs of all namespaces")
	bindOutput(c, &o.output, outputJSON, outputYAML)
	return c
}

// A costRow is the usage of the Runs with the same key.
type costRow struct {
	Key  string `json:"key"`
	Runs int64  `json:"runs"`
	// Unpriced is how many of them used Models without prices, so that their cost is missing.
	Unpriced        int64  `json:"runsWithoutPrice"`
	Steps           int64  `json:"steps"`
	InputTokens     int64  `json:"inputTokens"`
	CacheReadTokens int64  `json:"cacheReadTokens"`
	OutputTokens    int64  `json:"outputTokens"`
	CostMicroUSD    int64  `json:"costMicroUSD"`
	Cost            string `json:"cost"`
}

// An accountant sums up the usage of Runs.
type accountant struct {
	*Factory
	o costOptions
}

func (a accountant) print(ctx context.Context) error {
	o := a.o
	key, err := costKey(o.by)
	if err != nil {
		return err
	}
	oldest, err := a.oldest(o.since)
	if err != nil {
		return err
	}
	selected, err := labels.Parse(o.selector)
	if err != nil {
		return exit.Usagef("reading -l %q: %v", o.selector, err)
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	// All Runs are listed, because what child Runs used is taken from their parents.
	options, err := a.selection(o.all, "")
	if err != nil {
		return err
	}
	runs, err := listRuns(ctx, c, options...)
	if err != nil {
		return err
	}
	rows := map[string]*costRow{}
	runs = a.plausible(runs)
	own := ownUsage(runs)
	for i := range runs {
		run := &runs[i]
		if run.CreationTimestamp.Time.Before(oldest) || !selected.Matches(labels.Set(run.Labels)) {
			continue
		}
		name := key(run)
		if rows[name] == nil {
			rows[name] = &costRow{Key: name}
		}
		rows[name].add(own[run.UID])
	}
	return a.printRows(slices.AppendSeq([]*costRow{}, maps.Values(rows))) // as JSON, no rows are an empty list
}

// plausible returns the Runs with plausible usage, and names the others. Only a compromised runner reports implausible
// usage, and only to a cluster with an older schema. The check keeps sums from overflowing.
func (a accountant) plausible(runs []v1alpha1.Run) []v1alpha1.Run {
	var left []string
	kept := slices.DeleteFunc(runs, func(run v1alpha1.Run) bool {
		if isPlausible(progressOf(&run)) {
			return false
		}
		left = append(left, run.Namespace+"/"+run.Name)
		return true
	})
	if n := len(left); n > 0 {
		more := ""
		if n > maxNamed {
			left, more = left[:maxNamed], fmt.Sprintf(" and %d more", n-maxNamed)
		}
		fmt.Fprintf(a.Err, "Left out, because their usage cannot be true: %s%s. See status.progress.usage of these Runs, and delete them\n", strings.Join(left, ", "), more)
	}
	return kept
}

// maxNamed is how many Runs a message names.
const maxNamed = 5

// isPlausible reports whether each number is within the bounds of the schema.
func isPlausible(p *v1alpha1.RunProgress) bool {
	u := p.Usage
	numbers := []int64{u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens, u.ReasoningTokens, u.TotalTokens}
	if u.CostMicroUSD != nil {
		numbers = append(numbers, *u.CostMicroUSD)
	}
	for _, n := range numbers {
		if n < 0 || n > v1alpha1.MaxUsage {
			return false
		}
	}
	return p.Counts.Steps >= 0 && p.Counts.Steps <= v1alpha1.MaxCount
}

// costKey returns the key by which Runs are grouped.
func costKey(by string) (func(*v1alpha1.Run) string, error) {
	label, isLabel := strings.CutPrefix(by, "label=")
	switch {
	case by == "agent":
		return target, nil
	case by == "model":
		return func(run *v1alpha1.Run) string { return progressOf(run).Model }, nil
	case by == "user":
		return func(run *v1alpha1.Run) string { return run.Spec.User }, nil
	case by == "namespace":
		return func(run *v1alpha1.Run) string { return run.Namespace }, nil
	case isLabel && label != "":
		return func(run *v1alpha1.Run) string { return run.Labels[label] }, nil
	}
	return nil, exit.Usagef("--by %q: write agent, model, user, namespace or label=KEY", by)
}

// oldest returns the time before which no Run counts.
func (a accountant) oldest(since string) (time.Time, error) {
	if since == "" {
		return time.Time{}, nil
	}
	const day = 24 * time.Hour
	if days, is := strings.CutSuffix(since, "d"); is {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return a.Now().Add(-time.Duration(n) * day), nil
		}
	}
	d, err := time.ParseDuration(since)
	if err != nil || d < 0 {
		return time.Time{}, exit.Usagef("--since %q: write a time such as 90m, 12h or 7d", since)
	}
	return a.Now().Add(-d), nil
}

// ownUsage returns the usage of each Run without its child Runs, so that nothing is counted twice. The usage of a
// Workflow's Run is the sum of its child Runs; that of a Run which delegates includes its ended child Runs.
func ownUsage(runs []v1alpha1.Run) map[types.UID]*costRow {
	own := map[types.UID]*costRow{}
	byUID := map[types.UID]*v1alpha1.Run{}
	for i := range runs {
		run := &runs[i]
		p := progressOf(run)
		row := &costRow{
			Runs: 1, Steps: p.Counts.Steps, InputTokens: p.Usage.InputTokens,
			CacheReadTokens: p.Usage.CacheReadTokens, OutputTokens: p.Usage.OutputTokens,
		}
		switch {
		case p.Usage.CostMicroUSD != nil:
			row.CostMicroUSD = *p.Usage.CostMicroUSD
		case p.Usage.InputTokens+p.Usage.OutputTokens > 0:
			row.Unpriced = 1
		}
		own[run.UID], byUID[run.UID] = row, run
	}
	for i := range runs {
		child := &runs[i]
		owner := metav1.GetControllerOf(child)
		if owner == nil || byUID[owner.UID] == nil {
			continue
		}
		parent := byUID[owner.UID]
		if isWorkflow := parent.Spec.Workflow != ""; isWorkflow || isFinished(child) {
			own[parent.UID].subtract(progressOf(child), isWorkflow)
		}
	}
	return own
}

// subtract subtracts the usage of a child Run from its parent. A Run that delegates does not include the steps of its
// child Runs.
func (r *costRow) subtract(child *v1alpha1.RunProgress, steps bool) { //nolint:revive // flag-parameter: it is what differs between the two kinds of parents
	less := func(n *int64, by int64) { *n = max(*n-by, 0) }
	if steps {
		less(&r.Steps, child.Counts.Steps)
	}
	less(&r.InputTokens, child.Usage.InputTokens)
	less(&r.CacheReadTokens, child.Usage.CacheReadTokens)
	less(&r.OutputTokens, child.Usage.OutputTokens)
	if child.Usage.CostMicroUSD != nil {
		less(&r.CostMicroUSD, *child.Usage.CostMicroUSD)
	}
	if r.InputTokens+r.OutputTokens == 0 {
		r.Unpriced = 0
	}
}

func (r *costRow) add(more *costRow) {
	r.Runs += more.Runs
	r.Unpriced += more.Unpriced
	r.Steps += more.Steps
	r.InputTokens += more.InputTokens
	r.CacheReadTokens += more.CacheReadTokens
	r.OutputTokens += more.OutputTokens
	r.CostMicroUSD += more.CostMicroUSD
}

func (a accountant) printRows(rows []*costRow) error {
	o := a.o
	slices.SortFunc(rows, func(x, y *costRow) int {
		return cmp.Or(cmp.Compare(y.CostMicroUSD, x.CostMicroUSD), cmp.Compare(y.OutputTokens, x.OutputTokens), cmp.Compare(x.Key, y.Key))
	})
	total := &costRow{Key: "total"}
	for _, row := range rows {
		row.Cost = task.Money(row.CostMicroUSD)
		total.add(row)
	}
	total.Cost = task.Money(total.CostMicroUSD)
	if o.output != "" {
		return printValue(a.Out, o.output, map[string]any{"by": o.by, "rows": rows, "total": total})
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.Err, "No Runs found")
		return nil
	}
	t := newTable(a.Out, strings.ToUpper(o.by), "RUNS", "STEPS", "INPUT", "CACHED", "OUTPUT", "COST", "SHARE")
	for _, row := range append(rows, total) {
		share := ""
		if total.CostMicroUSD > 0 {
			share = strconv.FormatFloat(100*float64(row.CostMicroUSD)/float64(total.CostMicroUSD), 'f', 1, 64) + "%"
		}
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		t.row(cmp.Or(row.Key, "(none)"), number(row.Runs), number(row.Steps), number(row.InputTokens), number(row.CacheReadTokens), number(row.OutputTokens), row.Cost, share)
	}
	if err := t.print(); err != nil {
		return err
	}
	if total.Unpriced > 0 {
		fmt.Fprintf(a.Err, "The cost of %s is missing, because Models without prices were used: set spec.prices of the Models\n", terminal.Plural(total.Unpriced, "Run"))
	}
	if o.by == "model" {
		fmt.Fprintln(a.Err, "A Run counts for the Model that answered last")
	}
	return nil
}
