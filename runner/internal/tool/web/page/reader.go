package page

import (
	"strconv"
	"strings"
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

// marks are the inline elements that are written, each with its mark.
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
