package main

import (
	_ "embed"
	"errors"
	"fmt"
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
