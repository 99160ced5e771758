package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// toolHeaders are headers that the tool sets itself. What a model says of them is not
// sent, and it is told so.
var toolHeaders = []string{"Accept-Encoding", "Connection", "Content-Length", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "User-Agent"}

// refusedHeaders would say something else than the URL does about where a
// request goes.
var refusedHeaders = []string{"Host", "Proxy-Authorization", "Proxy-Connection", "Upgrade", "Expect"}

// headers puts what a model wants sent into a request. It returns the names of
// those that are left out.
func headers(req *http.Request, wanted map[string]string) (dropped []string, err error) {
	for _, written := range slices.Sorted(maps.Keys(wanted)) {
		name, value := http.CanonicalHeaderKey(strings.TrimSpace(written)), strings.TrimSpace(wanted[written])
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return nil, &requestError{fmt.Sprintf("%q is no name of a header", clip(written, 80))}
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

// shownHeaders are the headers of an answer that a model is shown. Cookies are not: they
// are somebody's credentials.
var shownHeaders = map[string]bool{
	"Allow": true, "Content-Language": true, "Content-Length": true, "Content-Location": true, "Content-Range": true,
	"Content-Type": true, "Date": true, "Deprecation": true, "Etag": true, "Last-Modified": true, "Link": true,
	"Location": true, "Retry-After": true, "Sunset": true, "Www-Authenticate": true, "X-Total-Count": true,
}

// maxShownHeaders bounds how many headers are shown.
const maxShownHeaders = 30

// renderHeaders lists the headers of an answer, by name.
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
