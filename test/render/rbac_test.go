package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestNoRoleReadsSecrets(t *testing.T) {
	eachInstall(t, func(t *testing.T, objects []object) {
		for _, role := range roles(t, objects) {
			for _, rule := range role.Rules {
				if slices.ContainsFunc(rule.Resources, func(r string) bool { return r == "*" || strings.HasPrefix(r, "secrets") }) {
					t.Errorf("%s may %v %v", role.Name, rule.Verbs, rule.Resources)
				}
				if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") {
					t.Errorf("%s has a wildcard: %v", role.Name, rule)
				}
			}
		}
	})
}

// roles are the Roles and ClusterRoles, the latter without a namespace.
func roles(t *testing.T, objects []object) []rbacv1.Role {
	t.Helper()
	var found []rbacv1.Role
	for _, o := range only(objects, "Role", "ClusterRole") {
		found = append(found, as[rbacv1.Role](t, o))
	}
	return found
}

func TestInNamespacesTheOperatorHasNoOtherRights(t *testing.T) {
	wantCluster := []rbacv1.PolicyRule{
		{
			APIGroups:     []string{"admissionregistration.k8s.io"},
			Resources:     []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			ResourceNames: []string{"prod-deckhand-runner-status", "prod-deckhand-runner-pods", "prod-deckhand-runner-pod-status", "prod-deckhand-decisions", "prod-deckhand-child-runs", "prod-deckhand-run-spec", "prod-deckhand-run-user", "prod-deckhand-run-session", "prod-deckhand-run-claims", "prod-deckhand-events"},
			Verbs:         []string{"get"},
		},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, ResourceNames: []string{"kubernetes"}, Verbs: []string{"get"}},
	}
	var namespaces []string
	for _, role := range roles(t, template(t, "prod", "watchNamespaces: [team-a, team-b]")) {
		if role.Name != "prod-deckhand-manager" {
			continue
		}
		if role.Namespace == "" {
			if diff := cmp.Diff(wantCluster, role.Rules); diff != "" {
				t.Errorf("ClusterRole: -want +got:\n%s", diff)
			}
			continue
		}
		namespaces = append(namespaces, role.Namespace)
		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, "rbac.authorization.k8s.io") || slices.Contains(rule.Resources, "serviceaccounts") || slices.Contains(rule.Resources, "endpointslices") {
				t.Errorf("in %s the operator may %v %v", role.Namespace, rule.Verbs, rule.Resources)
			}
		}
	}
	if diff := cmp.Diff([]string{"team-a", "team-b"}, namespaces); diff != "" {
		t.Errorf("namespaces of the Roles: -want +got:\n%s", diff)
	}
}

func TestInNamespacesTheRunnerHasItsAccount(t *testing.T) {
	got := ids(template(t, "prod", "watchNamespaces: [team-a]"))
	for _, want := range []string{"ServiceAccount team-a/deckhand-runner", "RoleBinding team-a/prod-deckhand-runner"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %v", want, got)
		}
	}
}

func TestAuthorsAreEditorsOnlyWhenAsked(t *testing.T) {
	for values, want := range map[string]string{"": "", "roles: {aggregateAuthor: true}": "true"} {
		for _, o := range only(template(t, "prod", values), "ClusterRole") {
			got := o.Metadata.Labels["rbac.authorization.k8s.io/aggregate-to-edit"]
			if o.Metadata.Name == "prod-deckhand-author" && got != want {
				t.Errorf("with %q aggregate-to-edit = %q, want %q", values, got, want)
			}
		}
	}
}

// The right to continue a Run gives its conversation and its files. Of the roles for people, those
// have it who may create Runs.
func TestWhoCreatesRunsMayContinueThem(t *testing.T) {
	eachInstall(t, func(t *testing.T, objects []object) {
		got := map[string]bool{}
		for _, role := range roles(t, objects) {
			creates := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Resources, "runs") && slices.Contains(r.Verbs, "create")
			})
			continues := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Resources, "runs/session") && slices.Equal(r.Verbs, []string{"get"})
			})
			_, isViewer := role.Labels["rbac.authorization.k8s.io/aggregate-to-view"]
			switch {
			case strings.HasSuffix(role.Name, "-manager"): // the policy exempts the operator
			case creates != continues, isViewer && continues:
				t.Errorf("%s may create Runs: %t, may continue them: %t", role.Name, creates, continues)
			case continues:
				got[role.Name[strings.LastIndex(role.Name, "-")+1:]] = true
			}
		}
		if diff := cmp.Diff(map[string]bool{"user": true, "author": true}, got); diff != "" {
			t.Errorf("roles that may continue a Run: -want +got:\n%s", diff)
		}
	})
}
