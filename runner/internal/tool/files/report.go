package files

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A report is a list of results, of maxResult characters at most.
type report struct {
	lines []string
	chars int
	cut   bool
}

// add adds a line if it fits.
func (r *report) add(line string) {
	n := utf8.RuneCountInString(line) + 1
	if r.cut = r.cut || r.chars+n > maxResult; r.cut {
		return
	}
	r.lines = append(r.lines, line)
	r.chars += n
}

// text is the report, or what is said when there is nothing to report.
func (r *report) text(none string) string {
	lines := r.lines
	if len(lines) == 0 && !r.cut {
		return none
	}
	if r.cut {
		lines = append(lines, truncated)
	}
	return strings.Join(lines, "\n")
}

// label is the name of a path in a list. One that would break the line, or
// write to a terminal, is quoted.
func (t *Toolset) label(at string) string {
	name := strings.ToValidUTF8(t.name(at), string(utf8.RuneError))
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
