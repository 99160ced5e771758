package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const metricsFromMonitoring = "networkPolicies: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}"

// Probes come from the node, which a NetworkPolicy never shuts out. Pods may connect to the two
// ports of the check of NetworkPolicies.
func TestNobodyConnectsToTheOperator(t *testing.T) {
	policyOf := func(values string) []networkingv1.NetworkPolicy {
		return all[networkingv1.NetworkPolicy](t, template(t, "prod", values), "NetworkPolicy")
	}
	closed := policyOf("")
	if len(closed) != 1 || len(closed[0].Spec.Ingress) != 1 || !slices.Equal(closed[0].Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Fatalf("by default: %+v", closed)
	}
	if diff := cmp.Diff(checkedByPods(), closed[0].Spec.Ingress[0]); diff != "" {
		t.Errorf("by default: -want +got:\n%s", diff)
	}
	pod := manager(t, template(t, "prod", "")).Spec.Template.Labels
	for key, value := range closed[0].Spec.PodSelector.MatchLabels {
		if pod[key] != value {
			t.Errorf("it selects %s=%s, which the pod has not", key, value)
		}
	}
	open := policyOf(metricsFromMonitoring)
	want := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}}}
	if len(open) != 1 || len(open[0].Spec.Ingress) != 2 {
		t.Fatalf("with a peer: %+v", open)
	}
	rule := open[0].Spec.Ingress[1]
	if diff := cmp.Diff(want, rule.From); diff != "" || len(rule.Ports) != 1 || rule.Ports[0].Port.IntValue() != 8080 {
		t.Errorf("ports %v, peers -want +got:\n%s", rule.Ports, diff)
	}
	if none := policyOf("networkPolicies: {enabled: false}"); len(none) != 0 {
		t.Errorf("without NetworkPolicies: %v", none)
	}
}

// checkedByPods is the rule for all pods of the cluster.
func checkedByPods() networkingv1.NetworkPolicyIngressRule {
	tcp, open, closed := corev1.ProtocolTCP, intstr.FromInt32(20471), intstr.FromInt32(20472)
	return networkingv1.NetworkPolicyIngressRule{
		From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}},
		Ports: []networkingv1.NetworkPolicyPort{{Port: &open, Protocol: &tcp}, {Port: &closed, Protocol: &tcp}},
	}
}

// The operator is given the name of the Service, whose ports are those of its pod, and listens
// there only if runner pods have policies.
func TestRunnersFindTheCheckOfNetworkPolicies(t *testing.T) {
	service := func(values string) []corev1.Service {
		return slices.DeleteFunc(all[corev1.Service](t, template(t, "prod", values), "Service"), func(s corev1.Service) bool { return !strings.HasSuffix(s.Name, "-check") })
	}
	flag := func(values string) string {
		args := manager(t, template(t, "prod", values)).Spec.Template.Spec.Containers[0].Args
		at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--network-check=") })
		if at < 0 {
			return ""
		}
		return strings.TrimPrefix(args[at], "--network-check=")
	}
	on := service("")
	if len(on) != 1 || on[0].Spec.ClusterIP != corev1.ClusterIPNone || len(on[0].Spec.Ports) != 2 {
		t.Fatalf("the Services are %+v", on)
	}
	if want := on[0].Name + ".$(POD_NAMESPACE).svc:20471"; flag("") != want {
		t.Errorf("the operator is given %q, want %q", flag(""), want)
	}
	pod := manager(t, template(t, "prod", "")).Spec.Template.Spec.Containers[0]
	for _, p := range on[0].Spec.Ports { // a Service without an address maps no ports
		if !slices.ContainsFunc(pod.Ports, func(c corev1.ContainerPort) bool {
			return c.Name == p.TargetPort.StrVal && c.ContainerPort == p.Port
		}) {
			t.Errorf("the pod has no port %+v: %+v", p, pod.Ports)
		}
	}
	const off = "networkPolicies: {enabled: false}"
	if none := service(off); len(none) != 0 || flag(off) != "" {
		t.Errorf("without NetworkPolicies: %+v, %q", none, flag(off))
	}
}

// On request the operator reaches DNS, the API server and what is listed, and nothing else.
func TestWhatTheOperatorReaches(t *testing.T) {
	for values, want := range map[string][]int{
		"networkPolicies: {enabled: true, operatorEgress: {enabled: true}}":                                                            {53, 53, 5353, 5353, 443, 6443, 20472},
		"networkPolicies: {enabled: true, operatorEgress: {enabled: true, apiServerPorts: [16443], rules: [{ports: [{port: 4318}]}]}}": {53, 53, 5353, 5353, 16443, 20472, 4318},
	} {
		p := all[networkingv1.NetworkPolicy](t, template(t, "prod", values), "NetworkPolicy")
		if len(p) != 1 || !slices.Equal(p[0].Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}) {
			t.Fatalf("%s: %+v", values, p)
		}
		var ports []int
		for _, rule := range p[0].Spec.Egress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.IntValue())
			}
		}
		if diff := cmp.Diff(want, ports); diff != "" {
			t.Errorf("%s: -want +got:\n%s", values, diff)
		}
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
	for _, values := range []string{"metrics: {authentication: true}", "{metrics: {authentication: true}, watchNamespaces: [a]}"} {
		if diff := cmp.Diff([]string{"tokenreviews create", "subjectaccessreviews create"}, reviews(values)); diff != "" || !flag(values) {
			t.Errorf("%s: -want +got:\n%s", values, diff)
		}
	}
}

// The rights are those of the operator, whatever the release is called.
func TestRightsOnReviewsAreTheOperators(t *testing.T) {
	objects := template(t, "prod", "metrics: {authentication: true}")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "deckhand-system", Name: manager(t, objects).Spec.Template.Spec.ServiceAccountName}}
	bindings := slices.DeleteFunc(all[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding"), func(b rbacv1.ClusterRoleBinding) bool {
		return !strings.HasSuffix(b.Name, "-metrics-authentication")
	})
	if len(bindings) != 1 || bindings[0].RoleRef.Name != bindings[0].Name {
		t.Fatalf("the bindings are %+v", bindings)
	}
	if diff := cmp.Diff(want, bindings[0].Subjects); diff != "" {
		t.Errorf("subjects -want +got:\n%s", diff)
	}
}
