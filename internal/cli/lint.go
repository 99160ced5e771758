package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/internal/cli/lint"
)

type lintOptions struct {
	output  string
	files   []string // of -f, as kubectl has it
	verbose bool
}

func newLint(f *Factory) *cobra.Command {
	var o lintOptions
	c := &cobra.Command{
		Use:   "lint FILE|DIRECTORY|-...",
		Short: "Check manifests without a cluster",
		Long: `Check manifests as the API server and the operator would, without a cluster.
A directory is searched for .yaml, .yml and .json files; - reads standard input. A SKILL.md,
or the folder of a skill, is checked as the runner checks it.`,
		Args: func(c *cobra.Command, args []string) error {
			return arguments(1, maxLintArguments)(c, slices.Concat(args, o.files))
		},
		RunE: func(c *cobra.Command, args []string) error {
			return lintManifests(c.Context(), f, o, slices.Concat(args, o.files))
		},
	}
	c.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "FILE, DIRECTORY or -, as an argument names it")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "List objects that are not checked too")
	bindOutput(c, &o.output, outputJSON)
	return c
}

// maxLintArguments is more than a shell passes.
const maxLintArguments = 1 << 20

func lintManifests(ctx context.Context, f *Factory, o lintOptions, args []string) error {
	l := lint.Reader{Streams: &f.Streams, Verbose: o.verbose, Skills: true}
	files, err := l.ReadManifests(ctx, args)
	if err != nil {
		return err
	}
	report, err := lint.Files(ctx, files, f.Now())
	if err != nil {
		return err
	}
	if o.output == outputJSON {
		err = printValue(f.Out, outputJSON, report)
	} else {
		l.PrintReport(report)
	}
	return errors.Join(err, lint.ErrorOf(report))
}
