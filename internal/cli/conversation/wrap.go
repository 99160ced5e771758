package conversation

import "strings"

// Cells returns the maximum number of columns of a character: wide ones, such as Chinese, are above U+1100.
func Cells(r rune) int {
	const tab, firstWide = 8, 0x1100
	switch {
	case r == '\t':
		return tab
	case r >= firstWide:
		return 2
	}
	return 1
}

func cellsOf(text string) int {
	n := 0
	for _, r := range text {
		n += Cells(r)
	}
	return n
}

// Fit returns the beginning of a text that fits into some columns.
func Fit(text string, columns int) string {
	fits, rest := cut(text, columns)
	if rest == "" {
		return fits
	}
	fits, _ = cut(text, columns-Cells('…'))
	return fits + "…"
}

// cut returns the beginning of a text that fits into some columns, of at least one character, and the
// rest.
func cut(text string, columns int) (fits, rest string) {
	used := 0
	for at, r := range text {
		if used += Cells(r); used > columns && at > 0 {
			return text[:at], text[at:]
		}
	}
	return text, ""
}

// A wrap is the state of breaking lines at words. A word that is not ended is held back, because the
// next piece of a text may continue it.
type wrap struct {
	// column is how many columns of the current line are used.
	column int
	// blanks and word are the end of the text so far, and style is how they are printed.
	blanks, word, style string
}

// putWords prints text without line ends, broken at words.
func (p *Printer) putWords(style, text string) {
	if style != p.wrap.style {
		p.endWord()
		p.wrap.style = style
	}
	for text != "" {
		at := strings.IndexAny(text, " \t")
		if at < 0 {
			p.wrap.word += text
			break
		}
		if p.wrap.word += text[:at]; p.wrap.word != "" {
			p.endWord()
		}
		p.wrap.blanks += text[at : at+1]
		text = text[at+1:]
	}
	if cellsOf(p.wrap.word) >= p.room() { // a word that fits on no line, or a language without blanks
		p.endWord()
	}
}

// endWord prints the word that is held back, on the next line if it does not fit. A word that fits on no line is
// broken.
func (p *Printer) endWord() {
	w := &p.wrap
	text, word := w.blanks+w.word, w.word
	w.blanks, w.word = "", ""
	if text == "" {
		return
	}
	if p.lineStart {
		p.startLine()
	}
	if end := p.margin() + p.room(); w.column+cellsOf(text) > end {
		if word == "" { // blanks at the end of a line
			return
		}
		if w.column > p.margin() && cellsOf(word) <= p.room() {
			p.breakLine()
			text = word
		}
	}
	for {
		fits, rest := cut(text, p.margin()+p.room()-w.column)
		p.styled(w.style, fits)
		w.column += cellsOf(fits)
		if text = rest; text == "" {
			return
		}
		p.breakLine()
	}
}

func (p *Printer) breakLine() {
	p.out.WriteByte('\n')
	p.startLine()
}

// margin returns the columns before the text of a line, and room the columns that are left for words.
func (p *Printer) margin() int { return cellsOf(p.opts.Prefix + p.indent + p.hang) }

func (p *Printer) room() int {
	const least = 20
	return max(p.opts.Width-p.margin(), least)
}
