package page

import (
	"strings"
)

// A writer writes Markdown. Breaks, spaces and marks are written just before the next text,
// so that none is superfluous.
type writer struct {
	links resolve
	out   strings.Builder
	full  bool

	breaks       int    // line ends before the next text
	space        bool   // a space before the next text
	opened       bool   // the line has text
	linePrefix   string // before the next text, on its line
	noBreaks     int    // open headings and cells, in which lines cannot end
	cells        int    // open cells
	levels       []level
	hiddenLevels int // open levels beyond maxLevels
	marks        []mark

	code     strings.Builder // preformatted text
	language string
}

// A level is the prefix of each line in a list item or a quotation.
type level struct {
	first, rest string
	used        bool
}

// A mark surrounds text; it is written with the first text.
type mark struct {
	open, close   string
	written, done bool
}

// Deeper levels and marks are not written.
const (
	maxLevels = 8
	maxMarks  = 16
)

func (w *writer) text() string { return w.out.String() }

func (w *writer) emit(s string) {
	if w.full || w.out.Len()+len(s) > MaxText {
		w.full = true
		return
	}
	w.out.WriteString(s)
}

// line ends a line, block a paragraph.
func (w *writer) line()  { w.breakLine(1) }
func (w *writer) block() { w.breakLine(2) }

func (w *writer) breakLine(n int) {
	if w.noBreaks > 0 {
		w.gap()
		return
	}
	for i := len(w.marks) - 1; i >= 0; i-- {
		if m := &w.marks[i]; m.written && !m.done && n > 1 {
			w.emit(m.close)
			m.done = true
		}
	}
	w.breaks = max(w.breaks, n)
}

// gap puts a space before the next text.
func (w *writer) gap() { w.space = true }

// beginText writes pending breaks, spaces and marks.
func (w *writer) beginText() {
	if w.opened && w.breaks == 0 {
		if w.space {
			w.emit(" ")
		}
	} else {
		w.newLine()
	}
	w.emit(w.linePrefix)
	w.breaks, w.space, w.opened, w.linePrefix = 0, false, true, ""
	for i := range w.marks {
		if m := &w.marks[i]; !m.written {
			w.emit(m.open)
			m.written = true
		}
	}
}

func (w *writer) newLine() {
	if w.out.Len() > 0 {
		w.emit("\n")
		if w.breaks > 1 {
			w.emit(strings.TrimRight(w.prefix(func(l *level) string {
				if l.used {
					return l.rest
				}
				return ""
			}), " ") + "\n")
		}
	}
	w.emit(w.prefix(func(l *level) string {
		if l.used {
			return l.rest
		}
		l.used = true
		return l.first
	}))
}

func (w *writer) prefix(of func(*level) string) string {
	var p strings.Builder
	for i := range w.levels {
		p.WriteString(of(&w.levels[i]))
	}
	return p.String()
}

// words writes text with collapsed white space.
func (w *writer) words(s string) {
	for s != "" {
		word := strings.TrimLeft(s, " \t\n\f")
		w.space = w.space || len(word) < len(s)
		end := strings.IndexAny(word, " \t\n\f")
		if end < 0 {
			end = len(word)
		}
		if word, s = word[:end], word[end:]; word == "" {
			return
		}
		w.beginText()
		if w.cells > 0 {
			word = strings.ReplaceAll(word, "|", `\|`)
		}
		w.emit(word)
	}
}

// mark opens a mark. If it returns true, unmark must follow.
func (w *writer) mark(opening, closing string) bool {
	if len(w.marks) >= maxMarks {
		return false
	}
	for _, m := range w.marks {
		if m.open == opening || m.open == "`" {
			return false
		}
	}
	w.marks = append(w.marks, mark{open: opening, close: closing})
	return true
}

func (w *writer) unmark() {
	m := w.marks[len(w.marks)-1]
	w.marks = w.marks[:len(w.marks)-1]
	if m.written && !m.done {
		w.emit(m.close)
	}
}

// indent adds a prefix to lines until outdent.
func (w *writer) indent(first, rest string) {
	if w.noBreaks > 0 || w.hiddenLevels > 0 || len(w.levels) >= maxLevels {
		w.hiddenLevels++
		return
	}
	w.levels = append(w.levels, level{first: first, rest: rest})
}

func (w *writer) outdent() {
	switch {
	case w.hiddenLevels > 0:
		w.hiddenLevels--
	case len(w.levels) > 0:
		w.levels = w.levels[:len(w.levels)-1]
	}
}

// image writes an image that has an alt text.
func (w *writer) image(alt, src string) {
	alt = strings.Join(strings.Fields(visible(alt)), " ")
	to := w.links(src)
	if alt == "" || to == "" || !strings.HasPrefix(to, "http") {
		w.words(alt)
		return
	}
	w.beginText()
	w.emit("![" + alt + "](" + to + ")")
}

func (w *writer) rule() {
	w.block()
	if w.noBreaks == 0 {
		w.beginText()
		w.emit("---")
		w.block()
	}
}

// fence writes the preformatted text between fences.
func (w *writer) fence() {
	code, language := strings.Trim(w.code.String(), "\n"), w.language
	w.code.Reset()
	w.language = ""
	if strings.TrimSpace(code) == "" {
		return
	}
	if w.noBreaks > 0 {
		w.words(code)
		return
	}
	fence := "```"
	for strings.Contains(code, fence) && len(fence) < 20 {
		fence += "`"
	}
	w.block()
	w.beginText()
	w.emit(fence + language)
	for line := range strings.SplitSeq(code, "\n") {
		w.breaks = 1
		w.beginText()
		w.emit(strings.TrimRight(line, " \t"))
	}
	w.breaks = 1
	w.beginText()
	w.emit(fence)
	w.block()
}

// cell begins a cell of a table, which contains no line breaks.
func (w *writer) cell() {
	w.space = false
	w.beginText()
	w.emit("| ")
	w.noBreaks++
	w.cells++
}

func (w *writer) endCell() {
	w.noBreaks--
	w.cells--
	w.space = false
	w.emit(" ")
}

func (w *writer) endRow() {
	w.space = false
	w.emit("|")
	w.breaks = max(w.breaks, 1)
}

// divider writes the line below the first row of a table.
func (w *writer) divider(cells int) {
	w.beginText()
	for range cells {
		w.emit("|---")
	}
	w.emit("|")
	w.breaks = 1
}

// top returns the open table, or nil.
func (r *reader) top() *table {
	if n := len(r.tables); n > 0 {
		return &r.tables[n-1]
	}
	return nil
}

func (r *reader) beginTable(t *tag) {
	if t.name == "table" {
		r.breakBlock()
		g := r.survey.grids[t.at]
		layout := g == nil || g.layout || g.widest < 2 || r.pre > 0 || r.out.noBreaks > 0
		r.tables = append(r.tables, table{layout: layout})
		return
	}
	switch top := r.top(); {
	case top == nil || top.layout && t.name != "tr":
		r.out.gap()
	case top.layout:
		r.breakLine()
	case t.name == "tr":
		r.out.line()
		top.cells = 0
	default:
		top.cells++
		r.out.cell()
	}
}

func (r *reader) endTable(t *tag) {
	top := r.top()
	switch {
	case top == nil:
	case t.name == "table":
		r.tables = r.tables[:len(r.tables)-1]
		r.breakBlock()
	case top.layout:
	case t.name != "tr":
		r.out.endCell()
	case top.cells > 0:
		r.out.endRow()
		if top.rows++; top.rows == 1 {
			r.out.divider(top.cells)
		}
	}
}
