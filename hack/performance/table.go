package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A renderer makes tables and notes whose bar is not held.
type renderer struct {
	missed []string
	failed []string // those of missed that must be held
}

// failure returns an error for the bars that must be satisfied and are not.
func (r *renderer) failure() error {
	if len(r.failed) == 0 {
		return nil
	}
	return fmt.Errorf("not held: %s", strings.Join(r.failed, "; "))
}

// whole are the tables whose figures are all made by one command, which the page
// names above them.
var whole = []string{"cluster", "failover", "scale"}

// table returns one of the tables, in Markdown.
func (r *renderer) table(name string, from *measurements) (string, error) {
	rows, alone := tables[name], !slices.Contains(whole, name)
	columns := []string{"what", "figure"}
	barred := slices.ContainsFunc(rows, func(w row) bool { return w.bar != bar{} })
	if barred {
		columns = append(columns, "bar")
	}
	if alone {
		columns = append(columns, "command")
	}
	lines := []string{line(columns), strings.Repeat("|---", len(columns)) + "|"}
	for _, w := range rows {
		value, figure, err := w.figure(from)
		if err != nil {
			return "", err
		}
		cells := []string{w.what, figure}
		if barred {
			cells = append(cells, r.held(w, value, figure))
		}
		if alone {
			cells = append(cells, "`"+w.command()+"`")
		}
		lines = append(lines, line(cells))
	}
	return strings.Join(lines, "\n"), nil
}

// size returns the value of a metric as a whole number with commas, for example 1,000.
func size(from *measurements, bench, unit string) (string, error) {
	n, err := from.of(metric{"test/bench", bench, unit})
	if err != nil {
		return "", err
	}
	text := strconv.Itoa(int(n))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text, nil
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// held returns the bar of a row as text, with a mark if the figure does not satisfy it.
func (r *renderer) held(w row, value float64, figure string) string {
	unit := w.as
	if w.ratio() {
		unit = times
	}
	format := w.bar.format(unit)
	if w.bar.holds(value) {
		return format
	}
	missed := fmt.Sprintf("%s: %s, bar %s", w.what, figure, format)
	r.missed = append(r.missed, missed)
	if w.ratio() || w.isCount() {
		r.failed = append(r.failed, missed)
	}
	return format + ", **not held**"
}

// figure returns the value of a row, and all of it in words.
func (r row) figure(m *measurements) (value float64, text string, err error) {
	if value, err = m.of(r.of); err != nil {
		return 0, "", err
	}
	text = format(value, r.as)
	for _, more := range r.extra {
		also, err := m.of(metric{r.of.pkg, r.of.bench, more.unit})
		if err != nil {
			return 0, "", err
		}
		text += ", " + format(also, more.as)
	}
	if !r.ratio() {
		return value, text, nil
	}
	by, err := m.of(r.over)
	if err != nil {
		return 0, "", err
	}
	return value / by, fmt.Sprintf("%s (%s over %s)", format(value/by, times), text, format(by, r.as)), nil
}

// isCount reports whether a figure is a number of things, or a share of them.
func (r row) isCount() bool { return (r.as == "" || r.as == "%") && !r.ratio() }

func (r row) ratio() bool { return r.over != metric{} }

// of returns the median of the measured values.
func (m *measurements) of(of metric) (float64, error) {
	value, ok := m.median(of)
	if !ok {
		return 0, fmt.Errorf("nothing was measured of Benchmark%s in ./%s, in %s: was it renamed?", of.bench, of.pkg, of.unit)
	}
	return value, nil
}

// command makes the figure anew.
func (r row) command() string {
	bench, _, _ := strings.Cut(r.of.bench, "/")
	flags := ""
	if slices.ContainsFunc(append(r.extra, extraFigure{unit: r.of.unit}), func(b extraFigure) bool { return b.unit == "allocs/op" }) {
		flags = "-benchmem "
	}
	return fmt.Sprintf("go test -run '^$' -bench %s %s./%s", bench, flags, r.of.pkg)
}

// A scale is the units of figures of one kind, smallest first.
type scale struct {
	step  float64
	names []string
}

var scales = map[string]scale{
	"ns":  {1000, []string{"ns", "µs", "ms", "s"}},
	"B":   {1024, []string{"B", "KiB", "MiB", "GiB"}},
	"KiB": {1024, []string{"KiB", "MiB", "GiB"}},
	"ms":  {1000, []string{"ms", "s"}},
}

// format writes a figure with its unit, such as 1.25 ms.
func format(value float64, unit string) string {
	if s, ok := scales[unit]; ok {
		for i := 0; i+1 < len(s.names) && math.Abs(value) >= s.step; i++ {
			value, unit = value/s.step, s.names[i+1]
		}
	}
	switch unit {
	case times:
		return strconv.FormatFloat(value, 'f', 2, 64) + times
	case "":
		return significant(value)
	}
	return significant(value) + " " + unit
}

// times is the unit of a ratio.
const times = "×"

// significant formats a number with three significant digits, and with all digits before the point.
func significant(v float64) string {
	digits := 2
	for size := math.Abs(v); size >= 10 && digits > 0; size /= 10 {
		digits--
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// A bar is a bound for a figure; the zero bar allows any figure.
type bar struct {
	sign  string // ≤ or ≥
	value float64
}

func atMost(v float64) bar { return bar{"≤", v} }

func atLeast(v float64) bar { return bar{"≥", v} }

func (b bar) holds(v float64) bool {
	switch b.sign {
	case "≤":
		return v <= b.value
	case "≥":
		return v >= b.value
	}
	return true
}

func (b bar) format(unit string) string {
	switch {
	case b.sign == "":
		return ""
	case b == atMost(0):
		return format(0, unit)
	}
	return fmt.Sprintf("%s %s", b.sign, format(b.value, unit))
}
