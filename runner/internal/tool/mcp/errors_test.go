package mcp

import (
	"fmt"
	"net"
	"net/url"
	"testing"
)

// The steps of the protocol that led to a failure do not help to correct it.
func TestUnavailableErrorIsShort(t *testing.T) {
	within := func(err error) error {
		return fmt.Errorf(`calling "initialize": sending "initialize": rejected by transport: %w`, err)
	}
	for want, err := range map[string]error{
		"lookup harbor: no such host": within(&url.Error{Op: "Post", URL: "http://harbor/mcp", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "harbor", IsNotFound: true}}}),
		"it answered 404 Not Found":   within(&statusError{404, "Not Found"}),
		"nothing happened in time":    errIdle,
	} {
		got := (&UnavailableError{Toolset: "harbor", Field: "spec.http.url", Err: err}).Error()
		if want = "the MCP server (spec.http.url) is not available: " + want; got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}
