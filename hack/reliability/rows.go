package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A table is one table of the page.
type table struct {
	// Name is the name in the table's markers on the page.
	Name string `json:"table"`
	Rows []row  `json:"rows"`
}

// A row is a fault, how a test causes it, what is expected, and the tests.
type row struct {
	ID        string `json:"id"`
	Fault     string `json:"fault"`
	Injection string `json:"injection,omitempty"`
	Outcome   string `json:"outcome"`
	// Tests name what shows the outcome:
	//   - TestName, in each package that has one
	//   - TestName/subtest
	//   - internal/workflow/graph.TestName, in this package only
	//   - stories/name, a golden file of internal/controller/run, and
	//     workflowrun/stories/name, one of internal/controller/workflowrun;
	//     the name may end in *
	//
	// All stories or all tests of a package cannot be named.
	Tests []string `json:"tests,omitempty"`
}

//go:embed rows.yaml
var source []byte

func load() ([]table, error) {
	var tables []table
	if err := yaml.UnmarshalStrict(source, &tables); err != nil {
		return nil, fmt.Errorf("reading rows.yaml: %w", err)
	}
	seen := map[string]bool{}
	var wrong []error
	for _, t := range tables {
		for _, r := range t.Rows {
			if seen[r.ID] || r.ID == "" || r.Fault == "" || r.Outcome == "" {
				wrong = append(wrong, fmt.Errorf("row %q of table %s: its id is taken, or it lacks an id, a fault or an outcome", r.ID, t.Name))
			}
			seen[r.ID] = true
		}
	}
	return tables, errors.Join(wrong...)
}

// A resolved row knows where its tests are.
type resolved struct {
	row
	table   string
	targets []target
}

// resolve finds the tests of all rows. One that does not exist, or is all stories of a
// package, is an error.
func resolve(tables []table, tests sources) ([]resolved, error) {
	var out []resolved
	var missing []error
	for _, t := range tables {
		for _, r := range t.Rows {
			row := resolved{row: r, table: t.Name}
			for _, name := range r.Tests {
				found := tests.find(name)
				switch {
				case len(found) == 0:
					missing = append(missing, fmt.Errorf("row %s names %s, which does not exist", r.ID, name))
				case strings.HasSuffix(name, "TestStories"):
					missing = append(missing, fmt.Errorf("row %s names all stories of %s: name those that show the row, so that it notices when one is gone", r.ID, name))
				}
				row.targets = append(row.targets, found...)
			}
			out = append(out, row)
		}
	}
	return out, errors.Join(missing...)
}

const e2e = "test/e2e"

// packagesOf returns the packages of the rows, as arguments of go test. Those that
// need a cluster or are of another module are left out.
func packagesOf(rows []resolved) []string {
	var out []string
	for _, r := range rows {
		for _, t := range r.targets {
			elsewhere := slices.ContainsFunc([]string{e2e, "test/cluster", "test/gitops", "examples/custom-runner"}, func(dir string) bool { return strings.HasPrefix(t.dir, dir) })
			if !elsewhere {
				out = append(out, "./"+t.dir)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pattern matches the tests of test/e2e that rows name.
func pattern(rows []resolved) string {
	var out []string
	for _, r := range rows {
		for _, t := range r.targets {
			if t.dir == e2e {
				name, _, _ := strings.Cut(t.test, "/")
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return "^(" + strings.Join(slices.Compact(out), "|") + ")$"
}

// A target is what one name of a row stands for.
type target struct {
	dir string
	// test is a test's name, with its subtest.
	test string
	// story is the name of a golden file, which a subtest of that name plays.
	story string
}

// sources are the tests of the repository, as the code has them.
type sources struct {
	root string
	// tests are the names of tests by package.
	tests map[string][]string
	// text is the code of a package's tests.
	text map[string]string
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// scan reads the tests below a root.
func scan(root string) (sources, error) {
	s := sources{root: root, tests: map[string][]string{}, text: map[string]string{}}
	files := os.DirFS(root)
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, d.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		code, err := fs.ReadFile(files, file)
		s.add(path.Dir(file), string(code))
		return err
	})
	if err != nil {
		return sources{}, fmt.Errorf("looking for tests: %w", err)
	}
	return s, nil
}

// add adds the code of one file of a package.
func (s sources) add(dir, code string) {
	s.text[dir] += code
	for _, m := range testFunc.FindAllStringSubmatch(code, -1) {
		s.tests[dir] = append(s.tests[dir], m[1])
	}
}

var (
	storyName = regexp.MustCompile(`^(?:(\w+)/)?stories/([\w-]+\*?)$`)
	testName  = regexp.MustCompile(`^(?:(.+)\.)?(Test\w+)(?:/(.+))?$`)
)

// find returns the tests that a name of a row stands for; empty: there is none.
func (s sources) find(name string) []target {
	if m := storyName.FindStringSubmatch(name); m != nil {
		return s.stories(m[1], m[2])
	}
	if m := testName.FindStringSubmatch(name); m != nil {
		return s.named(m[1], m[2], m[3])
	}
	return nil
}

func (s sources) stories(controller, name string) []target {
	if controller == "" {
		controller = "run"
	}
	dir := path.Join("internal/controller", controller)
	files, err := filepath.Glob(filepath.Join(s.root, dir, "testdata/stories", name+".txt"))
	if err != nil {
		return nil
	}
	var out []target
	for _, f := range files {
		out = append(out, target{dir: dir, story: strings.TrimSuffix(filepath.Base(f), ".txt")})
	}
	return out
}

func (s sources) named(only, name, sub string) []target {
	var out []target
	for dir, tests := range s.tests {
		if only != "" && dir != only || !slices.Contains(tests, name) {
			continue
		}
		if sub == "" {
			out = append(out, target{dir: dir, test: name})
		} else if s.mentions(dir, sub) {
			out = append(out, target{dir: dir, test: name + "/" + strings.ReplaceAll(sub, " ", "_")})
		}
	}
	slices.SortFunc(out, func(a, b target) int { return strings.Compare(a.dir, b.dir) })
	return out
}

// mentions reports whether the tests of a package contain the name of a subtest. The record shows whether it ran.
func (s sources) mentions(dir, sub string) bool {
	for part := range strings.SplitSeq(sub, "/") {
		if !strings.Contains(s.text[dir], `"`+part+`"`) {
			return false
		}
	}
	return true
}
