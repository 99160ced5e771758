// Package lint finds what the API server and the operator would refuse in manifests, without a cluster: bytes in,
// findings out.
//
// It runs the same code. The packages of the API server evaluate the schemas and rules of the CRDs, in the order of the
// API server: decode strictly, default, validate, evaluate rules and admission policies. Objects that pass are checked
// as the operator does for Ready, against the objects in the same files. Objects that are missing in the files cause a
// warning, and checks that depend on them are skipped.
//
// The messages of the API server about some mistakes are short, for example about an unknown field. Hints add what to
// write: a similar name, the name for a field of another tool, or the text that a comma cut.
package lint

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/skill"
)

// A File is one input.
type File struct {
	Name string
	Data []byte
	// Skill is the name of the folder, if the file is its SKILL.md; empty: the file has manifests.
	Skill string
}

// A Severity is whether an object is refused.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the API server refuses the object, or it does not become Ready
	Warning Severity = "warning" // likely not what is meant, or unknown without a cluster
)

// A Finding is one problem.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Severity Severity `json:"severity"`
	Kind     string   `json:"kind,omitempty"`
	Name     string   `json:"name,omitempty"`
	Path     string   `json:"path,omitempty"` // of the field, for example spec.tools[0].builtin
	Message  string   `json:"message"`
	// RefusedBy is the component that refuses the object, for an error.
	RefusedBy Refuser `json:"refusedBy,omitempty"`
}

// A Refuser is a part of the cluster that refuses an object.
type Refuser string

// The components that refuse objects: the API server when an object is created, or the operator, so that the object
// does not become Ready or, if it is a Run, fails.
const (
	APIServer Refuser = "APIServer"
	Operator  Refuser = "Operator"
)

// A Skipped is an object of another group, which is not checked.
type Skipped struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// A Report has the findings about some files.
type Report struct {
	Findings []Finding `json:"findings"`
	Skipped  []Skipped `json:"notChecked"`
	Objects  int       `json:"objects"` // how many were checked
	// Missing are the objects that others refer to, and that are not in the files: what depends on them is not checked.
	Missing []string `json:"-"`
}

// Count returns how many findings have a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Files checks files together; now is the time for Schedules. An error means that a CRD or a policy of this program
// cannot be read.
func Files(ctx context.Context, files []File, now time.Time) (*Report, error) {
	l := linter{report: &Report{Findings: []Finding{}, Skipped: []Skipped{}}, now: now}
	if err := l.check(ctx, files); err != nil {
		return nil, err
	}
	return l.report, nil
}

// check checks files, and fills the report.
func (l *linter) check(ctx context.Context, files []File) error {
	for _, file := range files {
		l.read(file)
	}
	for _, o := range l.objects {
		if err := l.checkObject(ctx, o); err != nil {
			return err
		}
	}
	l.index()
	for _, o := range l.objects {
		if o.invalid {
			l.checkRulesOfInvalid(ctx, o)
			continue
		}
		for _, err := range each(l.checkReady(ctx, o)) {
			path, message := o.locate(err.Error())
			l.addRefused(o, path, message)
		}
	}
	slices.SortFunc(l.report.Findings, func(a, b Finding) int {
		return cmp.Or(slices.Index(l.files, a.File)-slices.Index(l.files, b.File), a.Line-b.Line,
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return nil
}

// each returns the errors that errors.Join joined, or the error itself: each is a separate finding.
func each(err error) []error {
	switch joined, is := err.(interface{ Unwrap() []error }); {
	case err == nil:
		return nil
	case !is || strings.Count(err.Error(), "\n") == 0:
		return []error{err}
	default:
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, each(e)...)
		}
		return out
	}
}

// A linter collects the objects of all files and the findings.
type linter struct {
	report  *Report
	files   []string // their names, in order
	objects []*object
	others  []*object // of other groups
	byName  map[objectName]*object
	now     time.Time
}

// read adds the objects of a file.
func (l *linter) read(file File) {
	l.files = append(l.files, file.Name)
	if file.Skill != "" {
		l.readSkill(file)
		return
	}
	for _, d := range split(file) {
		if err := d.parse(); err != nil {
			l.report.Findings = append(l.report.Findings, *err)
			continue
		}
		for _, o := range d.objects() {
			if !o.isOurs() {
				l.others = append(l.others, o)
				l.report.Skipped = append(l.report.Skipped, Skipped{File: o.file, Line: o.line(""), Kind: o.kind(), Name: o.name()})
				continue
			}
			l.report.Objects++
			l.objects = append(l.objects, o)
		}
	}
}

// readSkill checks a SKILL.md.
func (l *linter) readSkill(file File) {
	l.report.Objects++
	_, err := skill.Parse(file.Skill, file.Data)
	if invalid, is := errors.AsType[*skill.InvalidError](err); is {
		l.report.Findings = append(l.report.Findings, Finding{
			File: file.Name, Line: max(invalid.Line, 1), Severity: Error, Kind: "Skill", Name: file.Skill, Message: invalid.Problem, RefusedBy: Operator,
		})
	}
}

// add adds a finding about a field of an object.
func (l *linter) add(o *object, severity Severity, path, message string) {
	f := Finding{File: o.file, Line: o.line(path), Severity: severity, Kind: o.kind(), Name: o.name(), Path: path, Message: message}
	if severity == Error {
		o.invalid, o.invalidPaths, f.RefusedBy = true, append(o.invalidPaths, path), APIServer
	}
	l.report.Findings = append(l.report.Findings, f)
}

// addRefused adds what the operator refuses.
func (l *linter) addRefused(o *object, path, message string) {
	l.add(o, Error, path, message)
	l.report.Findings[len(l.report.Findings)-1].RefusedBy = Operator
}

// checkObject checks one object by itself.
func (l *linter) checkObject(ctx context.Context, o *object) error {
	schema, err := schemaOf(o.kind())
	if err != nil {
		return err
	}
	if problem := o.checkType(schema != nil); problem != nil {
		l.add(o, Error, problem.path, problem.message)
		return nil
	}
	for _, p := range o.duplicates {
		l.add(o, Error, p.path, p.message)
	}
	for _, p := range withoutConsequences(append(schema.decode(o), schema.validate(ctx, o)...)) {
		l.add(o, Error, p.path, o.withHint(p))
	}
	if !o.invalid {
		refused, err := checkPolicies(ctx, o)
		if err != nil {
			return err
		}
		for _, p := range refused {
			l.add(o, Error, p.path, p.message)
		}
	}
	for _, p := range o.cutTexts() {
		l.add(o, Warning, p.path, p.message)
	}
	return nil
}

// withoutConsequences removes problems that follow from a value of a wrong type: that it is not a supported value, and
// that its fields are unknown.
func withoutConsequences(problems []problem) []problem {
	within := func(p problem) bool {
		return slices.ContainsFunc(problems, func(of problem) bool {
			inside := p.path == of.path && p.kind != otherType || strings.HasPrefix(p.path, of.path+".")
			return of.kind == otherType && inside
		})
	}
	var out []problem
	for _, p := range problems {
		if !within(p) {
			out = append(out, p)
		}
	}
	return out
}
