package page

import (
	"strconv"
	"strings"
)

// A reader writes down one part of a page.
type reader struct {
	survey *survey
	part   part
	out    *writer

	inside int // how many elements are open that hold the content
	pre    int // how many elements are open whose text stays as it is
	lists  []list
	tables []table
}

// A list is one that is open; 0: without numbers.
type list struct{ next int }

// A table is one that is open.
type table struct {
	layout      bool // it only puts things beside each other
	rows, cells int
}

func (r *reader) run(src string) { walk(src, r.part.hides, r) }

// shown reports whether what is read now is part of the content.
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
		r.begin(t)
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

// marks are the inline elements that are written, each with its mark.
var marks = map[string]string{
	"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`", "del": "~~", "s": "~~",
}

func (r *reader) begin(t *tag) {
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
		r.brk()
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
		r.out.lead = strings.Repeat("#", level) + " "
		r.out.flat++
	case t.block():
		r.brkBlock()
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
		r.out.flat--
		r.out.lead = ""
		r.out.block()
	case t.marks:
		r.out.unmark()
	case t.block():
		r.brkBlock()
	}
}

// inline marks text, unless it stays as it is.
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

// language remembers what a piece of code is written in.
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

// brk ends a line.
func (r *reader) brk() {
	if r.pre > 0 {
		r.out.code.WriteByte('\n')
		return
	}
	r.out.line()
}

// brkBlock ends a paragraph. Within text that stays as it is, some pages put
// each line into an element.
func (r *reader) brkBlock() {
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
		r.out.lead = ": "
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
		r.out.lead = ""
		r.out.line()
	}
}
