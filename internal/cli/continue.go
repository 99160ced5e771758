package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// copiedSpec describes what a Run has of the Run that it continues.
const copiedSpec = `
The new Run has the Agent, input, user, limits, maxRetries, maxDisruptions and
ttlSecondsAfterFinished of the old one. Prompt, images and labels are not copied.
What it uses counts from zero, and approvals are asked for again.`

// continueOptions are the flags of continue and fork.
type continueOptions struct {
	runOptions

	agent     string
	workspace string
	// step is the last step that is kept, as 14 or s14; only of fork.
	step string
	yes  bool
}

func newContinue(f *Factory) *cobra.Command {
	var o continueOptions
	c := &cobra.Command{
		Use:   "continue RUN [TEXT]",
		Short: "Continue the work of a Run that has ended, with its conversation and its files, in a new Run",
		Long: "Create a Run that continues another one, which has ended: its model reads the\n" +
			"conversation of that Run, and then TEXT. Calls that have a result are not made again.\n" + copiedSpec,
		Example: "  kubectl deckhand continue fix-x7k2p 'Add a test, too.' --wait\n" +
			"  kubectl deckhand continue fix-x7k2p                             # after a limit or a failure",
		RunE: func(c *cobra.Command, args []string) error { return o.create(c.Context(), f, args) },
	}
	o.bind(c)
	return c
}

func newFork(f *Factory) *cobra.Command {
	var o continueOptions
	c := &cobra.Command{
		Use:   "fork RUN --step N [TEXT]",
		Short: "Continue a Run from an earlier step, in a new Run",
		Long: "Create a Run that continues another one, which has ended, from one of its steps: its model\n" +
			"reads the conversation up to there. Calls after the step may be made again, even if they\n" +
			"changed something: the command lists them and asks. Files are as that Run left them at its\n" +
			"end. To fork with another Model, name an Agent that has it with --agent.\n" + copiedSpec,
		Example: "  kubectl deckhand fork fix-x7k2p --step 14\n" +
			"  kubectl deckhand fork fix-x7k2p --step 14 'Do it without a new dependency.' --agent fixer-large",
		RunE: func(c *cobra.Command, args []string) error {
			if o.step == "" {
				return exit.Usagef("say with --step which step is the last to keep, for example --step 14 for s14 of the conversation that kubectl deckhand logs prints. To keep all: kubectl deckhand continue")
			}
			return o.create(c.Context(), f, args)
		},
	}
	c.Flags().StringVar(&o.step, "step", "", "Number of the last step to keep, such as 14 for s14 of the conversation. The calls that s14 makes have their results in later steps")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Create the Run without listing the calls that may be made again, and without asking")
	o.bind(c)
	return c
}

// bind adds the flags that both commands have.
func (o *continueOptions) bind(c *cobra.Command) {
	verb := c.Name()
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 2 {
			return exit.Usagef("%s takes one RUN and one TEXT, and these are %d words. Write the text in quotes: %s %s 'TEXT'", verb, len(args), c.CommandPath(), args[0])
		}
		return arguments(1, 2)(c, args)
	}
	flags := c.Flags()
	o.BindWork(flags, "What the agent should do next, as TEXT behind the Run; - for standard input")
	flags.StringVar(&o.agent, "agent", "", "The Agent that continues the work; by default that of the Run")
	flags.StringVar(&o.workspace, "workspace", string(v1alpha1.ContinueCopy), "Copy: the agent has a copy of the files of the Run. Share: it works on these files, after all other Runs that do. Fresh: it has the files that an Agent starts with, which its model reads")
	flags.BoolVarP(&o.wait, "wait", "w", false, "Print the conversation until the new Run ends, and ask what it asks; the exit code says how it ended")
	o.logs.window.Bind(flags, "With --wait, color the conversation", "With --wait, print the events as JSON lines")
	o.BindLabels(flags)
	o.cluster.bind(flags)
	bindOutput(c, &o.output, outputName, outputJSON, outputYAML)
}

