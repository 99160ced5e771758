package main

import (
	"bufio"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
