package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// Main runs a command and returns its exit code. Errors are printed with what to do next.
func Main(ctx context.Context, f *Factory, version string, args []string) int {
	root := newRoot(f, version)
	root.SetArgs(args)
	return exit.With(ctx, root.ExecuteContext(ctx), f.Err, explain)
}

// printError prints an error, escaped because servers may quote texts of a model.
func (f *Factory) printError(err error) {
	fmt.Fprintln(f.Err, "Error: "+untrusted.Text(explain(err)))
}

func newRoot(f *Factory, version string) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-deckhand",
		Short:         "Show and control Runs of Deckhand",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl deckhand"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.Err)
	root.SetFlagErrorFunc(flagError)
	f.bindFlags(root.PersistentFlags())
	root.AddCommand(
		newList(f), newLogs(f), newTree(f), newCost(f), newHosts(f), newWhy(f), newRun(f), newContinue(f), newFork(f), newRetry(f), newPending(f),
		newApprove(f), newDeny(f), newAnswer(f), newGrant(f), newMessage(f),
		newPause(f), newResume(f), newStop(f), newLint(f), newConvert(f), newCp(f), newResult(f), newVersion(f, version), newOptions(f),
	)
	for _, c := range root.Commands() {
		c.Aliases = aliases[c.Name()]
	}
	setHelp(root)
	nameCompletion{f}.addTo(root)
	return root
}

func newVersion(f *Factory, version string) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if output != "" {
				return printValue(f.Out, output, map[string]string{"version": version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintln(f.Out, version)
			return nil
		},
	}
	bindOutput(c, &output, outputJSON, outputYAML)
	return c
}

func noArguments(c *cobra.Command, args []string) error { return arguments(0, 0)(c, args) }

// arguments accepts from least to most arguments, and otherwise shows how the command is used.
func arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > most && most == 0:
			return exit.Usagef("unknown argument %q. See: %s --help", args[0], c.CommandPath())
		case len(args) < least || len(args) > most:
			return exit.Usagef("usage: %s. See: %s --help", c.UseLine(), c.CommandPath())
		}
		return nil
	}
}