// create creates the Run that continues the named one.
func (o *continueOptions) create(ctx context.Context, f *Factory, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	c, err := f.Client()
	if err != nil {
		return err
	}
	source, err := f.findRun(ctx, c, args[0])
	if err != nil {
		return err
	}
	r := runCreator{f, o.runOptions}
	run, err := o.successor(source)
	if err != nil {
		return err
	}
	for _, check := range []func() error{
		func() error { return checkEnded(source) },
		func() error { return checkRightToContinue(ctx, c, source) },
		func() error { return checkVolume(ctx, c, source) },
		func() error { return o.checkPrompt(source) },
		func() error { return r.complete(ctx, c, run) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if run.Spec.ContinueFrom.Step != nil && !o.yes {
		isTrial := o.cluster.dryRun != dryRunNone
		agreed, err := forkAsker{f, c, source, run, isTrial}.ask(ctx)
		if err != nil || !agreed {
			return err
		}
	}
	return r.createDescribed(ctx, c, run)
}

// check refuses flags with values that they cannot have.
func (o *continueOptions) check(args []string) error {
	if len(args) > 1 {
		if o.Prompt != "" {
			return exit.Usagef("the prompt is given twice, as TEXT and with -p: leave out one of them")
		}
		o.Prompt = args[1]
	}
	known := []string{string(v1alpha1.ContinueCopy), string(v1alpha1.ContinueShare), string(v1alpha1.ContinueFresh)}
	switch {
	case !slices.Contains(known, o.workspace):
		return exit.Usagef("--workspace %s: write Copy, Share or Fresh%s", o.workspace, template.Similar(o.workspace, known))
	case o.logs.window.JSON && !o.wait:
		return exit.Usagef("--json prints the events of a Run that is watched: add --wait")
	}
	for _, check := range []func() error{o.CheckValues, o.checkClusterFlags, func() error { return terminal.CheckColor(o.logs.window.Color) }} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkPrompt returns an error if there is nothing left to do for an agent.
func (o *continueOptions) checkPrompt(source *v1alpha1.Run) error {
	ended := reason(source)
	if o.step != "" || o.Prompt != "" || ended != v1alpha1.ReasonFinished && ended != v1alpha1.ReasonRejected {
		return nil
	}
	return exit.Usagef("run %s ended with reason %s, so there is nothing left to do: say what to do next, as in %s", source.Name, ended, requests.Command("continue", source, "-p TEXT"))
}

// successor returns the Run that continues another one, without the prompt and the flags.
func (o *continueOptions) successor(source *v1alpha1.Run) (*v1alpha1.Run, error) {
	from := &v1alpha1.ContinueFrom{Run: source.Name, UID: string(source.UID), Workspace: v1alpha1.ContinueWorkspace(o.workspace)}
	if o.step != "" {
		step, err := strconv.ParseInt(strings.TrimPrefix(o.step, "s"), 10, 64)
		if err != nil || step < 1 {
			return nil, exit.Usagef("--step %s: write the number of a step, such as 14 for s14 of the conversation", o.step)
		}
		from.Step = &step
	}
	run := &v1alpha1.Run{Spec: *source.Spec.DeepCopy()}
	run.Spec.ContinueFrom = from
	run.Spec.Prompt, run.Spec.Images, run.Spec.DesiredState = "", nil, ""
	if o.agent != "" {
		run.Spec.Agent = strings.TrimPrefix(o.agent, "agent/")
	}
	run.GenerateName = runflags.GeneratedName(run)
	return run, nil
}

// checkRightToContinue returns an error if an admission policy would refuse the user the conversation of a Run.
func checkRightToContinue(ctx context.Context, c client.Client, run *v1alpha1.Run) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: run.Namespace, Verb: "get", Group: v1alpha1.GroupVersion.Group, Resource: "runs", Subresource: "session", Name: run.Name,
		},
	}}
	if err := c.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("you may not get runs/session in namespace %s, which continuing Run %s needs, because its agent reads the whole conversation. Ask an administrator to bind the ClusterRole deckhand-user to you in this namespace", run.Namespace, run.Name)
	}
	return nil
}
