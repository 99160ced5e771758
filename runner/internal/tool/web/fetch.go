package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// A kind is what can be done with a body.
type kind int

const (
	binary kind = iota
	text
	html // a page
)

// An answer is what a server answered.
type answer struct {
	status string // such as "200 OK"
	code   int
	header http.Header
	// url is where the answer came from; moved says that it is not where the
	// request went.
	url   *url.URL
	moved bool

	kind  kind
	media string // the type of the content, as far as it is known
	text  string // in UTF-8; empty for what is binary
	read  int64  // how many bytes of the body were read
	total int64  // how many it has; -1 when nobody says
	cut   bool   // there is more than was read
	// broken says why the body ended early; empty when it did not.
	broken string
}

// errSlow is the cause of a request's end when its time is up.
var errSlow = errors.New("the time for the request is up")

// fetch sends a request and reads at most limit bytes of what comes back. An
// error means that there is no answer; what fails while the body is read is told
// in the answer, because by then the request has had its effect.
func fetch(ctx context.Context, client *http.Client, req *http.Request, limit int64) (*answer, error) {
	asked := req.URL.String()
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, redirectFailure(asked, err)
	}
	defer resp.Body.Close()
	a := &answer{
		status: show(resp.Status), code: resp.StatusCode, header: resp.Header,
		url: resp.Request.URL, moved: resp.Request.URL.String() != asked, total: resp.ContentLength,
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case int64(len(body)) > limit:
		body, a.cut = body[:limit], true
	case err != nil && errors.Is(context.Cause(ctx), errSlow):
		a.broken = "the rest did not come in time"
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		a.broken = "the rest did not come: " + show(err.Error())
	}
	a.read = int64(len(body))
	a.decode(body)
	return a, nil
}

// redirectFailure tells the failure of a redirect, after which something has been done,
// from that of the request.
func redirectFailure(asked string, err error) error {
	var at *url.Error
	var shownHeaders *redirectError
	if !errors.As(err, &at) || errors.As(err, &shownHeaders) || at.URL == asked {
		return err
	}
	to, parseErr := url.Parse(at.URL)
	if parseErr != nil {
		return err
	}
	return &redirectError{to: to, err: at.Err}
}

// decode finds out what the body is, and makes text of it.
func (a *answer) decode(body []byte) {
	declared := a.header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(declared)
	if err != nil || media == "" {
		media = "application/octet-stream"
	}
	a.media, a.kind = media, kindOf(media)
	if how := a.header.Get("Content-Encoding"); how != "" && how != "identity" {
		a.media, a.kind = media+" compressed as "+how, binary // gzip has been undone before
		return
	}
	if a.kind == binary && guessable(media) {
		a.guess(body)
	}
	if a.kind == binary {
		return
	}
	a.text = string(body)
	if e := a.encoding(body, params["charset"]); e != nil {
		if decoded, err := e.NewDecoder().Bytes(body); err == nil {
			a.text = string(decoded)
		}
	}
	a.text = strings.ToValidUTF8(strings.TrimPrefix(a.text, "\ufeff"), string(utf8.RuneError))
	if strings.Contains(a.text, "\x00") {
		a.kind, a.text = binary, ""
	}
}

// encoding is what a text is written in; nil: UTF-8, or near enough.
func (a *answer) encoding(body []byte, declared string) encoding.Encoding {
	if e, name := charset.Lookup(declared); e != nil {
		if name == "utf-8" {
			return nil
		}
		return e
	}
	if a.kind == html {
		if e, name, certain := charset.DetermineEncoding(body, ""); certain || name != "windows-1252" { // which also is a guess
			return e
		}
	}
	if a.cut {
		body = trimRune(body)
	}
	if utf8.Valid(body) {
		return nil
	}
	return charmap.Windows1252 // as browsers do
}

// guess looks at a body that nobody says anything useful of.
func (a *answer) guess(body []byte) {
	if found, _, err := mime.ParseMediaType(http.DetectContentType(body)); err == nil {
		if k := kindOf(found); k != binary || a.media == "application/octet-stream" {
			a.kind, a.media = k, found
		}
	}
}

// kindOf is what a media type says that a body is.
func kindOf(media string) kind {
	main, sub, _ := strings.Cut(media, "/")
	switch {
	case media == "text/html", media == "application/xhtml+xml":
		return html
	case main == "text", strings.HasSuffix(sub, "+json"), strings.HasSuffix(sub, "+xml"), strings.HasSuffix(sub, "+yaml"):
		return text
	case main != "application":
		return binary
	}
	switch strings.TrimPrefix(sub, "x-") {
	case "json", "ndjson", "jsonl", "json-lines", "json-seq", "xml", "xml-dtd", "yaml", "toml", "javascript",
		"ecmascript", "typescript", "sql", "graphql", "sh", "www-form-urlencoded", "csv", "markdown", "tex", "pem-file":
		return text
	}
	return binary
}

// guessable reports whether a media type says so little that the body is better
// looked at. Pictures, sound and the like say enough.
func guessable(media string) bool {
	return strings.HasPrefix(media, "application/") && media != "application/pdf" && media != "application/zip"
}

// trimRune takes off the bytes of a character that is not whole at the end.
func trimRune(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// note says in a line what of the body is not there; empty when all of it is.
func (a *answer) note() string {
	switch {
	case a.cut && a.total > 0:
		return fmt.Sprintf("[cut: the first %s of %s]", size(a.read), size(a.total))
	case a.cut:
		return fmt.Sprintf("[cut: the first %s; there is more]", size(a.read))
	case a.broken != "":
		return fmt.Sprintf("[after %s %s]", size(a.read), a.broken)
	}
	return ""
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// bounded bounds how long a request may take, as the model asked.
func bounded(ctx context.Context, seconds int) (context.Context, context.CancelFunc) {
	d := defaultTimeout
	if seconds > 0 {
		d = time.Duration(min(seconds, int(maxTimeout/time.Second))) * time.Second
	}
	return context.WithTimeoutCause(ctx, d, errSlow)
}
