package enforce

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A State is everything on which the rules of a node depend.
type State struct {
	Namespaces []*corev1.Namespace
	Pods       []*corev1.Pod
	Policies   []*networkingv1.NetworkPolicy
	// Default is the mode of namespaces without the label.
	Default Mode
	// Open reports whether a pod of a namespace with the mode Delayed is still open.
	Open func(*corev1.Pod) bool
}

// A direction is the direction of a connection, as seen from the pod that a policy selects.
type direction struct {
	kind networkingv1.PolicyType
	pod  string // the address of the pod in a packet
	peer string // the other address
}

var directions = []direction{
	{networkingv1.PolicyTypeEgress, "saddr", "daddr"},
	{networkingv1.PolicyTypeIngress, "daddr", "saddr"},
}

// table is the name of the table that holds all rules.
const table = "deckhand-policies"

// known marks connections that a pod began after it was open.
const known = "0xdec"

// Compile returns the rules for the pods of a node, as input of `nft -f`. They replace the earlier rules in one
// transaction. They apply only to forwarded packets: packets between a pod and its own node are always allowed.
func (s State) Compile(node string) string {
	var base, chains []string
	for _, p := range s.Pods {
		if p.Spec.NodeName != node || !hasAddress(p) || s.modeOf(p.Namespace) == None || !s.isSelected(p) {
			continue
		}
		if s.modeOf(p.Namespace) == Delayed {
			if s.Open(p) {
				continue
			}
			base = append(base,
				fmt.Sprintf("ip saddr %s ct state new ct mark set %s", p.Status.PodIP, known),
				fmt.Sprintf("ip daddr %s ct direction reply ct mark != %s drop", p.Status.PodIP, known))
		}
		chains = append(chains, s.chains(p)...)
	}
	base = append(base, "ct state established,related accept")
	for _, d := range directions {
		if jumps := jumps(chains, d); jumps != "" {
			base = append(base, fmt.Sprintf("ip %s vmap { %s }", d.pod, jumps))
		}
	}
	return fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\n%[2]s}\n", table,
		chain("forward", append([]string{"type filter hook forward priority 10; policy accept;"}, base...))+strings.Join(chains, ""))
}

// chain formats a chain.
func chain(name string, rules []string) string {
	return fmt.Sprintf("\tchain %s {\n\t\t%s\n\t}\n", name, strings.Join(rules, "\n\t\t"))
}

// chainName returns the name of the chain of a pod for one direction.
func chainName(d direction, address string) string {
	return strings.ToLower(string(d.kind)) + "-" + address
}

// jumps lists, for the chains of one direction, which address jumps to which.
func jumps(chains []string, d direction) string {
	var found []string
	for _, c := range chains {
		name := strings.Fields(c)[1]
		if address, is := strings.CutPrefix(name, chainName(d, "")); is {
			found = append(found, address+" : jump "+name)
		}
	}
	return strings.Join(found, ", ")
}

// chains returns a chain for each direction in which policies select the pod. A chain drops each packet that no rule of
// these policies allows.
func (s State) chains(pod *corev1.Pod) []string {
	var all []string
	for _, d := range directions {
		selecting := s.selecting(pod, d.kind)
		if len(selecting) == 0 {
			continue
		}
		rules := []string{fmt.Sprintf("ip %s %s return", d.peer, pod.Status.PodIP)} // itself, through a Service
		for _, p := range selecting {
			for _, r := range rulesOf(p, d.kind) {
				rules = append(rules, s.allow(r, p.Namespace, d)...)
			}
		}
		all = append(all, chain(chainName(d, pod.Status.PodIP), append(rules, "drop")))
	}
	return all
}

// A rule is a rule of a policy, for either direction.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(p *networkingv1.NetworkPolicy, kind networkingv1.PolicyType) []rule {
	var all []rule
	if kind == networkingv1.PolicyTypeEgress {
		for _, r := range p.Spec.Egress {
			all = append(all, rule{r.To, r.Ports})
		}
		return all
	}
	for _, r := range p.Spec.Ingress {
		all = append(all, rule{r.From, r.Ports})
	}
	return all
}

func (s State) isSelected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(directions, func(d direction) bool { return len(s.selecting(pod, d.kind)) > 0 })
}

