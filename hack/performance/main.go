// Command performance writes docs/performance.md from what was measured: make
// performance.
//
//	performance PAGE PARTS CLUSTER
//
// PARTS and CLUSTER are what hack/bench printed. Without CLUSTER the page keeps
// what it says of the cluster, and when that was.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/template"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: performance PAGE PARTS CLUSTER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// write makes the page anew and tells of bars that are not held.
func write(page, parts, cluster string) error {
	old, err := optional(page)
	if err != nil {
		return err
	}
	runner, err := os.ReadFile(parts)
	if err != nil {
		return fmt.Errorf("reading what was measured: %w", err)
	}
	whole, err := optional(cluster)
	if err != nil {
		return err
	}
	fresh, missed, err := render(old, string(runner), whole)
	if err != nil {
		return err
	}
	for _, m := range missed {
		fmt.Fprintln(os.Stderr, "not held:", m)
	}
	return os.WriteFile(page, []byte(fresh), 0o600)
}

// optional reads a file that need not be there.
func optional(name string) (string, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

//go:embed page.md.tmpl
var layout string

// clusterHead begins the section that a page may keep.
const clusterHead = "\n## On a real cluster\n"

// render is the page and the rows whose bar is not held.
func render(old, parts, cluster string) (page string, missed []string, err error) {
	r := renderer{runner: parse(parts), cluster: parse(cluster)}
	layouts, err := template.New("page").Funcs(template.FuncMap{"table": r.table}).Parse(layout)
	if err != nil {
		return "", nil, err
	}
	kept := ""
	if cluster == "" {
		if kept = section(old, clusterHead); kept == "" {
			return "", nil, errors.New("the page says nothing of the cluster yet: make bench-cluster first")
		}
	}
	var b strings.Builder
	err = layouts.Execute(&b, map[string]any{"Runner": r.runner, "Cluster": r.cluster, "Kept": kept})
	return b.String(), r.missed, err
}

// section is a section of a page, with its head and without the next one's.
func section(page, head string) string {
	_, rest, found := strings.Cut(page, head)
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return strings.TrimSpace(head+rest) + "\n"
}
