package serviceaccount_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/internal/run/serviceaccount"
)

// After an installation under another name, runners have the rights of the new release.
func TestRunnersAreBoundToTheRoleOfEachRelease(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	for _, role := range []string{"deckhand-runner", "prod-deckhand-runner", "prod-deckhand-runner"} {
		if err := serviceaccount.New(c, role).Ensure(t.Context(), "team"); err != nil {
			t.Fatal(err)
		}
	}
	var accounts corev1.ServiceAccountList
	if err := c.List(t.Context(), &accounts); err != nil || len(accounts.Items) != 1 || accounts.Items[0].Name != "deckhand-runner" {
		t.Errorf("ServiceAccounts %+v, %v", accounts.Items, err)
	}
	var bindings rbacv1.RoleBindingList
	if err := c.List(t.Context(), &bindings); err != nil || len(bindings.Items) != 2 {
		t.Fatalf("RoleBindings %+v, %v, want one for each release", bindings.Items, err)
	}
	for _, b := range bindings.Items {
		if b.RoleRef.Name != b.Name || len(b.Subjects) != 1 || b.Subjects[0].Name != "deckhand-runner" || b.Subjects[0].Namespace != "team" {
			t.Errorf("RoleBinding %s: role %s, subjects %+v", b.Name, b.RoleRef.Name, b.Subjects)
		}
	}
}
