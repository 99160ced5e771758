// Command performance writes docs/performance.md from what was measured: make
// performance, make bench-failover, make bench-scale.
//
//	performance [-parts FILE] [-cluster FILE] [-failover FILE] [-scale FILE] PAGE
//
// Each file is what hack/bench printed. Without one, or where it does not exist, the
// page keeps what it says of that, and when that was.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/template"
)

func main() {
	files := map[string]*string{}
	for _, s := range sections {
		files[s.name] = flag.String(s.name, "", "what hack/bench "+s.name+" printed")
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(flag.Arg(0), files); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// write makes the page anew and tells of bars that are not held.
func write(page string, files map[string]*string) error {
	old, err := optional(page)
	if err != nil {
		return err
	}
	measured := map[string]string{}
	for name, file := range files {
		if measured[name], err = optional(*file); err != nil {
			return fmt.Errorf("reading what was measured: %w", err)
		}
	}
	fresh, missed, err := render(old, measured)
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

// A section is what one command measures.
type section struct {
	name string // of the flag, and of hack/bench's verb
	head string // its first one on the page, up to that of another section
	verb string // of make
}

var sections = []section{
	{"cluster", "\n## On a real cluster\n", "bench-cluster"},
	{"failover", "\n## When the leader is killed\n", "bench-failover"},
	{"scale", "\n## At scale\n", "bench-scale"},
	{"parts", "\n## The runner as a program\n", "bench"},
}

// render is the page and the rows whose bar is not held.
func render(old string, measured map[string]string) (page string, missed []string, err error) {
	r := renderer{}
	values := map[string]any{}
	for _, s := range sections {
		if measured[s.name] != "" {
			values[s.name] = parse(measured[s.name])
		} else if values["kept_"+s.name] = s.kept(old); values["kept_"+s.name] == "" {
			return "", nil, fmt.Errorf("the page has no section %q yet: make %s first", strings.Trim(s.head, "\n# "), s.verb)
		}
	}
	layouts, err := template.New("page").Funcs(template.FuncMap{"table": r.table, "size": size}).Parse(layout)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	err = layouts.Execute(&b, values)
	return b.String(), r.missed, err
}

// kept is what a page says of a section, with its head and without the next one's.
func (s section) kept(page string) string {
	_, rest, found := strings.Cut(page, s.head)
	if !found {
		return ""
	}
	for _, other := range sections {
		rest, _, _ = strings.Cut(rest, other.head)
	}
	return strings.TrimSpace(s.head + rest)
}
