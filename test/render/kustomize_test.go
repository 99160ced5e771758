package render_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
}

func rules(t *testing.T, objects []object) map[string][]rbacv1.PolicyRule {
	t.Helper()
	byRole := map[string][]rbacv1.PolicyRule{}
	for _, role := range roles(t, objects) {
		byRole[role.Name] = role.Rules
	}
	return byRole
}

// podSpec leaves out what is the cluster's default.
func podSpec(t *testing.T, objects []object) corev1.PodSpec {
	t.Helper()
	spec := manager(t, objects).Spec.Template.Spec
	spec.Containers[0].ImagePullPolicy = ""
	return spec
}
