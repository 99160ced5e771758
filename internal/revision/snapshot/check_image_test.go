package snapshot

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestImageNames(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a0", 32)
	for _, image := range []string{
		"debian", "debian:stable-slim", "library/debian", "docker.io/library/debian:12", "localhost/tools", "localhost:5000/a/b__c",
		"REGISTRY.example:443/team/tools_x.y-z:V1.2_b", "[2001:db8::1]:5000/a", "debian" + digest, "ghcr.io/a/b:1" + digest, "a--b", "10.0.0.1:5000/x",
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com/tools:v1",
	} {
		if problem := imageProblem(image); problem != "" {
			t.Errorf("%s is refused: %s", image, problem)
		}
	}
	for image, want := range map[string]string{
		"DEBIAN latest":                      "it has a blank",
		"debian\tlatest":                     "it has a blank",
		"https://docker.io/debian":           `leave out the scheme, as in "docker.io/debian"`,
		"oci://ghcr.io/team/tools":           `leave out the scheme, as in "ghcr.io/team/tools"`,
		"Debian":                             `write the name in lower case, as in "debian"`,
		"ghcr.io/Team/Tools":                 `in lower case, as in "ghcr.io/team/tools"`,
		"debian:":                            "write it as debian:stable-slim",
		"debian:a:b":                         "write it as",
		"/debian":                            "write it as",
		"debian/":                            "write it as",
		"a//b":                               "write it as",
		"debian:-x":                          "write it as",
		"debian@sha256:abc":                  "write it as",
		"-debian":                            "write it as",
		"a___b":                              "write it as",
		"$IMAGE":                             "write it as",
		"debian:" + strings.Repeat("t", 129): "write it as",
		strings.Repeat("0a", 32):             "write it as",
	} {
		if problem := imageProblem(image); !strings.Contains(problem, want) {
			t.Errorf("%q: %q, want %q", image, problem, want)
		}
	}
}

func TestAnImageThatIsNoNameKeepsFromBeingReady(t *testing.T) {
	for name, spec := range map[string]v1alpha1.AgentSpec{
		"spec.sandbox.image: ":           {Sandbox: &v1alpha1.Sandbox{Image: "DEBIAN latest"}},
		"spec.podTemplate.runnerImage: ": {PodTemplate: &v1alpha1.PodTemplate{RunnerImage: "https://docker.io/mine"}},
	} {
		if p := checkImages(spec); p == nil || p.Reason != v1alpha1.ReasonInvalid || !strings.HasPrefix(p.Message, name) {
			t.Errorf("%s%v", name, p)
		}
	}
	if p := checkImages(v1alpha1.AgentSpec{Sandbox: &v1alpha1.Sandbox{Image: "debian"}}); p != nil {
		t.Error(p)
	}
	tool := &v1alpha1.Toolset{Spec: v1alpha1.ToolsetSpec{Stdio: &v1alpha1.StdioServer{Container: &v1alpha1.ServerContainer{Image: "a b"}}}}
	if p := CheckToolset(tool); p == nil || !strings.Contains(p.Message, "is not an image name") {
		t.Error(p)
	}
}
