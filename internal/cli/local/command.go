// Package local runs Agents on this machine, without a cluster: kubectl deckhand run --local, and the program
// deckhand-local, which has nothing else and links no client of Kubernetes.
package local

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// Main runs the Agent that the arguments of a program describe, and returns the exit code.
func Main(ctx context.Context, s *terminal.Streams, version string, args []string) int {
	c := newCommand(s, version)
	c.SetArgs(args)
	return exit.With(ctx, c.ExecuteContext(ctx), s.Err, func(err error) string { return err.Error() })
}

func newCommand(s *terminal.Streams, version string) *cobra.Command {
	r := Run{Streams: s, Program: "deckhand-local"}
	c := &cobra.Command{
		Use:           "deckhand-local -f FILE... [AGENT] [TEXT]",
		Short:         "Run an Agent on this machine, as kubectl deckhand run --local does",
		Example:       "  deckhand-local -f agent.yaml -C ~/project -p 'Fix the tests.' --model-key OPENAI_API_KEY",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          runflags.Arguments,
		RunE: func(c *cobra.Command, args []string) error {
			const byFlag = false // only -f names what runs
			if err := r.Description.SetArguments(args, byFlag, c.CommandPath()+" -f FILE TEXT"); err != nil {
				return err
			}
			if err := errors.Join(r.Description.CheckValues(), terminal.CheckColor(r.Shown.Color)); err != nil {
				return err
			}
			return r.Do(c.Context())
		},
	}
	c.SetIn(s.In)
	c.SetOut(s.Out)
	c.SetErr(s.Err)
	c.SetFlagErrorFunc(runflags.Invalid)
	r.Description.Bind(c.Flags(), "Files and directories with all manifests; - for standard input")
	r.Flags.Bind(c.Flags(), "")
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ToUpper(f.Usage[:1]) + f.Usage[1:] }) // nothing is before it
	r.Shown.Bind(c.Flags(), "Color the conversation", "Print the events as JSON lines")
	return c
}
