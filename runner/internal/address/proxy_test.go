package address

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
)

// A proxy is asked for no address that is never reached: it would connect to it.
func TestAProxyIsNotAskedForAMetadataService(t *testing.T) {
	for host, want := range map[string]bool{
		"169.254.169.254": false, "[fd00:ec2::254]:80": false, "[::ffff:169.254.169.254]": false, "0.0.0.0": false, "2852039166:80": false,
		"10.0.0.1": true, "api.example.com": true, "127.0.0.1:8080": true, "localhost": true,
	} {
		_, err := Proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: host}})
		var refused *RefusedError
		if (err == nil) != want || !want && !errors.As(err, &refused) {
			t.Errorf("%s: %v", host, err)
		}
	}
}
