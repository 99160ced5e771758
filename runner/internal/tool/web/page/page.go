package page

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how many bytes of text are made of a page at most.
const MaxText = 2 << 20

// enough is how many characters make a part of a page its content.
const enough = 200

// A Page is what there is to read of a web page.
type Page struct {
	Title string
	// Text is Markdown.
	Text string
	// Cut says that the text ends before the page does.
	Cut bool
}

// Read makes text of a page, which came from base: links become absolute.
func Read(src string, base *url.URL) Page {
	s := look(src)
	links := resolver(base, s.base)
	var best Page
	for _, part := range s.parts() {
		w := &writer{links: links}
		r := reader{survey: s, part: part, out: w}
		r.run(src)
		p := Page{Title: s.title, Text: strings.TrimSpace(w.text()), Cut: w.full}
		if count(p.Text) >= enough {
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

// count is how many characters of a text are no space, as far as it matters.
func count(text string) int {
	n := 0
	for _, r := range text {
		if !unicode.IsSpace(r) {
			n++
		}
		if n >= enough {
			break
		}
	}
	return n
}

// visible is a text without characters that nobody sees: they are where things
// are hidden from people that a model reads.
func visible(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r >= ' ' && r < 0x7f: // most are
			return r
		case r == '\r':
			return '\n'
		case r == 0xa0: // a space that keeps words on one line
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

// A resolve makes the address of a link absolute; empty: it leads nowhere that
// can be read.
type resolve func(href string) string

// maxLink bounds the address of a link. Longer ones carry data, not a place.
const maxLink = 1000

// plain takes from an address what would end it in Markdown.
var plain = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E")

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

// readable is an address as it is written; empty: it is none of a page.
func readable(to *url.URL) string {
	if to.Scheme != "http" && to.Scheme != "https" && to.Scheme != "mailto" {
		return ""
	}
	absolute := plain.Replace(to.String())
	if len(absolute) > maxLink {
		return ""
	}
	return absolute
}
