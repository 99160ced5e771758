package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const metricsFromMonitoring = "networkPolicies: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}"

// Probes come from the node, which a NetworkPolicy never shuts out.
func TestNobodyConnectsToTheOperator(t *testing.T) {
	policyOf := func(values string) []networkingv1.NetworkPolicy {
		return all[networkingv1.NetworkPolicy](t, template(t, "prod", values), "NetworkPolicy")
	}
	closed := policyOf("")
	if len(closed) != 1 || len(closed[0].Spec.Ingress) != 0 || !slices.Equal(closed[0].Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Fatalf("by default: %+v", closed)
	}
	pod := manager(t, template(t, "prod", "")).Spec.Template.Labels
	for key, value := range closed[0].Spec.PodSelector.MatchLabels {
		if pod[key] != value {
			t.Errorf("it selects %s=%s, which the pod has not", key, value)
		}
	}
	open := policyOf(metricsFromMonitoring)
	want := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}}}
	if len(open) != 1 || len(open[0].Spec.Ingress) != 1 {
		t.Fatalf("with a peer: %+v", open)
	}
	rule := open[0].Spec.Ingress[0]
	if diff := cmp.Diff(want, rule.From); diff != "" || len(rule.Ports) != 1 || rule.Ports[0].Port.IntValue() != 8080 {
		t.Errorf("ports %v, peers -want +got:\n%s", rule.Ports, diff)
	}
	if none := policyOf("networkPolicies: {enabled: false}"); len(none) != 0 {
		t.Errorf("without NetworkPolicies: %v", none)
	}
}

// Rights on reviews come with authentication of metrics, and only then, also where
// the operator watches chosen namespaces.
func TestRightsOnReviewsComeWithAuthenticationOfMetrics(t *testing.T) {
	reviews := func(values string) (found []string) {
		for _, o := range only(template(t, "prod", values), "ClusterRole") {
			for _, rule := range as[rbacv1.ClusterRole](t, o).Rules {
				for _, r := range rule.Resources {
					if strings.HasSuffix(r, "reviews") {
						found = append(found, r+" "+strings.Join(rule.Verbs, ","))
					}
				}
			}
		}
		return found
	}
	flag := func(values string) bool {
		return slices.Contains(manager(t, template(t, "prod", values)).Spec.Template.Spec.Containers[0].Args, "--metrics-authentication")
	}
	if got := reviews(""); len(got) != 0 || flag("") {
		t.Errorf("by default: %v", got)
	}
	with := template(t, "prod", "metrics: {authentication: true}")
	for _, b := range all[rbacv1.ClusterRoleBinding](t, with, "ClusterRoleBinding") {
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "deckhand-system", Name: manager(t, with).Spec.Template.Spec.ServiceAccountName}}
		if diff := cmp.Diff(want, b.Subjects); strings.HasSuffix(b.Name, "-metrics-authentication") && (diff != "" || b.RoleRef.Name != b.Name) {
			t.Errorf("%s is for role %s, subjects -want +got:\n%s", b.Name, b.RoleRef.Name, diff)
		}
	}
	for _, values := range []string{"metrics: {authentication: true}", "{metrics: {authentication: true}, watchNamespaces: [a]}"} {
		if diff := cmp.Diff([]string{"tokenreviews create", "subjectaccessreviews create"}, reviews(values)); diff != "" || !flag(values) {
			t.Errorf("%s: -want +got:\n%s", values, diff)
		}
	}
}
