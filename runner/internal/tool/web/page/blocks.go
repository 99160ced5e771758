package page

import "strings"

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

// cell begins a cell of a table, in which no line ends.
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
