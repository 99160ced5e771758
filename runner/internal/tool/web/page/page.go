package page

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
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
