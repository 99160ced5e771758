// Package web has the tools that access the network: HTTPRequest, Browse and
// WebSearch.
//
// The model chooses where HTTPRequest and Browse connect to, and content that it has
// read may influence it. Therefore the address of every connection is checked
// (package address) after name resolution and for each redirect. Without a list of
// hosts only public addresses are allowed. A list of hosts allows only these, also
// at addresses of the cluster, but never the machine itself or the metadata service
// of a cloud. The proxies of the environment are not used, because the addresses
// behind one cannot be checked.
//
// Responses are bounded in decompressed bytes before they are parsed.
package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxBody bounds what HTTPRequest reads of a body, in bytes.
const maxBody = 1 << 20

//go:embed request.md
var requestPage string

type requestIn struct {
	Method         string            `json:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE" jsonschema:"what to do"`
	URL            string            `json:"url" jsonschema:"the whole URL, with https:// or http://"`
	Headers        map[string]string `json:"headers,omitempty" jsonschema:"headers to send, by name"`
	Body           string            `json:"body,omitempty" jsonschema:"the body to send, as text; JSON is sent as application/json unless headers say otherwise"`
	TimeoutSeconds int               `json:"timeoutSeconds,omitempty" jsonschema:"how long to wait for the whole answer; default 30"`
}

// HTTPRequest returns the tool that sends one HTTP request. It fails if the options
// are invalid.
func HTTPRequest(o Options) (tool.Tool, error) {
	client, list, err := o.newClient()
	if err != nil {
		return tool.Tool{}, err
	}
	r := &requester{client: client, hosts: list, runUID: o.RunUID}
	made := tool.Typed(external(task.BuiltinHTTPRequest, requestPage, tool.Once), r.call)
	made.Classify, made.Canonicalize = requestEffect, canonicalRequest
	return made, nil
}

// external returns the Spec of a tool of this package.
func external(name, page string, effect tool.Effect) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: effect, Concurrency: tool.Parallel,
	}
}

// requestEffect derives the effect of a request from its method, as HTTP defines it.
func requestEffect(args json.RawMessage) tool.Effect {
	var in struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(args, &in) != nil {
		return tool.Once
	}
	switch in.Method {
	case http.MethodGet, http.MethodHead:
		return tool.ReadOnly
	case http.MethodPut, http.MethodDelete:
		return tool.Idempotent
	}
	return tool.Once
}

type requester struct {
	client *http.Client
	hosts  hosts
	runUID string
}

func (r *requester) call(ctx context.Context, call tool.Call, in requestIn) (tool.Result, error) {
	req, dropped, err := r.request(ctx, call, in)
	if err != nil {
		return failed(ctx, in.URL, err)
	}
	limited, cancel := bounded(ctx, in.TimeoutSeconds)
	defer cancel()
	a, err := fetch(limited, authorizing(r.client, call, in.redirected), req, maxBody)
	if err != nil {
		return failed(ctx, in.URL, err)
	}
	return tool.Result{
		Text:    a.render(dropped),
		Failed:  a.code >= http.StatusBadRequest,
		Summary: fmt.Sprintf("%s %s: %s, %s", in.Method, show(a.url.Host), a.status, size(a.read)),
	}, nil
}

// redirected returns the arguments of a call that sends the next request of a
// redirect.
func (r requestIn) redirected(next *http.Request) any {
	r.Method, r.URL = next.Method, next.URL.String()
	if next.Body == nil {
		r.Body = ""
	}
	sent := map[string]string{}
	for name, value := range r.Headers {
		if next.Header.Get(name) == value {
			sent[name] = value
		}
	}
	r.Headers = sent
	return r
}

// request builds the HTTP request.
func (r *requester) request(ctx context.Context, call tool.Call, in requestIn) (req *http.Request, dropped []string, err error) {
	to, err := r.hosts.target(in.URL)
	if err != nil {
		return nil, nil, err
	}
	if in.Headers, err = canonicalHeaders(in.Headers); err != nil {
		return nil, nil, err
	}
	req, err = http.NewRequestWithContext(ctx, in.Method, to.String(), strings.NewReader(in.Body))
	if err != nil {
		return nil, nil, &requestError{err.Error()}
	}
	if in.Body == "" {
		req.Body, req.GetBody = nil, nil
	}
	if dropped, err = headers(req, in.Headers); err != nil {
		return nil, nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	if in.Body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", typeOf(in.Body))
	}
	r.identify(req, call)
	return req, dropped, nil
}

