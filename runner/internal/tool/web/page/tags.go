package page

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

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

// readTag reads the tag that the tokenizer is at.
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

// void elements have no end and no content.
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

// main and article are where a page says that its content is.
func (t tag) main() bool    { return t.name == "main" || t.role == "main" }
func (t tag) article() bool { return t.name == "article" || t.role == "article" }

// structural elements are not ended by the end of an inline one.
func (t tag) structural() bool {
	switch t.name {
	case "li", "ul", "ol", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot",
		"pre", "blockquote":
		return true
	}
	return t.block() || t.heading() > 0
}

// heading is the level of a heading; 0: it is none.
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

// block reports whether an element stands on lines of its own.
func (t tag) block() bool {
	switch t.name {
	case "address", "article", "aside", "body", "caption", "details", "div", "dl", "fieldset",
		"figcaption", "figure", "footer", "form", "header", "hgroup", "main", "nav", "p",
		"section", "summary", "table", "center", "search":
		return true
	}
	return false
}
