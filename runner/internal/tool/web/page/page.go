// Package page makes text of web pages: Markdown, for a model to read.
//
// It reads tags in one pass from front to end and builds no tree, because pages may be hostile. With the rules by which
// browsers build a tree, x/net/html v0.57.0 needs 6 s and 649 MiB for 128 KB of tags with at most 512 of them open.
// html-to-markdown v2.5.2 needs more than 6 GB for a table of 128 KB. Both were measured with the pages of
// TestPagesAgainstTheirReader. Here the work is proportional to the length of the page, and the text has a limit.
//
// Invisible parts are left out: scripts, styles, hidden elements and characters. So is everything around the content of
// a page, if the page marks its content: navigation, footers, and everything outside main or article.
package page

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
)

// MaxText bounds the text of a page, in bytes.
const MaxText = 2 << 20

// minContent is how many characters a part of a page needs to count as its content.
const minContent = 200

// A Page is the text of a web page.
type Page struct {
	Title string
	// Text is Markdown.
	Text string
	// Cut reports that the text ends before the page does.
	Cut bool
}

// Read converts a page to text. Links become absolute, relative to base.
func Read(src string, base *url.URL) Page {
	s := newSurvey(src)
	links := resolver(base, s.base)
	var best Page
	for _, part := range s.parts() {
		w := &writer{links: links}
		r := reader{survey: s, part: part, out: w}
		r.run(src)
		p := Page{Title: s.title, Text: strings.TrimSpace(w.text()), Cut: w.full}
		if count(p.Text) >= minContent {
			return p
		}
		// What is around the content of a short page is shown only if it is most.
		if n := count(best.Text); n == 0 || count(p.Text) > 4*n {
			best = p
		}
	}
	best.Title = s.title
	return best
}

// count counts the characters of a text that are not space, up to minContent.
func count(text string) int {
	n := 0
	for _, r := range text {
		if !unicode.IsSpace(r) {
			n++
		}
		if n >= minContent {
			break
		}
	}
	return n
}

// visible returns a text without invisible characters, which could hide instructions to a
// model from users.
func visible(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r >= ' ' && r < 0x7f: // most are
			return r
		case r == '\r':
			return '\n'
		case r == 0xa0: // no-break space
			return ' '
		case r == utf8.RuneError, r == 0x200c, r == 0x200d: // joiners, of emoji and of Persian
			return r
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		case r >= 0xe0100 && r <= 0xe01ef: // variations that no font has
			return -1
		}
		return r
	}
	return strings.Map(clean, s)
}

// A resolve returns the absolute address of a link; empty if it cannot be read.
type resolve func(href string) string

// maxLink bounds the address of a link. Longer addresses contain data.
const maxLink = 1000

// escapeLink escapes characters that would end an address in Markdown.
var escapeLink = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E")

func resolver(base *url.URL, override string) resolve {
	if override != "" && len(override) <= maxLink {
		if to, err := base.Parse(override); err == nil {
			base = to
		}
	}
	short := len(base.String()) <= maxLink
	return func(href string) string {
		href = strings.TrimSpace(href)
		if href == "" || href[0] == '#' || len(href) > maxLink {
			return ""
		}
		to, err := url.Parse(href)
		if err != nil || !to.IsAbs() && !short {
			return ""
		}
		return readable(base.ResolveReference(to))
	}
}

// readable returns an address as text; empty if a page cannot have it.
func readable(to *url.URL) string {
	if to.Scheme != "http" && to.Scheme != "https" && to.Scheme != "mailto" {
		return ""
	}
	absolute := escapeLink.Replace(to.String())
	if len(absolute) > maxLink {
		return ""
	}
	return absolute
}

// A tag is a start tag.
type tag struct {
	name  string // empty: not known
	role  string
	attrs map[string]string // those in readAttrs; nil after the element was opened
	at    int               // the index of the token in the page
	marks bool              // its text has a mark
}

// nameOf returns the name of an element without copying it.
func nameOf(raw []byte) string { return atom.Lookup(raw).String() }

// readAttrs are the attributes that are read.
var readAttrs = map[string]bool{
	"href": true, "src": true, "alt": true, "class": true, "role": true, "hidden": true, "aria-hidden": true,
	"style": true, "start": true,
}

// readTag reads the current tag of the tokenizer.
func readTag(z *html.Tokenizer) tag {
	raw, more := z.TagName()
	t := tag{name: nameOf(raw)}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if !readAttrs[string(key)] {
			continue
		}
		if t.attrs == nil {
			t.attrs = map[string]string{}
		}
		if _, twice := t.attrs[string(key)]; !twice {
			t.attrs[string(key)] = string(value)
		}
	}
	t.role = t.attrs["role"]
	return t
}

// void elements have no content and no end tag.
func (t tag) void() bool {
	switch t.name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input",
		"link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// hidden reports whether an element has no visible text.
func (t tag) hidden() bool {
	switch t.name {
	case "script", "style", "noscript", "template", "svg", "iframe", "object",
		"canvas", "audio", "video", "button", "select", "textarea", "dialog",
		"title", "noframes", "noembed", "datalist":
		return true
	}
	if _, is := t.attrs["hidden"]; is || strings.EqualFold(t.attrs["aria-hidden"], "true") {
		return true
	}
	style := strings.ToLower(strings.ReplaceAll(t.attrs["style"], " ", ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

// isBoilerplate reports whether an element is navigation or the like.
func (t tag) isBoilerplate() bool {
	switch t.name {
	case "nav", "footer", "aside", "menu":
		return true
	}
	switch t.role {
	case "navigation", "contentinfo", "complementary", "banner", "search", "menu", "menubar", "dialog", "alertdialog":
		return true
	}
	return false
}

// main and article mark the content of a page.
func (t tag) main() bool    { return t.name == "main" || t.role == "main" }
func (t tag) article() bool { return t.name == "article" || t.role == "article" }

// structural elements do not end with an inline element around them.
func (t tag) structural() bool {
	switch t.name {
	case "li", "ul", "ol", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot",
		"pre", "blockquote":
		return true
	}
	return t.block() || t.heading() > 0
}

// heading returns the level of a heading; 0: it is none.
func (t tag) heading() int {
	switch t.name {
	case "h1":
		return 1
	case "h2":
		return 2
	case "h3":
		return 3
	case "h4":
		return 4
	case "h5", "h6":
		return 5
	}
	return 0
}

// block reports whether an element begins a new line.
func (t tag) block() bool {
	switch t.name {
	case "address", "article", "aside", "body", "caption", "details", "div", "dl", "fieldset",
		"figcaption", "figure", "footer", "form", "header", "hgroup", "main", "nav", "p",
		"section", "summary", "table", "center", "search":
		return true
	}
	return false
}

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
