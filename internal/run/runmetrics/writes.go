package runmetrics

import (
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// CountWrites returns a configuration whose requests that change objects are counted.
func CountWrites(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return writeCounter{next} })
	return out
}

type writeCounter struct{ next http.RoundTripper }

// verbs are those of requests that change objects. Others are not counted.
var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}

// RoundTrip implements http.RoundTripper.
func (c writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if verb := verbs[r.Method]; verb != "" {
		code := 0
		if answer != nil {
			code = answer.StatusCode
		}
		countWrite(resourceOf(r.URL.Path), verb, code)
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (c writeCounter) WrappedRoundTripper() http.RoundTripper { return c.next }

// resourceOf returns the resource, with its subresource, of a path of the API server: for example
// runs/status.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return other
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
