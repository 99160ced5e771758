package git

import (
	"errors"
	"strings"
	"testing"
)

// A repository is not a way to the credentials that a cloud gives its machines: a fetch ends at once.
func TestARepositoryAtAMetadataServiceIsRefused(t *testing.T) {
	for host, want := range map[string]string{
		"169.254.169.254": "the address 169.254.169.254 may not be reached",
		"2852039166":      "the host 2852039166 may not be reached: it is a number",
	} {
		at := location{scheme: "http", host: host, path: "/latest.git", text: "http://" + host + "/latest.git"}
		web, err := newHTTPTransport(at, credentials{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at.scheme, at.text = "ssh", "ssh://git@"+host+"/latest.git"
		for name, reached := range map[string]transport{"HTTP": web, "ssh": &sshTransport{at: at}} {
			_, err := reached.open(t.Context(), uploadPack)
			refused, is := errors.AsType[*RefusedError](err)
			if !is || !strings.Contains(refused.Message, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
