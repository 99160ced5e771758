package web

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/web/page"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	// maxPage bounds what Browse reads of a page, in bytes.
	maxPage = 2 << 20
	// window is how many characters of a page one call returns.
	window = 20_000
	// accept prefers text.
	accept = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/json;q=0.8,*/*;q=0.5"
)

//go:embed browse.md
var browsePage string

type browseIn struct {
	URL            string `json:"url" jsonschema:"the whole URL, with https:// or http://"`
	Offset         int    `json:"offset,omitempty" jsonschema:"how many characters to skip; default 0"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"how long to wait for the page; default 30"`
}

// Browse returns the tool that reads web pages. It fails if the options are invalid.
func Browse(o Options) (tool.Tool, error) {
	client, list, err := o.newClient()
	if err != nil {
		return tool.Tool{}, err
	}
	b := &browser{client: client, hosts: list}
	made := tool.Typed(external(task.BuiltinBrowse, browsePage, tool.ReadOnly), b.call)
	made.Canonicalize = canonicalBrowse
	return made, nil
}

type browser struct {
	client *http.Client
	hosts  hosts

	mu sync.Mutex
	// last is the page that was read last, so that further windows are of the same
	// content.
	last document
}

// A document is a page as text.
type document struct {
	asked string // the requested URL
	url   string // after redirects
	title string
	text  string
	note  string // what is missing
}

func (b *browser) call(ctx context.Context, call tool.Call, in browseIn) (tool.Result, error) {
	b.mu.Lock()
	doc := b.last
	b.mu.Unlock()
	if in.Offset <= 0 || doc.asked != in.URL {
		limited, cancel := bounded(ctx, in.TimeoutSeconds)
		defer cancel()
		var err error
		if doc, err = b.read(limited, authorizing(b.client, call, in.redirected), in.URL); err != nil {
			return unreadable(ctx, in.URL, err)
		}
		b.mu.Lock()
		b.last = doc
		b.mu.Unlock()
	}
	return doc.show(max(in.Offset, 0)), nil
}

// redirected returns the arguments of a call that requests the target of a redirect.
func (browseIn) redirected(next *http.Request) any { return browseIn{URL: next.URL.String()} }

// read requests a page and converts it to text.
func (b *browser) read(ctx context.Context, client *http.Client, raw string) (document, error) {
	to, err := b.hosts.target(raw)
	if err != nil {
		return document{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return document{}, &requestError{err.Error()}
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", accept)
	a, err := fetch(ctx, client, req, maxPage)
	switch {
	case err != nil:
		return document{}, err
	case a.code >= http.StatusBadRequest:
		return document{}, &statusError{answer: a}
	case a.kind == binary && a.read > 0:
		return document{}, &mediaError{answer: a}
	}
	doc := document{asked: raw, url: show(a.url.Redacted()), text: a.text, note: a.note()}
	if a.kind == html {
		p := page.Read(a.text, a.url)
		doc.title, doc.text = p.Title, p.Text
		if p.Cut && doc.note == "" {
			doc.note = "[cut: the page has more text than is read]"
		}
	}
	if strings.TrimSpace(doc.text) == "" {
		return document{}, errEmpty
	}
	return doc, nil
}

// show returns a window of the page for the model.
func (d document) show(offset int) tool.Result {
	total := utf8.RuneCountInString(d.text)
	if offset >= total {
		return tool.Fail(fmt.Sprintf("Offset %d exceeds the page (%d characters)", offset, total))
	}
	rest := d.text[position(d.text, offset):]
	shown := rest[:position(rest, window)]
	if len(shown) < len(rest) { // end after a line, if that drops at most a quarter
		if at := strings.LastIndexByte(shown, '\n') + 1; at > len(shown)*3/4 {
			shown = shown[:at]
		}
	}
	end := offset + utf8.RuneCountInString(shown)
	var out strings.Builder
	if d.title != "" {
		fmt.Fprintf(&out, "# %s\n", show(d.title))
	}
	fmt.Fprintf(&out, "%s\n\n%s\n\n[characters %d to %d of %d", d.url, strings.TrimSuffix(shown, "\n"), offset, end, total)
	if end < total {
		fmt.Fprintf(&out, "; next_offset: %d", end)
	}
	out.WriteString("]")
	if end == total && d.note != "" {
		out.WriteString("\n" + d.note)
	}
	return tool.Result{Text: out.String(), Summary: fmt.Sprintf("%s: characters %d to %d of %d", d.url, offset, end, total)}
}

// position returns the byte offset of the n-th character.
func position(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// A statusError means that the status of an answer is an error.
type statusError struct{ *answer }

func (e *statusError) Error() string { return "the server answered " + e.status }

// A mediaError means that the content is not text.
type mediaError struct{ *answer }

func (e *mediaError) Error() string {
	return fmt.Sprintf("it is no text, but %s, %s", show(e.media), e.whole())
}

var errEmpty = errors.New("there is no text on the page")

// unreadable returns the failure for a page that cannot be shown.
func unreadable(ctx context.Context, raw string, err error) (tool.Result, error) {
	var status *statusError
	var media *mediaError
	switch at := show(raw); {
	case errors.As(err, &status):
		return tool.Fail(fmt.Sprintf("%s cannot be read: %v", at, err), afterStatus(status.answer)...), nil
	case errors.As(err, &media):
		return tool.Fail(fmt.Sprintf("%s cannot be read: %v", at, err), "Look for the same content as a web page or a text."), nil
	case errors.Is(err, errEmpty):
		return tool.Fail(fmt.Sprintf("%s cannot be read: %v", at, err),
			"It may be made by scripts, which are not run. Look for an API behind it, or for another source."), nil
	}
	return failed(ctx, raw, err)
}

// afterStatus recommends what to do after an error status.
func afterStatus(a *answer) []string {
	switch {
	case a.code == http.StatusNotFound, a.code == http.StatusGone:
		return []string{"Check how the address is written, or find the page from the start of the site."}
	case a.code == http.StatusUnauthorized, a.code == http.StatusForbidden:
		return []string{"The page is not public, or refuses programs. Use another source."}
	case a.code == http.StatusTooManyRequests:
		return []string{"Do something else before you try it again" + retryAfter(a.header) + "."}
	case a.code >= http.StatusInternalServerError:
		return []string{"The server has a problem. Try it again later, or use another source."}
	}
	return []string{"See what the server says with HTTPRequest."}
}

// retryAfter describes the Retry-After header, if there is one.
func retryAfter(h http.Header) string {
	if after := show(h.Get("Retry-After")); after != "" {
		return fmt.Sprintf(" (the server says Retry-After: %s)", after)
	}
	return ""
}
