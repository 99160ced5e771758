package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// Exit codes, as docs/command-line.md lists them. Those of run --wait are in outcome.go.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
	// exitPipe is what a shell shows of a program that SIGPIPE ended.
	exitPipe = 141
)

// Main runs a command and returns its exit code. Errors are printed with what to do next.
func Main(ctx context.Context, f *Factory, version string, args []string) int {
	root := newRoot(f, version)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ended, is := errors.AsType[endedError](err); is {
		return ended.code
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(f.Err, "Interrupted")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE): // as in: kubectl deckhand logs fix | head
		return exitPipe
	}
	f.printError(err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitError
}

// printError prints an error. Servers may quote what a model wrote.
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
		newList(f), newLogs(f), newTree(f), newCost(f), newHosts(f), newWhy(f), newRun(f), newPending(f),
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

// A usageError is a command line that the user must change.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usageErrorf(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}

func noArguments(c *cobra.Command, args []string) error { return arguments(0, 0)(c, args) }

// arguments accepts from least to most arguments, and otherwise shows how the command is used.
func arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > most && most == 0:
			return usageErrorf("unknown argument %q. See: %s --help", args[0], c.CommandPath())
		case len(args) < least || len(args) > most:
			return usageErrorf("usage: %s. See: %s --help", c.UseLine(), c.CommandPath())
		}
		return nil
	}
}
