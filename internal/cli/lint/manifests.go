package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/shared/skill"
)

// A Reader reads manifests and prints findings about them.
type Reader struct {
	*terminal.Streams
	// Verbose is whether objects that are not checked are printed too.
	Verbose bool
	// Skills is whether a SKILL.md, or the folder with it, is read too.
	Skills bool
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
		switch {
		case arg == "-":
			read = r.readStandardInput
		case r.Skills && isSkill(arg):
			read = readSkill
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

// isSkill reports whether a path is a SKILL.md, or a folder with one.
func isSkill(path string) bool {
	if filepath.Base(path) == skill.File {
		return true
	}
	info, err := os.Stat(filepath.Join(path, skill.File))
	return err == nil && info.Mode().IsRegular()
}

// readSkill reads the SKILL.md of a folder.
func readSkill(ctx context.Context, path string) ([]File, error) {
	if filepath.Base(path) != skill.File {
		path = filepath.Join(path, skill.File)
	}
	data, err := terminal.ReadFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w: make the file readable, or name others", err)
	}
	full, err := filepath.Abs(path)
	return []File{{Name: path, Data: data, Skill: filepath.Base(filepath.Dir(full))}}, err
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

// Objects are the objects of files as the API server would store them, with defaults. Their
// namespaces are ignored.
type Objects struct {
	Agents   map[string]*v1alpha1.Agent
	Models   map[string]*v1alpha1.Model
	Toolsets map[string]*v1alpha1.Toolset
	// Runs are in the order of the files, and may have no name.
	Runs []*v1alpha1.Run
	// Secrets have the data that the API server makes of stringData.
	Secrets map[string]*corev1.Secret
	// SecretsAt has the file and the line of each Secret.
	SecretsAt map[string]string
}

// Load checks files like Files, and returns the objects that the API server would accept.
func Load(ctx context.Context, files []File, now time.Time) (*Report, *Objects, error) {
	l := linter{report: &Report{Findings: []Finding{}, Skipped: []Skipped{}}, now: now}
	if err := l.check(ctx, files); err != nil {
		return nil, nil, err
	}
	out := &Objects{
		Agents: map[string]*v1alpha1.Agent{}, Models: map[string]*v1alpha1.Model{}, Toolsets: map[string]*v1alpha1.Toolset{},
		Secrets: map[string]*corev1.Secret{}, SecretsAt: map[string]string{},
	}
	for _, o := range slices.Concat(l.objects, l.others) {
		if err := out.add(o); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: reading %s %s: %w", o.file, o.line(""), o.kind(), o.name(), err)
		}
	}
	return l.report, out, nil
}

// add adds an object of a kind that Objects has, unless it could not be decoded.
func (o *Objects) add(added *object) error {
	if added.kind() == "Secret" && text(added.content, "apiVersion") == "v1" {
		return o.addSecret(added)
	}
	if added.decoded == nil {
		return nil
	}
	switch added.kind() {
	case "Agent":
		return addTyped(added, o.Agents)
	case "Model":
		return addTyped(added, o.Models)
	case "Toolset":
		return addTyped(added, o.Toolsets)
	case "Run":
		run := &v1alpha1.Run{}
		o.Runs = append(o.Runs, run)
		if err := added.convert(run); err != nil && !added.invalid { // else the findings say why
			return err
		}
		return nil
	default:
		return nil
	}
}

func addTyped[T any, P interface {
	*T
	refs.Object
}](o *object, to map[string]P) error {
	typed := P(new(T))
	err := o.convert(typed)
	if err != nil && !o.invalid {
		return err
	}
	if err != nil { // the findings say why, and other objects may name it
		typed = new(T)
		typed.SetName(o.name())
	}
	to[typed.GetName()] = typed
	return nil
}

func (o *Objects) addSecret(added *object) error {
	data, err := json.Marshal(added.content)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := json.Unmarshal(data, secret); err != nil {
		return err
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	o.Secrets[secret.Name], o.SecretsAt[secret.Name] = secret, fmt.Sprintf("%s:%d", added.file, added.line(""))
	return nil
}
