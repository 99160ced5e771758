package page

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// A reader converts one part of a page.
type reader struct {
	survey *survey
	part   part
	out    *writer

	inside int // open elements that contain the content
	pre    int // open elements with preformatted text
	lists  []list
	tables []table
}

// A list is an open list; next is 0 without numbers.
type list struct{ next int }

// A table is an open table.
type table struct {
	layout      bool // it is used for layout
	rows, cells int
}

func (r *reader) run(src string) { walk(src, r.part.hides, r) }

// shown reports whether the current text is part of the content.
func (r *reader) shown() bool {
	return !r.out.full && (r.inside > 0 || r.part == inBody || r.part == everything)
}

func (r *reader) text(s string) {
	switch {
	case !r.shown():
	case r.pre > 0:
		r.out.code.WriteString(s)
	default:
		r.out.words(s)
	}
}

func (r *reader) open(t *tag) {
	if r.part.contains(*t) {
		r.inside++
	}
	if r.shown() {
		r.beginText(t)
	}
}

func (r *reader) close(t *tag) {
	if r.shown() {
		r.end(t)
	}
	if r.part.contains(*t) {
		r.inside--
	}
}

// marks are the inline elements that are kept, each with its mark.
var marks = map[string]string{
	"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`", "del": "~~", "s": "~~",
}

func (r *reader) beginText(t *tag) {
	switch t.name {
	case "pre":
		if r.pre++; r.pre == 1 {
			r.out.block()
		}
		r.language(t)
	case "code":
		r.language(t)
		r.inline(t)
	case "br":
		r.breakLine()
	case "hr":
		r.out.rule()
	case "img":
		r.out.image(t.attrs["alt"], t.attrs["src"])
	case "ul", "ol", "li", "dl", "dt", "dd", "blockquote":
		r.beginLevel(t)
	case "table", "tr", "td", "th":
		r.beginTable(t)
	default:
		r.beginOther(t)
	}
}

func (r *reader) beginOther(t *tag) {
	switch level := t.heading(); {
	case level > 0 && r.pre == 0:
		r.out.block()
		r.out.linePrefix = strings.Repeat("#", level) + " "
		r.out.noBreaks++
	case t.block():
		r.breakBlock()
	default:
		r.inline(t)
	}
}

func (r *reader) end(t *tag) {
	switch t.name {
	case "pre":
		if r.pre--; r.pre == 0 {
			r.out.fence()
		}
	case "ul", "ol", "li", "dl", "dt", "dd", "blockquote":
		r.endLevel(t)
	case "table", "tr", "td", "th":
		r.endTable(t)
	default:
		r.endOther(t)
	}
}

func (r *reader) endOther(t *tag) {
	switch {
	case t.heading() > 0 && r.pre == 0:
		r.out.noBreaks--
		r.out.linePrefix = ""
		r.out.block()
	case t.marks:
		r.out.unmark()
	case t.block():
		r.breakBlock()
	}
}

// inline marks text, unless it is preformatted.
func (r *reader) inline(t *tag) {
	if r.pre > 0 {
		return
	}
	if t.name == "a" {
		if to := r.out.links(t.attrs["href"]); to != "" {
			t.marks = r.out.mark("[", "]("+to+")")
		}
		return
	}
	if m, ok := marks[t.name]; ok {
		t.marks = r.out.mark(m, m)
	}
}

// language records the language of a code block.
func (r *reader) language(t *tag) {
	for class := range strings.FieldsSeq(t.attrs["class"]) {
		name, ok := strings.CutPrefix(class, "language-")
		if !ok {
			name, ok = strings.CutPrefix(class, "lang-")
		}
		if ok && r.pre > 0 && len(name) <= 20 {
			r.out.language = strings.Trim(name, "`")
		}
	}
}

// breakLine ends a line of the output.
func (r *reader) breakLine() {
	if r.pre > 0 {
		r.out.code.WriteByte('\n')
		return
	}
	r.out.line()
}

// breakBlock ends a paragraph. In preformatted text, where some pages put each line into an
// element, it ends a line.
func (r *reader) breakBlock() {
	if r.pre > 0 {
		if code := r.out.code.String(); code != "" && !strings.HasSuffix(code, "\n") {
			r.out.code.WriteByte('\n')
		}
		return
	}
	r.out.block()
}

