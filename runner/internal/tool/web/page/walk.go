package page

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// A handler gets the visible elements and texts of a page, in order. Each element that is
// opened is closed, void ones at once.
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

// A walker keeps the stack of open elements as browsers would, as far as text
// goes.
type walker struct {
	hides  func(tag) bool
	to     handler
	open   []element
	counts map[string]int
	hiding int
}

// walk reads a page from start to end, without the elements that hides reports.
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

// maxOpen bounds how many elements are open, but for those that hide what is
// within: the rest is taken to be empty.
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

// maxLookback is how many open elements are searched for the one that a tag ends
// implicitly. Ordinary pages do not nest deeper.
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

// end ends the element of that name, and those within it.
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
