package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
)

// A kind is how a body is shown.
type kind int

const (
	binary kind = iota
	text
	html // a page
)

// An answer is the response of a server.
type answer struct {
	status string // such as "200 OK"
	code   int
	header http.Header
	// url is the URL after redirects; moved is true if it is not the requested one.
	url   *url.URL
	moved bool

	kind  kind
	media string // the media type, if it is known
	text  string // in UTF-8; empty if binary
	read  int64  // bytes of the body that were read
	total int64  // bytes of the body; -1 if unknown
	cut   bool   // the body is longer than what was read
	// broken is why the body ended early; empty if it is complete.
	broken string
}

// errSlow is the cause of a context whose timeout has expired.
var errSlow = errors.New("the time for the request is up")

// fetch sends a request and reads at most limit bytes of the response. An error means that no response arrived. A
// failure while the body is read is part of the answer, because the request already had its effect.
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

// redirectFailure returns a redirectError if the request succeeded and a redirect
// failed: the request may have had effects.
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

// decode determines the kind of the body and converts it to UTF-8.
func (a *answer) decode(body []byte) {
	declared := a.header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(declared)
	if err != nil || media == "" {
		media = "application/octet-stream"
	}
	a.media, a.kind = media, kindOf(media)
	if how := a.header.Get("Content-Encoding"); how != "" && how != "identity" {
		a.media, a.kind = media+" compressed as "+how, binary // net/http has decompressed gzip
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

// encoding returns the character encoding of a text; nil for UTF-8.
func (a *answer) encoding(body []byte, declared string) encoding.Encoding {
	if e, name := charset.Lookup(declared); e != nil {
		if name == "utf-8" {
			return nil
		}
		return e
	}
	if a.kind == html {
		if e, name, certain := charset.DetermineEncoding(body, ""); certain || name != "windows-1252" { // the default of the library
			return e
		}
	}
	if a.cut {
		body = quote.WholeRunes(body)
	}
	if utf8.Valid(body) {
		return nil
	}
	return charmap.Windows1252 // as browsers do
}

// guess determines the kind from the body.
func (a *answer) guess(body []byte) {
	if found, _, err := mime.ParseMediaType(http.DetectContentType(body)); err == nil {
		if k := kindOf(found); k != binary || a.media == "application/octet-stream" {
			a.kind, a.media = k, found
		}
	}
}

// kindOf returns the kind of a media type.
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

// guessable reports whether a media type is so generic that the body should be
// inspected.
func guessable(media string) bool {
	return strings.HasPrefix(media, "application/") && media != "application/pdf" && media != "application/zip"
}

// note describes what is missing of the body; empty if it is complete.
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

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// bounded returns a context with the timeout that the model requested.
func bounded(ctx context.Context, seconds int) (context.Context, context.CancelFunc) {
	d := defaultTimeout
	if seconds > 0 {
		d = time.Duration(min(seconds, int(maxTimeout/time.Second))) * time.Second
	}
	return context.WithTimeoutCause(ctx, d, errSlow)
}

// toolHeaders are headers that the tool sets itself. Values of the model are not
// sent, and the result says so.
var toolHeaders = []string{"Accept-Encoding", "Connection", "Content-Length", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "User-Agent"}

// refusedHeaders could send a request elsewhere than its URL.
var refusedHeaders = []string{"Host", "Proxy-Authorization", "Proxy-Connection", "Upgrade", "Expect"}

// headers sets the headers of a model in a request. It returns the names of headers that are not sent.
func headers(req *http.Request, wanted map[string]string) (dropped []string, err error) {
	for _, written := range slices.Sorted(maps.Keys(wanted)) {
		name, value := http.CanonicalHeaderKey(strings.TrimSpace(written)), strings.TrimSpace(wanted[written])
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return nil, &requestError{fmt.Sprintf("%q is no name of a header", quote.Clip(written, 80))}
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, &requestError{fmt.Sprintf("the value of the header %s has a line end or a control character", name)}
		case slices.Contains(refusedHeaders, name):
			return nil, &requestError{fmt.Sprintf("the header %s cannot be set", name)}
		case slices.Contains(toolHeaders, name):
			dropped = append(dropped, name)
		default:
			req.Header.Set(name, value)
		}
	}
	return dropped, nil
}

// shownHeaders are the headers of a response that a model may see. Cookies are
// credentials and are not shown.
var shownHeaders = map[string]bool{
	"Allow": true, "Content-Language": true, "Content-Length": true, "Content-Location": true, "Content-Range": true,
	"Content-Type": true, "Date": true, "Deprecation": true, "Etag": true, "Last-Modified": true, "Link": true,
	"Location": true, "Retry-After": true, "Sunset": true, "Www-Authenticate": true, "X-Total-Count": true,
}

// maxShownHeaders bounds the number of headers that are shown.
const maxShownHeaders = 30

// renderHeaders lists the headers of a response, sorted by name.
func renderHeaders(h http.Header) string {
	var lines strings.Builder
	n := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		lower := strings.ToLower(name)
		if !shownHeaders[name] && !strings.HasPrefix(lower, "ratelimit") && !strings.HasPrefix(lower, "x-ratelimit-") {
			continue
		}
		if n++; n > maxShownHeaders {
			break
		}
		fmt.Fprintf(&lines, "%s: %s\n", show(name), show(strings.Join(h[name], ", ")))
	}
	return lines.String()
}

// Options configure HTTPRequest and Browse.
type Options struct {
	// Hosts are the allowed hosts, exact or as *.suffix, also within the cluster.
	// Empty: every host with a public address.
	Hosts []string
	// RunUID is the first part of the Idempotency-Key of requests other than GET and
	// HEAD. Empty: none is sent.
	RunUID string
	// Allow, if set, replaces the check of addresses. It is for tests, whose servers
	// are on loopback.
	Allow func(netip.Addr) bool

	resolver *net.Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// targets are the hosts and addresses that one tool may connect to.
type targets struct {
	hosts hosts
	allow func(netip.Addr) bool
}

func (o Options) readTargets() (targets, error) {
	list, err := readHosts(o.Hosts)
	if err != nil {
		return targets{}, fmt.Errorf("reading the hosts: %w", err)
	}
	r := targets{hosts: list, allow: o.Allow}
	if r.allow == nil {
		farthest := address.Public
		if len(list) > 0 {
			farthest = address.Within
		}
		r.allow = func(a netip.Addr) bool { return address.Of(a) >= farthest }
	}
	return r, nil
}
