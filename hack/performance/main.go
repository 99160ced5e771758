// Command performance writes docs/performance.md from what was measured: make
// performance, make bench-failover, make bench-scale.
//
//	performance [-parts FILE] [-cluster FILE] [-failover FILE] [-scale FILE] PAGE
//	performance -counts FILE
//
// Each file is what hack/bench printed. Without one, or where it does not exist, the
// page keeps what it says of that, and when that was. Bars of ratios and counts, which do
// not depend on the machine, must be held: otherwise it fails after it wrote the page.
//
// With -counts it writes nothing, and checks the bars of counts in the output of hack/bench
// scale, at any load.
package main

import (
	"bufio"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

func main() {
	files := map[string]*string{}
	for _, s := range sections {
		files[s.name] = flag.String(s.name, "", "what hack/bench "+s.name+" printed")
	}
	counts := flag.String("counts", "", "what hack/bench scale printed, to check its counts alone")
	flag.Parse()
	if *counts != "" {
		exit(checkCounts(*counts))
	}
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	exit(write(flag.Arg(0), files))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// checkCounts checks the bars of counts at scale.
func checkCounts(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading what was measured: %w", err)
	}
	r, rows := renderer{}, slices.DeleteFunc(slices.Clone(tables["scale"]), func(w row) bool { return !w.isCount() || w.bar == bar{} })
	from := parse(string(text))
	for _, w := range rows {
		value, figure, err := w.figure(from)
		if err != nil {
			return err
		}
		r.held(w, value, figure)
	}
	return r.failure()
}

// write writes the page. It prints the bars that are not satisfied, and returns an error for bars of ratios and counts.
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
	fresh, r, err := render(old, measured)
	if err != nil {
		return err
	}
	for _, m := range r.missed {
		fmt.Fprintln(os.Stderr, "not held:", m)
	}
	return errors.Join(os.WriteFile(page, []byte(fresh), 0o600), r.failure())
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

// render returns the page, and the renderer, which has the bars that are not satisfied.
func render(old string, measured map[string]string) (page string, r *renderer, err error) {
	r = &renderer{}
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
	return b.String(), r, err
}

// kept returns the text of a section in a page, with its heading.
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

// measurements are what one run of the benchmarks printed.
type measurements struct {
	// Where has the date and the machine, CPU the processor, Kubernetes the version of the cluster, if any.
	Where, CPU, Kubernetes string

	values map[metric][]float64
}

// A metric is one figure of a benchmark.
type metric struct {
	// pkg is the folder of its package, bench its name as it is printed, without
	// the word Benchmark.
	pkg, bench, unit string
}

// module is the prefix of the paths of our packages.
const module = "github.com/deckhand-dev/deckhand/"

// processors matches the number of processors at the end of a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)

// parse reads the output of `go test -bench`, and ignores other lines.
func parse(text string) *measurements {
	m := &measurements{values: map[metric][]float64{}}
	pkg := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if where, ok := strings.CutPrefix(line, "# "); ok {
			m.Where = where
		}
		if cpu, ok := strings.CutPrefix(line, "cpu: "); ok {
			m.CPU = cpu
		}
		if version, ok := strings.CutPrefix(line, "kubernetes: v"); ok {
			m.Kubernetes = version
		}
		if path, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = strings.TrimPrefix(path, module)
		}
		if rest, ok := strings.CutPrefix(line, "Benchmark"); ok {
			m.add(pkg, strings.Fields(rest))
		}
	}
	return m
}

// add takes the figures of one line: a name, how often it ran, and then values
// with their units.
func (m *measurements) add(pkg string, fields []string) {
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return // no line of figures
		}
		of := metric{pkg: pkg, bench: processors.ReplaceAllString(fields[0], ""), unit: fields[i+1]}
		m.values[of] = append(m.values[of], value)
	}
}

// median returns the median of a metric; false: it was not measured.
func (m *measurements) median(of metric) (float64, bool) {
	all := slices.Sorted(slices.Values(m.values[of]))
	if len(all) == 0 {
		return 0, false
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, true
}