func (r *reader) beginLevel(t *tag) {
	switch t.name {
	case "ul", "ol":
		if len(r.lists) == 0 {
			r.out.block()
		}
		one := list{}
		if t.name == "ol" {
			one.next = 1
			if n, err := strconv.Atoi(t.attrs["start"]); err == nil && n > 0 && n < 1_000_000 {
				one.next = n
			}
		}
		r.lists = append(r.lists, one)
	case "li":
		r.out.line()
		marker := "- "
		if n := len(r.lists); n > 0 && r.lists[n-1].next > 0 {
			marker = strconv.Itoa(r.lists[n-1].next) + ". "
			r.lists[n-1].next++
		}
		r.out.indent(marker, strings.Repeat(" ", len(marker)))
	case "blockquote":
		r.out.block()
		r.out.indent("> ", "> ")
	case "dd":
		r.out.line()
		r.out.linePrefix = ": "
	default:
		r.out.line()
	}
}

func (r *reader) endLevel(t *tag) {
	switch t.name {
	case "ul", "ol":
		if n := len(r.lists); n > 0 {
			r.lists = r.lists[:n-1]
		}
		r.out.line()
		if len(r.lists) == 0 {
			r.out.block()
		}
	case "li":
		r.out.outdent()
		r.out.line()
	case "blockquote":
		r.out.outdent()
		r.out.block()
	case "dl":
		r.out.block()
	default:
		r.out.linePrefix = ""
		r.out.line()
	}
}

// A handler gets the visible elements and texts of a page, in order. close is called for each opened element, for a
// void element directly after open.
type handler interface {
	open(t *tag)
	close(t *tag)
	text(s string)
}

// An element is an open element.
type element struct {
	tag
	hides bool // its content is not shown
}

// A walker keeps the stack of open elements like a browser, as far as that matters for text.
type walker struct {
	hides  func(tag) bool
	to     handler
	open   []element
	counts map[string]int
	hiding int
}

// walk reads a page from start to end, without the elements for which hides returns true.
func walk(src string, hides func(tag) bool, to handler) {
	w := &walker{hides: hides, to: to, counts: map[string]int{}}
	z := html.NewTokenizer(strings.NewReader(src))
	for at := 0; ; at++ {
		switch z.Next() {
		case html.ErrorToken:
			w.popTo(0)
			return
		case html.TextToken:
			if w.hiding == 0 {
				to.text(visible(string(z.Text())))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := readTag(z)
			t.at = at
			w.start(t)
		case html.EndTagToken:
			raw, _ := z.TagName()
			w.end(nameOf(raw))
		default: // comments, the doctype
		}
	}
}

// maxOpen bounds how many elements are open. Beyond it, only elements that hide their content are tracked; others count
// as empty.
const maxOpen = 10_000

func (w *walker) start(t tag) {
	w.imply(t)
	hides := w.hides(t)
	if t.void() || !hides && len(w.open) >= maxOpen {
		if w.hiding == 0 && !hides {
			w.to.open(&t)
			w.to.close(&t)
		}
		return
	}
	e := element{tag: t, hides: hides}
	if e.hides {
		w.hiding++
	}
	w.open = append(w.open, e)
	w.counts[t.name]++
	top := &w.open[len(w.open)-1].tag
	if w.hiding == 0 {
		w.to.open(top)
	}
	top.attrs = nil
}

// maxLookback is how many open elements are searched for the element that a tag ends implicitly. Ordinary pages do not
// nest deeper.
const maxLookback = 64

// imply ends the element that t ends implicitly: a list item ends the one before it, a
// block ends a paragraph.
func (w *walker) imply(t tag) {
	for i := len(w.open) - 1; i >= max(0, len(w.open)-maxLookback); i-- {
		switch ends, stops := implies(t, w.open[i].tag); {
		case ends:
			w.popTo(i)
			return
		case stops:
			return
		}
	}
}

// implies reports whether the start of t ends the open element o, or whether o stops the
// search.
func implies(t, o tag) (ends, stops bool) {
	switch t.name {
	case "li":
		return o.name == "li", o.name == "ul" || o.name == "ol"
	case "dt", "dd":
		return o.name == "dt" || o.name == "dd", o.name == "dl"
	case "tr":
		return o.name == "tr", o.name == "table"
	case "td", "th":
		return o.name == "td" || o.name == "th", o.name == "tr" || o.name == "table"
	}
	return o.name == "p" && t.structural(), o.structural()
}

// end ends the innermost element of that name, and those within it.
func (w *walker) end(name string) {
	if w.counts[name] == 0 {
		return
	}
	inline := !tag{name: name}.structural()
	for i, o := range slices.Backward(w.open) {
		switch {
		case o.name == name:
			w.popTo(i)
			return
		case inline && (o.structural() || len(w.open)-i > maxLookback):
			return
		}
	}
}

// popTo ends elements until n are open.
func (w *walker) popTo(n int) {
	for len(w.open) > n {
		e := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		w.counts[e.name]--
		if w.hiding == 0 {
			w.to.close(&e.tag)
		}
		if e.hides {
			w.hiding--
		}
	}
}
