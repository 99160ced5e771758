package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// toolHeaders are headers that the tool sets itself. Values of the model are not
// sent, and the result says so.
var toolHeaders = []string{"Accept-Encoding", "Connection", "Content-Length", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "User-Agent"}

// refusedHeaders could send a request elsewhere than its URL.
var refusedHeaders = []string{"Host", "Proxy-Authorization", "Proxy-Connection", "Upgrade", "Expect"}

// headers sets the headers of a model in a request. It returns the names of those
// that are not sent.
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
