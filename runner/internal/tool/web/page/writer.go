package page

import "strings"

// A writer lays text out as Markdown. Breaks, spaces and marks are written
// before the text that needs them, so that none is left over.
type writer struct {
	links resolve
	out   strings.Builder
	full  bool

	breaks int    // how many line ends are wanted before what is next
	space  bool   // a space is wanted
	opened bool   // something stands on the line
	lead   string // what is wanted before what is next, on its line
	flat   int    // where lines cannot end: headings and cells
	cells  int    // cells that are open
	levels []level
	deep   int // levels beyond those that are shown
	marks  []mark

	code     strings.Builder // text that stays as it is
	language string
}

// A level is what stands before each line within a list item or a quotation.
type level struct {
	first, rest string
	used        bool
}

// A mark is around text; it is written once there is some.
type mark struct {
	open, close   string
	written, done bool
}

// Deeper levels and marks are not shown: no reader could tell.
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
func (w *writer) line()  { w.brk(1) }
func (w *writer) block() { w.brk(2) }

func (w *writer) brk(n int) {
	if w.flat > 0 {
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

// gap wants a space.
func (w *writer) gap() { w.space = true }

// begin writes what is wanted before text.
func (w *writer) begin() {
	if w.opened && w.breaks == 0 {
		if w.space {
			w.emit(" ")
		}
	} else {
		w.newLine()
	}
	w.emit(w.lead)
	w.breaks, w.space, w.opened, w.lead = 0, false, true, ""
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

// words writes text whose white space means nothing.
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
		w.begin()
		if w.cells > 0 {
			word = strings.ReplaceAll(word, "|", `\|`)
		}
		w.emit(word)
	}
}

// mark wants a mark around what follows; it reports whether unmark must follow.
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

// indent puts something before the lines that follow, until outdent.
func (w *writer) indent(first, rest string) {
	if w.flat > 0 || w.deep > 0 || len(w.levels) >= maxLevels {
		w.deep++
		return
	}
	w.levels = append(w.levels, level{first: first, rest: rest})
}

func (w *writer) outdent() {
	switch {
	case w.deep > 0:
		w.deep--
	case len(w.levels) > 0:
		w.levels = w.levels[:len(w.levels)-1]
	}
}

// image writes a picture that is described.
func (w *writer) image(alt, src string) {
	alt = strings.Join(strings.Fields(visible(alt)), " ")
	to := w.links(src)
	if alt == "" || to == "" || !strings.HasPrefix(to, "http") {
		w.words(alt)
		return
	}
	w.begin()
	w.emit("![" + alt + "](" + to + ")")
}

func (w *writer) rule() {
	w.block()
	if w.flat == 0 {
		w.begin()
		w.emit("---")
		w.block()
	}
}
