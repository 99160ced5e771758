package runnerpod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
)

func TestMirroredImages(t *testing.T) {
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	cases := map[string]struct{ image, mirror, want string }{
		"no mirror changes nothing":               {"golang:1.26", "", "golang:1.26"},
		"an official image has a folder":          {"golang:1.26", "m.example/hub", "m.example/hub/library/golang:1.26"},
		"so it has with its registry":             {"docker.io/golang:1.26", "m.example/hub", "m.example/hub/library/golang:1.26"},
		"and with the old name of that":           {"index.docker.io/golang", "m.example", "m.example/library/golang"},
		"and when the folder is written":          {"docker.io/library/golang", "m.example", "m.example/library/golang"},
		"an image of a person keeps hers":         {"ann/tools:2", "m.example/hub", "m.example/hub/ann/tools:2"},
		"another registry goes":                   {"ghcr.io/acme/tools:2", "m.example/hub", "m.example/hub/acme/tools:2"},
		"a registry with a port is one":           {"registry:5000/tools", "m.example", "m.example/tools"},
		"so is localhost":                         {"localhost/tools", "m.example", "m.example/tools"},
		"a tag is no port":                        {"tools:5000", "m.example", "m.example/library/tools:5000"},
		"a digest stays":                          {"ghcr.io/acme/tools" + digest, "m.example", "m.example/acme/tools" + digest},
		"a tag and a digest stay":                 {"golang:1" + digest, "m.example", "m.example/library/golang:1" + digest},
		"what is of the mirror stays":             {"m.example/hub/acme/tools:2", "m.example/hub", "m.example/hub/acme/tools:2"},
		"what only looks like it does not":        {"m.example/hubble/tools:2", "m.example/hub", "m.example/hub/hubble/tools:2"},
		"a mirror may have a port":                {"ghcr.io/acme/tools", "m.example:5000", "m.example:5000/acme/tools"},
		"a slash at the end of it does not count": {"golang", "m.example/hub/", "m.example/hub/library/golang"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mirroredImage(tc.image, tc.mirror)
			if got != tc.want {
				t.Errorf("mirrored() = %s, want %s", got, tc.want)
			}
			if again := mirroredImage(got, tc.mirror); again != got {
				t.Errorf("mirrored twice it is %s", again)
			}
		})
	}
}

// What an Agent says goes over what the installation does; Secrets add up.
func TestSupplyOfAnAgent(t *testing.T) {
	chart := Defaults{
		ImageMirror:      "chart.example",
		ImagePullSecrets: []string{"chart", "both"},
		CABundle:         &v1alpha1.ConfigMapKeyRef{Name: "chart", Key: "ca.crt"},
		Proxy:            &v1alpha1.Proxy{HTTP: "http://chart:1"},
	}
	if diff := cmp.Diff(chart, chart.withTemplate(stored.PodTemplate{})); diff != "" {
		t.Errorf("nothing said -want +got:\n%s", diff)
	}
	own := stored.PodTemplate{
		ImageMirror:      "agent.example",
		CABundle:         &stored.ObjectKey{Name: "agent", Key: "x"},
		Proxy:            &stored.Proxy{HTTPS: "http://agent:1"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "agent"}, {Name: "both"}},
	}
	want := Defaults{
		ImageMirror:      "agent.example",
		ImagePullSecrets: chart.ImagePullSecrets,
		CABundle:         &v1alpha1.ConfigMapKeyRef{Name: "agent", Key: "x"},
		Proxy:            &v1alpha1.Proxy{HTTPS: "http://agent:1"},
	}
	if diff := cmp.Diff(want, chart.withTemplate(own)); diff != "" {
		t.Errorf("all said -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "agent"}, {Name: "both"}, {Name: "chart"}}, chart.pullSecrets(own)); diff != "" {
		t.Errorf("Secrets -want +got:\n%s", diff)
	}
}

func TestProxyOfRunners(t *testing.T) {
	const cluster = "localhost,127.0.0.1,.svc,.cluster.local,$(KUBERNETES_SERVICE_HOST)"
	cases := map[string]struct {
		proxy *v1alpha1.Proxy
		want  map[string]string
	}{
		"none":                {nil, map[string]string{}},
		"one for both":        {&v1alpha1.Proxy{HTTP: "http://p:1"}, map[string]string{"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:1", "NO_PROXY": cluster}},
		"one for each":        {&v1alpha1.Proxy{HTTP: "http://p:1", HTTPS: "http://p:2"}, map[string]string{"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:2", "NO_PROXY": cluster}},
		"one for https alone": {&v1alpha1.Proxy{HTTPS: "http://p:2"}, map[string]string{"HTTPS_PROXY": "http://p:2", "NO_PROXY": cluster}},
		"some without":        {&v1alpha1.Proxy{HTTP: "http://p:1", NoProxy: "10.0.0.0/8,$(X)"}, map[string]string{"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:1", "NO_PROXY": cluster + ",10.0.0.0/8,$$(X)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, e := range (Defaults{Proxy: tc.proxy}).proxyEnv() {
				got[e.Name] = e.Value
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
