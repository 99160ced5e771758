package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// retryOptions are the flags of retry.
type retryOptions struct {
	runOptions

	node string
}

func newRetry(f *Factory) *cobra.Command {
	var o retryOptions
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run a workflow again from what failed, in a new Run",
		Long: "Create a Run of a Workflow that retries another one, which has ended: nodes that succeeded\n" +
			"keep their results, if prompt, input, user and Agent are the same and all that they wait for\n" +
			"is kept too. So is an approval, if it asks the same. All other nodes run again.\n\n" +
			"The new Run has the Workflow, input, user, limits and ttlSecondsAfterFinished of the old one.\n" +
			"Labels are not copied. What it uses counts from zero.",
		Example: "  kubectl deckhand retry release-x7k2p --wait\n" +
			"  kubectl deckhand retry release-x7k2p --node test     # also what succeeded, from this node on",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return o.create(c.Context(), f, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&o.node, "node", "", "The node that runs again, with all nodes that wait for it; by default the nodes that did not succeed")
	flags.BoolVarP(&o.wait, "wait", "w", false, "Print the conversations until the new Run ends, and ask what it asks; the exit code says how it ended")
	o.logs.window.Bind(flags, "With --wait, color the conversation", "With --wait, print the events as JSON lines")
	flags.StringVar(&o.Name, "name", "", "Name of the Run; by default it is generated")
	o.BindLabels(flags)
	o.cluster.bind(flags)
	bindOutput(c, &o.output, outputName, outputJSON, outputYAML)
	return c
}

// create creates the Run that retries the named one.
func (o *retryOptions) create(ctx context.Context, f *Factory, name string) error {
	if o.logs.window.JSON && !o.wait {
		return exit.Usagef("--json prints the events of a Run that is watched: add --wait")
	}
	for _, check := range []func() error{o.CheckValues, o.checkClusterFlags, func() error { return terminal.CheckColor(o.logs.window.Color) }} {
		if err := check(); err != nil {
			return err
		}
	}
	c, err := f.Client()
	if err != nil {
		return err
	}
	source, err := f.findRun(ctx, c, name)
	if err != nil {
		return err
	}
	r, run := runCreator{f, o.runOptions}, o.successor(source)
	for _, check := range []func() error{
		func() error { return o.checkSource(source) },
		func() error { return checkRightToContinue(ctx, c, source) },
		func() error { return r.complete(ctx, c, run) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	o.warnOfLoops(ctx, f, c, source)
	return r.createDescribed(ctx, c, run)
}

// warnOfLoops names the loops that reached their limit: each iteration succeeded and is reused, so the retry fails in the
// same place. What made until true may have changed, so this is no error.
func (o *retryOptions) warnOfLoops(ctx context.Context, f *Factory, c client.Client, source *v1alpha1.Run) {
	var w v1alpha1.Workflow
	if o.node != "" || c.Get(ctx, client.ObjectKey{Namespace: source.Namespace, Name: source.Spec.Workflow}, &w) != nil {
		return // the user may not read it: the operator fails the Run with the same words
	}
	for _, had := range source.Status.Nodes {
		at := slices.IndexFunc(w.Spec.Nodes, func(n v1alpha1.Node) bool { return n.Name == had.Name && n.Loop != nil })
		if had.Reason != v1alpha1.ReasonIterationLimit || had.Counts == nil || at < 0 || cmp.Or(w.Spec.Nodes[at].Loop.MaxIterations, v1alpha1.DefaultIterations) > had.Counts.Started {
			continue
		}
		fmt.Fprintf(f.Err, "Node %s has made all its %d iterations, and they are kept: it fails again with IterationLimit, unless the Workflow has changed. Raise loop.maxIterations, or run it again with --node %[1]s\n", had.Name, had.Counts.Started)
	}
}

// successor returns the Run that retries another one, without the flags.
func (o *retryOptions) successor(source *v1alpha1.Run) *v1alpha1.Run {
	run := &v1alpha1.Run{Spec: *source.Spec.DeepCopy()}
	run.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: source.Name, UID: string(source.UID), Node: o.node}
	run.Spec.DesiredState = ""
	run.GenerateName = runflags.GeneratedName(run)
	return run
}

// checkSource returns an error if a Run has not ended, or can never be retried. It reads nothing.
func (o *retryOptions) checkSource(run *v1alpha1.Run) error {
	again := requests.CommandAbout("run --from", client.ObjectKey{Namespace: run.Namespace, Name: "run/" + run.Name})
	switch {
	case run.Spec.Workflow == "":
		return fmt.Errorf("run %s is a Run of Agent %s, and only a workflow can be retried. To continue its work: %s. To do it again: %s", run.Name, run.Spec.Agent, requests.Command("continue", run, "-p TEXT"), again)
	case !isFinished(run):
		return fmt.Errorf("run %s has not ended (%s). To retry it after its end, first: kubectl wait --for=condition=Finished --timeout=-1s run/%s -n %s", run.Name, reason(run), run.Name, run.Namespace)
	case reason(run) == v1alpha1.ReasonRestored, run.Status.WorkflowRevision == "":
		return fmt.Errorf("run %s has no results to keep (%s). To do its work: %s", run.Name, reason(run), again)
	case len(chainOf(run)) >= v1alpha1.MaxContinued:
		return fmt.Errorf("run %s has continued %d Runs, one after the other, and a Run can continue at most %d: create a Run without continueFrom", run.Name, len(chainOf(run)), v1alpha1.MaxContinued)
	}
	return o.checkNode(run)
}

// checkNode returns an error if the Run has no node to run again.
func (o *retryOptions) checkNode(run *v1alpha1.Run) error {
	var names []string
	for _, n := range run.Status.Nodes {
		if n.Name == o.node {
			return nil
		}
		names = append(names, n.Name)
	}
	switch {
	case o.node != "":
		return exit.Usagef("run %s has no node %s%s. Its nodes are %s", run.Name, o.node, template.Similar(o.node, names), strings.Join(names, ", "))
	case runstatus.OutcomeOf(run.Status).Status == metav1.ConditionTrue:
		return exit.Usagef("all nodes of Run %s succeeded: say with --node which one runs again: %s", run.Name, strings.Join(names, ", "))
	}
	return nil
}
