package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// chainOf returns the names of the Runs that a Run continues, the last first. Before its first attempt only that of
// its spec is known.
func chainOf(run *v1alpha1.Run) []string {
	switch {
	case run.Status.ContinuedFrom != nil:
		return run.Status.ContinuedFrom.Runs
	case run.Spec.ContinueFrom != nil:
		return []string{run.Spec.ContinueFrom.Run}
	}
	return nil
}

// chainText returns the names of the Runs that a Run continues, with what they used; empty: it continues none.
func chainText(run *v1alpha1.Run) string {
	names := chainOf(run)
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names, ", ")
	if from := run.Spec.ContinueFrom; from != nil && from.Step != nil {
		text = fmt.Sprintf("%s up to step %d", names[0], *from.Step)
		if len(names) > 1 {
			text += ", " + strings.Join(names[1:], ", ")
		}
	}
	before := run.Status.ContinuedFrom
	if before == nil {
		return text
	}
	used := fmt.Sprintf("%d tokens", before.TotalTokens)
	if before.Cost != "" {
		used += ", " + before.Cost
	}
	return text + " (" + used + " before it)"
}

// A runCost is what a Run used, with its child Runs.
type runCost struct {
	Tokens int64 `json:"tokens"`
	// CostMicroUSD is absent if a Model without prices was used.
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
}

// plus returns the sum of two costs. It has no price if one of them has none.
func (c runCost) plus(more runCost) runCost {
	sum := runCost{Tokens: c.Tokens + more.Tokens}
	if c.CostMicroUSD != nil && more.CostMicroUSD != nil {
		cost := *c.CostMicroUSD + *more.CostMicroUSD
		sum.CostMicroUSD = &cost
	}
	return sum
}

func (c runCost) cells(name string) []string {
	cost := ""
	if c.CostMicroUSD != nil {
		cost = task.Money(*c.CostMicroUSD)
	}
	return []string{name, strconv.FormatInt(c.Tokens, 10), cost}
}

// costOf returns what a Run used. A Run that asked no model has a cost of 0.
func costOf(run *v1alpha1.Run) runCost {
	usage := progressOf(run).Usage
	cost := runCost{Tokens: usage.TotalTokens, CostMicroUSD: usage.CostMicroUSD}
	if usage.TotalTokens == 0 {
		cost.CostMicroUSD = cmp.Or(cost.CostMicroUSD, new(int64))
	}
	return cost
}

// printRun prints what a Run used, and what the Runs used that it continues.
func (a accountant) printRun(ctx context.Context, name string) error {
	if a.o.since != "" || a.o.selector != "" || a.o.all || a.o.isGrouped {
		return exit.Usagef("--by, --since, -l and -A choose Runs to sum up: leave them out, or leave out %s", name)
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	run, err := a.findRun(ctx, c, name)
	if err != nil {
		return err
	}
	own, before := costOf(run), run.Status.ContinuedFrom
	total := own
	if before != nil {
		total = own.plus(runCost{before.TotalTokens, before.CostMicroUSD})
	}
	if a.o.output != "" {
		return printValue(a.Out, a.o.output, struct {
			Run           string                  `json:"run"`
			Usage         runCost                 `json:"usage"`
			ContinuedFrom *v1alpha1.ContinuedFrom `json:"continuedFrom,omitempty"`
			Total         runCost                 `json:"total"`
		}{run.Name, own, before, total})
	}
	t := newTable(a.Out, "RUN", "TOKENS", "COST")
	t.row(own.cells(run.Name)...)
	if before != nil {
		chain := runCost{before.TotalTokens, before.CostMicroUSD}
		t.row(chain.cells(fmt.Sprintf("%s before it", terminal.Plural(len(before.Runs), "Run")))...)
		t.row(total.cells("total")...)
	}
	if err := t.print(); err != nil {
		return err
	}
	if before != nil {
		fmt.Fprintln(a.Err, "It continues "+chainText(run))
	}
	if total.CostMicroUSD == nil {
		fmt.Fprintln(a.Err, "The cost is missing, because Models without prices were used: set spec.prices of the Models")
	}
	return nil
}
