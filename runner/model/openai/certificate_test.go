package openai_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
)

func TestACertificateThatCannotBeVerifiedIsFinal(t *testing.T) {
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	trusted := web.Client().Transport
	cases := map[string]struct {
		network  http.RoundTripper
		endpoint string
		unknown  bool
		want     string
	}{
		"an unknown authority":        {nil, web.URL, true, "certificate signed by unknown authority"},
		"a certificate of other host": {trusted, strings.Replace(web.URL, "127.0.0.1", "localhost", 1), false, "certificate is valid for"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := collect(t, tc.network, func(o *openai.Options) { o.Endpoint = tc.endpoint + "/v1" })
			bad, ok := errors.AsType[*model.CertificateError](err)
			if !ok || bad.Unknown != tc.unknown || !strings.Contains(err.Error(), tc.want) || model.Transient(err) {
				t.Errorf("got %#v", err)
			}
		})
	}
	_, err := collect(t, nil, func(o *openai.Options) { o.Endpoint = strings.Replace(plain.URL, "http:", "https:", 1) })
	if bad, ok := errors.AsType[*model.NotAModelError](err); !ok || !bad.Final || !strings.Contains(err.Error(), "write http:// in it") {
		t.Errorf("plain HTTP: %#v", err)
	}
}

// A Model is not a way to the credentials that a cloud gives its machines.
func TestAnEndpointThatIsAMetadataServiceIsNotAsked(t *testing.T) {
	for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]"} {
		_, err := collect(t, nil, func(o *openai.Options) { o.Endpoint = "http://" + host + "/v1" })
		bad, ok := errors.AsType[*model.AddressError](err)
		if !ok || !strings.Contains(bad.Message, strings.Trim(host, "[]")) || model.Transient(err) {
			t.Errorf("%s: %#v", host, err)
		}
	}
}

func TestAPageOfAProxyIsOneLine(t *testing.T) {
	page := "<!DOCTYPE html>\n<html><head>\n<title>403 &amp; Forbidden</title><style>p { color: red }</style></head>\n<body><h1>Sorry</h1></body></html>"
	_, err := collect(t, wiretest.Answering(http.StatusForbidden, "text/html", page, "Server", "nginx/1.27"))
	want := `the model provider refused the request (HTTP 403): a web page that says "403 & Forbidden", from the server nginx/1.27`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
