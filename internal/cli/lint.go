package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
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
A directory is searched for .yaml, .yml and .json files; - reads standard input.`,
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
	l := linter{&f.Streams, o.verbose}
	files, err := l.readManifests(ctx, args)
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
		l.printReport(report)
	}
	return errors.Join(err, lintError(report))
}

// A linter reads manifests and prints findings about them.
type linter struct {
	*Streams
	// verbose is whether objects that are not checked are printed too.
	verbose bool
}

// lintError is the error of a report with errors; nil: it has none.
func lintError(r *lint.Report) error {
	if r.Objects == 0 && len(r.Findings) == 0 {
		return fmt.Errorf("no objects of %s were found: nothing was checked", v1alpha1.GroupVersion.Group) //nolint:err113 // for a user
	}
	if n := r.Count(lint.Error); n > 0 {
		return fmt.Errorf("%s in %s: correct the lines above", plural(n, "error"), plural(r.Objects, "object")) //nolint:err113 // for a user
	}
	return nil
}

func (l linter) printReport(r *lint.Report) {
	for _, finding := range r.Findings {
		l.printFinding(finding.File, finding.Line, findingText(finding))
	}
	if l.verbose {
		for _, s := range r.Skipped {
			l.printFinding(s.File, s.Line, fmt.Sprintf("%s/%s: not checked: it is not of the group deckhand.dev", s.Kind, s.Name))
		}
	}
	if r.Count(lint.Error) == 0 && r.Objects > 0 {
		l.sayChecked(r)
	}
}

// findingText returns a finding without its place in a file.
func findingText(f lint.Finding) string {
	var parts []string
	if f.Severity == lint.Warning {
		parts = append(parts, "warning")
	}
	if f.Kind != "" {
		parts = append(parts, f.Kind+"/"+f.Name)
	}
	if f.Path != "" {
		parts = append(parts, f.Path)
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// sayChecked counts what a report without errors is about.
func (l linter) sayChecked(r *lint.Report) {
	others := ""
	if n := len(r.Skipped); n > 0 {
		others = fmt.Sprintf("; %s of other groups not checked (-v lists them)", plural(n, "object"))
	}
	fmt.Fprintf(l.Err, "Checked %s: %s, no errors%s\n", plural(r.Objects, "object"), plural(r.Count(lint.Warning), "warning"), others)
}

func (l linter) printFinding(file string, line int, text string) {
	const width = 4000
	fmt.Fprintf(l.Out, "%s:%d: %s\n", untrusted.Line(file, width), line, untrusted.Line(text, width))
}

// readManifests reads files, the manifests in directories, and standard input for -.
func (l linter) readManifests(ctx context.Context, args []string) ([]lint.File, error) {
	var out []lint.File
	for _, arg := range args {
		read := readPath
		if arg == "-" {
			read = l.readStandardInput
		}
		files, err := read(ctx, arg)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

func (l linter) readStandardInput(ctx context.Context, _ string) ([]lint.File, error) {
	data, err := l.readInput(ctx)
	if err != nil {
		return nil, err
	}
	return []lint.File{{Name: "stdin", Data: data}}, nil
}

func readPath(ctx context.Context, path string) ([]lint.File, error) {
	paths, err := manifestsIn(path)
	if err != nil {
		return nil, err
	}
	var out []lint.File
	for _, path := range paths {
		data, err := readFile(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("%w: make the file readable, or name others", err)
		}
		out = append(out, lint.File{Name: path, Data: data})
	}
	return out, nil
}

// manifestExtensions are the ends of the names of manifests. A file whose name has no dot may be one, too.
var manifestExtensions = []string{".yaml", ".yml", ".json"}

// manifestsIn returns the manifests in a directory, without hidden ones, or the file itself.
func manifestsIn(root string) ([]string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("%w: name a file, a directory, or - for standard input", err)
	}
	ext := filepath.Ext(root)
	switch {
	case info.IsDir():
	case info.Mode().IsRegular() && ext != "" && !slices.Contains(manifestExtensions, ext):
		return nil, usageErrorf("%s is no manifest (.yaml, .yml, .json): name one, its directory, or - for standard input", root)
	default:
		return []string{root}, nil
	}
	var out []string
	begin := root + string(filepath.Separator) // a link to a directory is followed
	err = filepath.WalkDir(begin, func(path string, d fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(d.Name(), ".") && path != begin
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return fs.SkipDir
		case !d.IsDir() && !hidden && slices.Contains(manifestExtensions, filepath.Ext(path)):
			out = append(out, path)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no .yaml, .yml or .json file: name another directory, or a file", root) //nolint:err113 // for a user
	}
	return out, err
}
