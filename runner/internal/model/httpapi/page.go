package httpapi

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
)

// maxPageText bounds how much of a web page is quoted, in bytes.
const maxPageText = 200

var (
	isHTML = pattern(`(?is)^\s*<(!doctype html|html|head|body)|<(html|head|body|title|h1|p|div)[\s>]`)
	// heading matches the title or the heading of a page.
	heading = []func() *regexp.Regexp{pattern(`(?is)<title[^>]*>(.*?)</title>`), pattern(`(?is)<h1[^>]*>(.*?)</h1>`)}
	unseen  = pattern(`(?is)<(script|style)\b.*?(</(script|style)>|$)|<!--.*?-->`)
	tag     = pattern(`(?s)<[^>]*>?`)
)

// pageText returns a web page as one line: its title, its heading, or its text. ok is false if the body is not a web
// page.
func pageText(body string) (text string, ok bool) {
	if !strings.HasPrefix(strings.TrimSpace(body), "<") || !isHTML().MatchString(body) {
		return "", false
	}
	for _, h := range heading {
		if m := h().FindStringSubmatch(body); m != nil && plainText(m[1]) != "" {
			return fmt.Sprintf("a web page that says %q", plainText(m[1])), true
		}
	}
	return fmt.Sprintf("a web page that says %q", plainText(unseen().ReplaceAllString(body, " "))), true
}

// plainText returns the text of a piece of HTML in one line.
func plainText(piece string) string {
	return quote.Clip(strings.Join(strings.Fields(html.UnescapeString(tag().ReplaceAllString(piece, " "))), " "), maxPageText)
}
