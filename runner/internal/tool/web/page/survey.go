package page

import (
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
)

// A part is the part of a page that counts as its content.
type part int

const (
	inMain part = iota
	inArticle
	inBody     // without boilerplate
	everything // all that is not hidden
)

// contains reports whether an element holds the content of the part.
func (p part) contains(t tag) bool {
	return p == inMain && t.main() || p == inArticle && t.article()
}

// hides reports whether an element is not in the part.
func (p part) hides(t tag) bool {
	return t.hidden() || p != everything && t.isBoilerplate() && !t.main()
}

// maxTitle bounds a title, in bytes.
const maxTitle = 300

// A survey holds facts about a page that are needed before it is converted.
type survey struct {
	title   string
	base    string
	grids   map[int]*grid // the tables, by token
	tables  []*grid       // those that are open
	inMain  textCount
	article textCount
	titles  int // open titles
}

// A grid is a table. A layout table contains tables or blocks, or has one column.
type grid struct {
	layout      bool
	row, widest int
}

// A textCount counts the characters in some elements.
type textCount struct{ open, chars int }

func newSurvey(src string) *survey {
	s := &survey{grids: map[int]*grid{}}
	walk(src, func(t tag) bool { return t.hidden() && t.name != "title" }, s)
	s.title = quote.Clip(strings.Join(strings.Fields(s.title), " "), maxTitle)
	return s
}

func (s *survey) open(t *tag) {
	s.count(t, 1)
	switch t.name {
	case "title":
		s.titles++
	case "base":
		if s.base == "" {
			s.base = t.attrs["href"]
		}
	case "table":
		g := &grid{layout: len(s.tables) > 0 || t.role == "presentation"}
		s.within(t)
		s.grids[t.at] = g
		s.tables = append(s.tables, g)
	default:
		s.within(t)
	}
}

// within updates the grid of the open table.
func (s *survey) within(t *tag) {
	if len(s.tables) == 0 {
		return
	}
	g := s.tables[len(s.tables)-1]
	switch t.name {
	case "tr":
		g.row = 0
	case "td", "th":
		g.row++
		g.widest = max(g.widest, g.row)
	case "table", "ul", "ol", "pre", "blockquote", "form", "section", "article", "main":
		g.layout = true
	default:
		g.layout = g.layout || t.heading() > 0
	}
}

func (s *survey) close(t *tag) {
	s.count(t, -1)
	switch t.name {
	case "title":
		s.titles--
	case "table":
		s.tables = s.tables[:len(s.tables)-1]
	}
}

func (s *survey) count(t *tag, by int) {
	if t.main() {
		s.inMain.open += by
	}
	if t.article() {
		s.article.open += by
	}
}

func (s *survey) text(text string) {
	if s.titles > 0 {
		if len(s.title) < maxTitle { // the first; pictures have titles too, which are hidden
			s.title += text
		}
		return
	}
	n := count(text)
	if s.inMain.open > 0 {
		s.inMain.chars += n
	}
	if s.article.open > 0 {
		s.article.chars += n
	}
}

// parts returns the parts of the page that may be its content, the best first.
func (s *survey) parts() []part {
	var all []part
	if s.inMain.chars >= minContent {
		all = append(all, inMain)
	}
	if s.article.chars >= minContent {
		all = append(all, inArticle)
	}
	return append(all, inBody, everything)
}
