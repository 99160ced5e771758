package page

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
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
	// Cut says that the text ends before the page does.
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

// maxLink bounds the address of a link. Longer ones hold data.
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

// readable returns an address as text; empty if it is not that of a page.
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
