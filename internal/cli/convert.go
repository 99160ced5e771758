package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/internal/cli/convert"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

type convertOptions struct {
	files []string // of -f, as kubectl has it
	write bool
}

func newConvert(f *Factory) *cobra.Command {
	var o convertOptions
	c := &cobra.Command{
		Use:   "convert FILE|DIRECTORY|-...",
		Short: "Rewrite manifests with the names of today",
		Long: `Rewrite manifests of before with the names of fields and tools of today, and print them.
Comments and order stay. Then check them as lint does: what is still refused is listed
with what to write, and the exit code is 1.`,
		Args: func(c *cobra.Command, args []string) error {
			return arguments(1, maxLintArguments)(c, slices.Concat(args, o.files))
		},
		RunE: func(c *cobra.Command, args []string) error {
			return manifestConverter{lint.Reader{Streams: &f.Streams}, o.write}.convert(c.Context(), slices.Concat(args, o.files))
		},
	}
	c.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "FILE, DIRECTORY or -, as an argument names it")
	c.Flags().BoolVarP(&o.write, "write", "w", false, "Write the files in place, and print nothing")
	return c
}

// A manifestConverter converts manifests, and prints or writes them.
type manifestConverter struct {
	lint.Reader

	write bool
}

func (m manifestConverter) convert(ctx context.Context, args []string) error {
	if m.write && slices.Contains(args, "-") {
		return exit.Usagef("standard input cannot be written in place: remove --write, or name a file")
	}
	before, err := m.ReadManifests(ctx, args)
	if err != nil {
		return err
	}
	after, changes := convert.Files(before)
	report, err := lint.Files(ctx, after, m.Now())
	if err != nil {
		return err
	}
	if m.write {
		err = writeChanged(before, after)
	} else {
		err = m.print(after)
	}
	if err != nil {
		return err
	}
	for _, c := range changes {
		m.note(c.File, c.Line, fmt.Sprintf("%s/%s: %s: now %s", c.Kind, c.Name, c.Path, c.Now))
	}
	fmt.Fprintf(m.Err, "Converted %s of %s\n", terminal.Plural(len(changes), "field"), terminal.Plural(report.Objects, "object"))
	m.sayMentions(after)
	m.sayMissing(report)
	if report.Count(lint.Error) > 0 {
		fmt.Fprintln(m.Err, "Still refused, by lines of the converted manifests:")
	}
	m.sayUnconverted(after, report)
	for _, f := range report.Findings {
		if f.Severity == lint.Error {
			m.note(f.File, f.Line, lint.TextOf(f))
		}
	}
	return lint.ErrorOf(report)
}

// sayMentions lists former names in labels, annotations and scripts, which are read without an error.
func (m manifestConverter) sayMentions(files []lint.File) {
	mentions := convert.Mentions(files)
	if len(mentions) > 0 {
		fmt.Fprintln(m.Err, "To change yourself, by lines of the converted manifests:")
	}
	for _, found := range mentions {
		m.note(found.File, found.Line, fmt.Sprintf("%s is now %s", found.Was, found.Is))
	}
}

// sayMissing names the objects without which a name of before may be one of today.
func (m manifestConverter) sayMissing(report *lint.Report) {
	if missing := slices.Compact(slices.Sorted(slices.Values(report.Missing))); len(missing) > 0 {
		const width = 4000
		fmt.Fprintf(m.Err, "Not checked is what depends on objects that are not in the files: %s. Name their files too\n", untrusted.Line(strings.Join(missing, ", "), width))
	}
}

// sayUnconverted prints why documents with errors were not converted.
func (m manifestConverter) sayUnconverted(files []lint.File, report *lint.Report) {
	for _, u := range convert.WithAliases(files) {
		isRefused := func(f lint.Finding) bool {
			return f.Severity == lint.Error && f.File == u.File && u.First <= f.Line && f.Line <= u.Last
		}
		if slices.ContainsFunc(report.Findings, isRefused) {
			m.note(u.File, u.Line, fmt.Sprintf("the document has YAML aliases, so it is not converted: write values in place of aliases such as %s", u.Alias))
		}
	}
}

// note prints a line on standard error, because the user may redirect the manifests.
func (m manifestConverter) note(file string, line int, text string) {
	const width = 4000
	fmt.Fprintf(m.Err, "%s:%d: %s\n", untrusted.Line(file, width), line, untrusted.Line(text, width))
}

// print prints the manifests of all files as one. It leaves out files that are not text, because the output may be a
// terminal. Findings name these files.
func (m manifestConverter) print(files []lint.File) error {
	files = slices.DeleteFunc(slices.Clone(files), func(f lint.File) bool { return !lint.IsText(f.Data) })
	for i, file := range files {
		data := file.Data
		if i > 0 && !bytes.HasPrefix(data, []byte("---")) {
			data = append([]byte("---\n"), data...)
		}
		if i < len(files)-1 && !bytes.HasSuffix(data, []byte("\n")) {
			data = append(data, '\n')
		}
		if _, err := m.Out.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// writeChanged writes the files that were changed. A file is replaced as a whole, so that it is never
// there in part.
func writeChanged(before, after []lint.File) error {
	var errs []error
	for i, file := range after {
		if !bytes.Equal(file.Data, before[i].Data) {
			errs = append(errs, replaceFile(file.Name, file.Data))
		}
	}
	return errors.Join(errs...)
}

func replaceFile(name string, data []byte) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(temporary.Name()))
	}
	return nil
}
