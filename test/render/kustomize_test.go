package render_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The kustomization installs what the chart does by default, and the namespace.
func TestKustomizeInstallsTheSame(t *testing.T) {
	out, err := run(t, "", kustomize, "build", config+"/default")
	if err != nil {
		t.Fatal(err)
	}
	kustomized, charted := parse(t, out), template(t, "deckhand", "")

	want := append(ids(charted), "Namespace deckhand-system")
	slices.Sort(want)
	if diff := cmp.Diff(want, ids(kustomized)); diff != "" {
		t.Errorf("objects: -chart +kustomize:\n%s", diff)
	}
	if diff := cmp.Diff(rules(t, charted), rules(t, kustomized)); diff != "" {
		t.Errorf("rules: -chart +kustomize:\n%s", diff)
	}
	if diff := cmp.Diff(podSpec(t, charted), podSpec(t, kustomized)); diff != "" {
		t.Errorf("pod: -chart +kustomize:\n%s", diff)
	}
	if diff := cmp.Diff(contents(t, charted), contents(t, kustomized)); diff != "" {
		t.Errorf("contents: -chart +kustomize:\n%s", diff)
	}
}

// The component adds what the chart adds with metrics.authentication.
func TestKustomizeAuthenticatesTheMetricsLikeTheChart(t *testing.T) {
	dir := t.TempDir()
	from, err := filepath.Abs(config)
	if err != nil {
		t.Fatal(err)
	}
	if from, err = filepath.Rel(dir, from); err != nil { // an absolute one is refused
		t.Fatal(err)
	}
	text := "resources: [" + from + "/default]\ncomponents: [" + from + "/metrics-authentication]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "", kustomize, "build", dir)
	if err != nil {
		t.Fatal(err)
	}
	kustomized, charted := parse(t, out), template(t, "deckhand", "metrics: {authentication: true}")
	if diff := cmp.Diff(contents(t, charted), contents(t, kustomized)); diff != "" {
		t.Errorf("contents: -chart +kustomize:\n%s", diff)
	}
	if diff := cmp.Diff(podSpec(t, charted), podSpec(t, kustomized)); diff != "" {
		t.Errorf("pod: -chart +kustomize:\n%s", diff)
	}
}

// The demo installs config/default with the images that make demo builds, and no others.
func TestTheDemoInstallsTheImagesThatItBuilds(t *testing.T) {
	released, err := run(t, "", kustomize, "build", config+"/default")
	if err != nil {
		t.Fatal(err)
	}
	demo, err := run(t, "", kustomize, "build", config+"/demo")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"ghcr.io/deckhand-dev/manager:v0.1.0", "deckhand.test/manager:dev", "ghcr.io/deckhand-dev/runner:v0.1.0", "deckhand.test/runner:dev",
	).Replace(string(released))
	if diff := cmp.Diff(want, string(demo)); diff != "" || want == string(released) {
		t.Errorf("config/demo (-want +got):\n%s", diff)
	}
}

// contents are objects without their metadata, but for Deployments and for what comes
// from the same files.
func contents(t *testing.T, objects []object) map[string]map[string]any {
	t.Helper()
	byID := map[string]map[string]any{}
	for _, o := range objects {
		switch o.Kind {
		case "Deployment", "Namespace", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			continue
		}
		var content map[string]any
		if err := yaml.Unmarshal(o.text, &content); err != nil {
			t.Fatalf("reading %s: %v", o.id(), err)
		}
		delete(content, "metadata")
		byID[o.id()] = content
	}
	return byID
}

func rules(t *testing.T, objects []object) map[string][]rbacv1.PolicyRule {
	t.Helper()
	byRole := map[string][]rbacv1.PolicyRule{}
	for _, role := range roles(t, objects) {
		byRole[role.Name] = role.Rules
	}
	return byRole
}

// podSpec leaves out what is the cluster's default, and the order of arguments.
func podSpec(t *testing.T, objects []object) corev1.PodSpec {
	t.Helper()
	spec := manager(t, objects).Spec.Template.Spec
	spec.Containers[0].ImagePullPolicy = ""
	slices.Sort(spec.Containers[0].Args)
	return spec
}