// selecting returns the policies that restrict a direction of a pod.
func (s State) selecting(pod *corev1.Pod, kind networkingv1.PolicyType) []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, p := range s.Policies {
		if p.Namespace == pod.Namespace && restricts(p, kind) && matches(&p.Spec.PodSelector, pod.Labels) {
			all = append(all, p)
		}
	}
	return all
}

// restricts reports whether a policy is for a direction. A policy without types is for
// inbound traffic, and for outbound traffic if it has rules for that.
func restricts(p *networkingv1.NetworkPolicy, kind networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) > 0 {
		return slices.Contains(p.Spec.PolicyTypes, kind)
	}
	return kind == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
}

// allow returns the lines of nftables that accept the packets that a rule allows.
func (s State) allow(r rule, namespace string, d direction) []string {
	addresses := matchesOf(r.peers, func(p networkingv1.NetworkPolicyPeer) string { return s.addresses(p, namespace, d) })
	ports := matchesOf(r.ports, portMatch)
	var lines []string
	for _, a := range addresses {
		for _, p := range ports {
			lines = append(lines, strings.Join(strings.Fields(a+" "+p+" return"), " "))
		}
	}
	return lines
}

// matchesOf returns the matches of a list, without those that match nothing. An empty list
// matches everything.
func matchesOf[T any](list []T, match func(T) string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	var all []string
	for _, one := range list {
		if m := match(one); m != "" {
			all = append(all, m)
		}
	}
	return all
}

// addresses returns a match of the addresses of a peer, or "" if it has none of IPv4.
func (s State) addresses(p networkingv1.NetworkPolicyPeer, namespace string, d direction) string {
	if p.IPBlock != nil {
		return blockMatch(p.IPBlock, d)
	}
	var found []string
	for _, pod := range s.Pods {
		if hasAddress(pod) && s.isPeer(p, pod, namespace) {
			found = append(found, pod.Status.PodIP)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("ip %s { %s }", d.peer, strings.Join(found, ", "))
}

func blockMatch(b *networkingv1.IPBlock, d direction) string {
	if !isIPv4(b.CIDR) {
		return ""
	}
	match := fmt.Sprintf("ip %s %s", d.peer, b.CIDR)
	var except []string
	for _, e := range b.Except {
		if isIPv4(e) {
			except = append(except, e)
		}
	}
	if len(except) > 0 {
		match += fmt.Sprintf(" ip %s != { %s }", d.peer, strings.Join(except, ", "))
	}
	return match
}

func isIPv4(block string) bool {
	p, err := netip.ParsePrefix(block)
	return err == nil && p.Addr().Is4()
}

// isPeer reports whether the selectors of a peer select a pod. Without a selector of namespaces they select only pods
// in the policy's namespace.
func (s State) isPeer(p networkingv1.NetworkPolicyPeer, pod *corev1.Pod, namespace string) bool {
	if p.PodSelector != nil && !matches(p.PodSelector, pod.Labels) {
		return false
	}
	if p.NamespaceSelector == nil {
		return pod.Namespace == namespace
	}
	return slices.ContainsFunc(s.Namespaces, func(n *corev1.Namespace) bool {
		return n.Name == pod.Namespace && matches(p.NamespaceSelector, n.Labels)
	})
}

// portMatch returns a match of ports, or "" for a port by name, which is not supported and
// allows nothing.
func portMatch(p networkingv1.NetworkPolicyPort) string {
	protocol := "tcp"
	if p.Protocol != nil {
		protocol = strings.ToLower(string(*p.Protocol))
	}
	switch {
	case p.Port == nil:
		return "meta l4proto " + protocol
	case p.Port.Type == intstr.String:
		return ""
	case p.EndPort != nil:
		return fmt.Sprintf("%s dport %d-%d", protocol, p.Port.IntVal, *p.EndPort)
	}
	return fmt.Sprintf("%s dport %d", protocol, p.Port.IntVal)
}

// matches reports whether a selector selects labels. A selector that cannot be read selects
// nothing.
func matches(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}

// hasAddress reports whether a pod has an address of its own, and runs: the address of a
// pod that has ended may be another's.
func hasAddress(p *corev1.Pod) bool {
	return p.Status.PodIP != "" && !p.Spec.HostNetwork && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}