// identify sets an Idempotency-Key, by which a server can detect a repeated request:
// a call that is repeated after an interruption has the same ID.
func (r *requester) identify(req *http.Request, call tool.Call) {
	key := r.runUID + "/" + call.ID
	changes := req.Method != http.MethodGet && req.Method != http.MethodHead
	if !changes || r.runUID == "" || call.ID == "" || !httpguts.ValidHeaderFieldValue(key) {
		return
	}
	if req.Header.Get("Idempotency-Key") == "" {
		req.Header.Set("Idempotency-Key", key)
	}
}

// typeOf returns the default Content-Type of a body.
func typeOf(body string) string {
	if trimmed := strings.TrimSpace(body); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if json.Valid([]byte(trimmed)) {
			return "application/json"
		}
	}
	return "text/plain; charset=utf-8"
}

// render returns the response for the model.
func (a *answer) render(dropped []string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "HTTP %s\n", a.status)
	if a.moved {
		fmt.Fprintf(&out, "[redirected to %s]\n", show(a.url.Redacted()))
	}
	if len(dropped) > 0 {
		fmt.Fprintf(&out, "[not sent, because the tool sets it itself: %s]\n", strings.Join(dropped, ", "))
	}
	out.WriteString(renderHeaders(a.header))
	switch {
	case a.kind == binary && a.read > 0:
		fmt.Fprintf(&out, "\n[the body is not shown: it is no text, but %s, %s]", show(a.media), a.whole())
		return out.String()
	case a.kind == html:
		out.WriteString("[HTML: Browse shows the same page as text]\n")
	}
	if a.text != "" {
		out.WriteString("\n" + a.text)
	}
	if note := a.note(); note != "" {
		out.WriteString("\n" + note)
	}
	return out.String()
}

// whole describes the size of the body.
func (a *answer) whole() string {
	switch {
	case a.total >= 0:
		return size(a.total)
	case a.cut:
		return "more than " + size(a.read)
	}
	return size(a.read)
}

// canonicalRequest implements [tool.CanonicalFunc] for HTTPRequest: policies see the URL, the method and the names of
// headers as they are sent.
func canonicalRequest(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return canonical(ctx, args, func(in *requestIn) (string, error) {
		written := in.URL
		u, err := weburl.Parse(written)
		if err != nil {
			return written, &requestError{err.Error()}
		}
		in.URL, in.Method = u.String(), strings.ToUpper(in.Method)
		in.Headers, err = canonicalHeaders(in.Headers)
		return written, err
	})
}

// canonicalBrowse implements [tool.CanonicalFunc] for Browse.
func canonicalBrowse(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return canonical(ctx, args, func(in *browseIn) (string, error) {
		written := in.URL
		u, err := weburl.Parse(written)
		if err != nil {
			return written, &requestError{err.Error()}
		}
		in.URL = u.String()
		return written, nil
	})
}

// canonical applies rewrite, which also returns the original URL, and encodes all
// arguments again, so that they have only one form.
func canonical[In any](ctx context.Context, args json.RawMessage, rewrite func(*In) (string, error)) (json.RawMessage, *tool.Error) {
	var in In
	if json.Unmarshal(args, &in) != nil {
		return args, nil // the schema of the tool refuses it
	}
	if written, err := rewrite(&in); err != nil {
		result, _ := failed(context.WithoutCancel(ctx), written, err)
		return nil, result.Error
	}
	return encode(in), nil
}

// canonicalHeaders returns headers with canonical names. Two spellings of one name
// are refused, because implementations differ in which value they use.
func canonicalHeaders(written map[string]string) (map[string]string, error) {
	if len(written) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(written))
	for _, name := range slices.Sorted(maps.Keys(written)) {
		known := http.CanonicalHeaderKey(strings.TrimSpace(name))
		if _, twice := all[known]; twice {
			return nil, &requestError{fmt.Sprintf("the header %s is given twice; give it once", quote.Clip(known, 80))}
		}
		all[known] = strings.TrimSpace(written[name])
	}
	return all, nil
}
