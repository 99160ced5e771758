package git

import (
	"errors"
	"strings"
	"testing"
)

// A repository is not a way to the credentials that a cloud gives its machines: a fetch ends at once.
func TestARepositoryAtAMetadataServiceIsRefused(t *testing.T) {
	at := location{scheme: "http", host: "169.254.169.254", path: "/latest.git", text: "http://169.254.169.254/latest.git"}
	web, err := newHTTPTransport(at, credentials{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at.scheme, at.text = "ssh", "ssh://git@169.254.169.254/latest.git"
	for name, reached := range map[string]transport{"HTTP": web, "ssh": &sshTransport{at: at}} {
		_, err := reached.open(t.Context(), uploadPack)
		refused, is := errors.AsType[*RefusedError](err)
		if !is || !strings.Contains(refused.Message, "the address 169.254.169.254 may not be reached") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
