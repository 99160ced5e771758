package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestFlagsOfSupply(t *testing.T) {
	o, err := options([]string{
		"--runner-image=r:1", "--image-mirror=m.example/hub", "--runner-image-pull-secrets=a,b", "--runner-ca-bundle=ca/bundle.pem",
		"--runner-http-proxy=http://p:1", "--runner-no-proxy=.example", "--network-policies", "--network-policies-api-server=Ports",
		"--network-check=deckhand-check.deckhand-system.svc:20471",
		"--traces-endpoint=http://collector:4318", "--traces-content", "--traces-metrics", "--pod-user=Cluster",
		"--container-requests=cpu=50m,memory=64Mi", "--container-limits=cpu=2,ephemeral-storage=2Gi",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := operator.Supply{
		User: "Cluster",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceEphemeralStorage: resource.MustParse("2Gi")},
		},
		ImageMirror:      "m.example/hub",
		ImagePullSecrets: []string{"a", "b"},
		CABundle:         &v1alpha1.ConfigMapKeyRef{Name: "ca", Key: "bundle.pem"},
		Proxy:            &v1alpha1.Proxy{HTTP: "http://p:1", NoProxy: ".example"},
		Traces:           &task.Traces{Endpoint: "http://collector:4318", Content: true, Metrics: true},
	}
	if diff := cmp.Diff(want, o.Supply); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !o.NetworkPolicies || o.APIServer != egress.PeersPorts || o.NetworkCheck != "deckhand-check.deckhand-system.svc:20471" {
		t.Errorf("network policies: %t, %s, checked at %q", o.NetworkPolicies, o.APIServer, o.NetworkCheck)
	}
}

func TestUnsetFlagsLeaveSupplyEmpty(t *testing.T) {
	o, err := options([]string{"--runner-image=r:1", "--runner-no-proxy=.example"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Supply{User: "Deckhand"}, o.Supply); diff != "" || o.NetworkPolicies {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFlagsOfDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		args       []string
		ttl        time.Duration
		durability v1alpha1.Durability
	}{
		"none": {nil, 0, v1alpha1.DurabilityPod},
		"both": {[]string{"--default-run-ttl=168h", "--default-durability=Volume"}, 7 * 24 * time.Hour, v1alpha1.DurabilityVolume},
	} {
		if o, err := options(tc.args); err != nil || o.DefaultTTL != tc.ttl || o.DefaultDurability != tc.durability {
			t.Errorf("%s: %s, %s, %v, want %s and %s", name, o.DefaultTTL, o.DefaultDurability, err, tc.ttl, tc.durability)
		}
	}
}

func TestBadFlagsSayWhatToWrite(t *testing.T) {
	for arg, want := range map[string]string{
		"--runner-ca-bundle=ca":                    "write ca-bundle/ca.crt",
		"--runner-ca-bundle=/ca.crt":               "write ca-bundle/ca.crt",
		"--network-policies-api-server=Everywhere": "write Addresses or Ports",
		"--pod-user=root":                          "write Deckhand or Cluster",
		"--concurrent-runs=-1":                     "write 0 for the default",
		"--default-run-ttl=-1h":                    "write 168h for a week",
		"--default-run-ttl=1ms":                    "write 168h for a week",
		"--default-run-ttl=600000h":                "0 for never",
		"--default-durability=Disk":                "write Pod or Volume",
		"--container-limits=cpu":                   "for example cpu=500m",
		"--container-limits=cpu=0":                 "a quantity above 0",
		"--container-requests=memory=much":         "for example cpu=500m",
	} {
		if _, err := options([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}
