package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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
