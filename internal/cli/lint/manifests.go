package lint

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// A Reader reads manifests and prints findings about them.
type Reader struct {
	*terminal.Streams
	// Verbose is whether objects that are not checked are printed too.
	Verbose bool
}

// ErrorOf returns the error of a report with errors; nil: it has none.
func ErrorOf(r *Report) error {
	if r.Objects == 0 && len(r.Findings) == 0 {
		return fmt.Errorf("no objects of %s were found: nothing was checked", v1alpha1.GroupVersion.Group) //nolint:err113 // for a user
	}
	if n := r.Count(Error); n > 0 {
		return fmt.Errorf("%s in %s: correct the lines above", terminal.Plural(n, "error"), terminal.Plural(r.Objects, "object")) //nolint:err113 // for a user
	}
	return nil
}

// PrintReport prints the findings of a report, and how much was checked if none is an error.
func (r Reader) PrintReport(report *Report) {
	for _, finding := range report.Findings {
		r.printFinding(finding.File, finding.Line, TextOf(finding))
	}
	if r.Verbose {
		for _, s := range report.Skipped {
			r.printFinding(s.File, s.Line, fmt.Sprintf("%s/%s: not checked: it is not of the group deckhand.dev", s.Kind, s.Name))
		}
	}
	if report.Count(Error) == 0 && report.Objects > 0 {
		r.sayChecked(report)
	}
}

// TextOf returns a finding without its place in a file.
func TextOf(f Finding) string {
	var parts []string
	if f.Severity == Warning {
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

// sayChecked prints the number of checked objects if there are no errors.
func (r Reader) sayChecked(report *Report) {
	others := ""
	if n := len(report.Skipped); n > 0 {
		others = fmt.Sprintf("; %s of other groups not checked (-v lists them)", terminal.Plural(n, "object"))
	}
	fmt.Fprintf(r.Err, "Checked %s: %s, no errors%s\n", terminal.Plural(report.Objects, "object"), terminal.Plural(report.Count(Warning), "warning"), others)
}

func (r Reader) printFinding(file string, line int, text string) {
	const width = 4000
	fmt.Fprintf(r.Out, "%s:%d: %s\n", untrusted.Line(file, width), line, untrusted.Line(text, width))
}

// ReadManifests reads files, the manifests in directories, and standard input for -.
func (r Reader) ReadManifests(ctx context.Context, args []string) ([]File, error) {
	var out []File
	for _, arg := range args {
		read := readPath
		if arg == "-" {
			read = r.readStandardInput
		}
		files, err := read(ctx, arg)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

func (r Reader) readStandardInput(ctx context.Context, _ string) ([]File, error) {
	data, err := r.ReadInput(ctx)
	if err != nil {
		return nil, err
	}
	return []File{{Name: "stdin", Data: data}}, nil
}

func readPath(ctx context.Context, path string) ([]File, error) {
	paths, err := manifestsIn(path)
	if err != nil {
		return nil, err
	}
	var out []File
	for _, path := range paths {
		data, err := terminal.ReadFile(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("%w: make the file readable, or name others", err)
		}
		out = append(out, File{Name: path, Data: data})
	}
	return out, nil
}

// ManifestExtensions are the ends of the names of manifests. A file whose name has no dot may be one, too.
var ManifestExtensions = []string{".yaml", ".yml", ".json"}

// manifestsIn returns the manifests in a directory, without hidden ones, or the file itself.
func manifestsIn(root string) ([]string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("%w: name a file, a directory, or - for standard input", err)
	}
	ext := filepath.Ext(root)
	switch {
	case info.IsDir():
	case info.Mode().IsRegular() && ext != "" && !slices.Contains(ManifestExtensions, ext):
		return nil, exit.Usagef("%s is no manifest (.yaml, .yml, .json): name one, its directory, or - for standard input", root)
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
		case !d.IsDir() && !hidden && slices.Contains(ManifestExtensions, filepath.Ext(path)):
			out = append(out, path)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no .yaml, .yml or .json file: name another directory, or a file", root) //nolint:err113 // for a user
	}
	return out, err
}
