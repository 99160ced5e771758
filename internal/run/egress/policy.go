package egress

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Name returns the name of the policy of a class.
func Name(label string) string { return namePrefix + label }

// LabelIn returns the label of the class whose policy has this name. Users may change the label of
// a policy itself; its name stays.
func LabelIn(name string) (label string, is bool) { return strings.CutPrefix(name, namePrefix) }

const namePrefix = "deckhand-egress-"

// apiPort is the usual port of an API server.
const apiPort int32 = 6443

// Policy returns the policy of a class in a namespace, with a rule for the API server.
func Policy(c Class, namespace string, servers networkingv1.NetworkPolicyEgressRule, operator Operator) *networkingv1.NetworkPolicy {
	rules := []networkingv1.NetworkPolicyEgressRule{
		{Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolUDP, 53), port(corev1.ProtocolTCP, 53)}},
		servers,
		{To: everywhere(), Ports: tcp(c.Ports...)},
	}
	for _, n := range c.Namespaces {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n}},
		}}})
	}
	for _, a := range c.Addresses {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{exactly(a.IP)}, Ports: tcp(a.Port)})
	}
	if operator.Port != 0 {
		rules = append(rules, toOperator(operator))
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      Name(c.Label()),
			Labels:    map[string]string{"app.kubernetes.io/managed-by": "deckhand", v1alpha1.LabelEgress: c.Label()},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelEgress: c.Label()}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress},
			Egress:      rules,
		},
	}
}

// serversRule is the index of the rule for the API server in a policy.
const serversRule = 1

// An Operator has a port at which runner pods ask the operator for a port that is closed to them. Port 0: there is
// none.
type Operator struct {
	Namespace string
	Port      int32
}

// operatorName is the label app.kubernetes.io/name of the operator's pods.
const operatorName = "deckhand"

func toOperator(o Operator) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.Namespace}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": operatorName}},
		}},
		Ports: tcp(o.Port),
	}
}

// toAnyServer allows the usual ports of an API server. It names no addresses, not even everywhere():
// network plugins such as Cilium do not count cluster nodes, where the API server may be, among the
// addresses of a block.
func toAnyServer() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{Ports: tcp(https, apiPort)}
}

// toServers allows the addresses of the API server. If the cluster lists none, its usual ports are open
// everywhere.
func toServers(servers []Address) networkingv1.NetworkPolicyEgressRule {
	if len(servers) == 0 {
		return networkingv1.NetworkPolicyEgressRule{To: everywhere(), Ports: tcp(https, apiPort)}
	}
	var rule networkingv1.NetworkPolicyEgressRule
	var ports []int32
	for _, s := range servers {
		rule.To = append(rule.To, exactly(s.IP))
		ports = append(ports, s.Port)
	}
	slices.Sort(ports)
	rule.Ports = tcp(slices.Compact(ports)...)
	return rule
}

// everywhere returns all addresses except those of the cluster node and its cloud: link-local addresses, and metadata
// services at other addresses. The runner refuses the same.
func everywhere() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{
			"169.254.0.0/16",
			"100.100.100.200/32", // Alibaba
			"168.63.129.16/32",   // Azure
			"192.0.0.192/32",     // Oracle
		}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{
			"fe80::/10",
			"fd00:ec2::/32",          // AWS
			"fd20:ce::/32",           // Google
			"fd00:42::42/128",        // Scaleway
			"fd00:c1::a9fe:a9fe/128", // Oracle
			"64:ff9b::a9fe:0/112",    // those of IPv4 behind NAT64
			"64:ff9b::6464:64c8/128",
			"64:ff9b::a83f:8110/128",
			"64:ff9b::c000:c0/128",
		}}},
	}
}

func exactly(ip string) networkingv1.NetworkPolicyPeer {
	bits := 32
	if a, err := netip.ParseAddr(ip); err == nil {
		bits = a.BitLen()
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(netip.MustParseAddr(ip), bits).String()}}
}

func tcp(ports ...int32) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, p := range ports {
		out = append(out, port(corev1.ProtocolTCP, p))
	}
	return out
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	at := intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &at}
}

// digestPrefix begins the digests in a spec. The API server allows no policy type with it.
const digestPrefix = "sha256:"

// Digest returns what the cache keeps of the spec of a policy, which may be very long: its policy types are replaced by
// the digest of the spec and, if there is a rule for the API server, by the digest of that rule. The digest of a digest
// is itself.
func Digest(spec networkingv1.NetworkPolicySpec) networkingv1.NetworkPolicySpec {
	if len(spec.PolicyTypes) > 0 && strings.HasPrefix(string(spec.PolicyTypes[0]), digestPrefix) {
		return spec
	}
	out := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{digestOf(spec)}}
	if len(spec.Egress) > serversRule {
		out.PolicyTypes = append(out.PolicyTypes, digestOf(spec.Egress[serversRule]))
	}
	return out
}

// hasOtherServers reports whether a policy has a rule for the API server that is not this one.
func hasOtherServers(spec networkingv1.NetworkPolicySpec, servers networkingv1.NetworkPolicyEgressRule) bool {
	digests := Digest(spec).PolicyTypes
	return len(digests) == 2 && digests[1] != digestOf(servers)
}

func digestOf(part any) networkingv1.PolicyType {
	text, _ := json.Marshal(part) // a part of a NetworkPolicy always encodes
	return networkingv1.PolicyType(digestPrefix + task.Hash(text))
}
