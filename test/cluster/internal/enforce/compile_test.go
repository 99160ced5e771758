package enforce

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// cluster has two nodes, two namespaces and a pod of the host's network.
func cluster(mode Mode, specs ...string) State {
	s := State{
		Namespaces: []*corev1.Namespace{namespace("a", map[string]string{Label: string(mode)}), namespace("b", map[string]string{"team": "b"})},
		Pods: []*corev1.Pod{
			pod("a", "run", "10.65.0.2"), pod("a", "db", "10.65.0.3"), pod("b", "db", "10.65.128.4"), pod("b", "web", "10.65.128.5"),
			pod("a", "done", "10.65.0.9"), pod("a", "host", "10.64.0.1"), pod("a", "waiting", ""),
		},
		Open: func(*corev1.Pod) bool { return false },
	}
	s.Pods[4].Status.Phase = corev1.PodSucceeded
	s.Pods[5].Spec.HostNetwork = true
	for _, text := range specs {
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
		if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
			panic(err)
		}
		s.Policies = append(s.Policies, p)
	}
	return s
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func pod(namespace, app, ip string) *corev1.Pod {
	node := "one"
	if strings.HasPrefix(ip, "10.65.128.") {
		node = "two"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning},
	}
}

// Of each policy, the chains of the pod 10.65.0.2. Each chain begins with the rule for the
// pod itself and ends with drop, which are left out.
func TestCompile(t *testing.T) {
	const run = "podSelector: {matchLabels: {app: run}}\n"
	for name, tc := range map[string]struct {
		spec            string
		egress, ingress string
	}{
		"no type, no rule: inbound": {run, "-", ""},
		"no type, a rule of egress": {run + "egress: [{}]", "return", ""},
		"only egress":               {run + "policyTypes: [Egress]", "", "-"},
		"only ingress":              {run + "policyTypes: [Ingress]\negress: [{}]", "-", ""},
		"every pod":                 {"podSelector: {}\npolicyTypes: [Egress, Ingress]", "", ""},
		"another pod":               {"podSelector: {matchLabels: {app: db}}", "-", "-"},
		"an expression":             {"podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [run]}]}", "-", "-"},
		"a port, everywhere":        {run + "policyTypes: [Egress]\negress: [{ports: [{port: 53, protocol: UDP}, {port: 53}]}]", "udp dport 53 return; tcp dport 53 return", "-"},
		"a range of ports":          {run + "policyTypes: [Egress]\negress: [{ports: [{port: 1024, endPort: 2048}]}]", "tcp dport 1024-2048 return", "-"},
		"a protocol":                {run + "policyTypes: [Egress]\negress: [{ports: [{protocol: UDP}]}]", "meta l4proto udp return", "-"},
		"a port by name":            {run + "policyTypes: [Egress]\negress: [{ports: [{port: web}]}]", "", "-"},
		"an address":                {run + "policyTypes: [Egress]\negress: [{to: [{ipBlock: {cidr: 10.0.0.1/32}}], ports: [{port: 443}]}]", "ip daddr 10.0.0.1/32 tcp dport 443 return", "-"},
		"except": {
			run + "policyTypes: [Egress]\negress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16, 10.1.0.0/16]}}, {ipBlock: {cidr: '::/0', except: ['fe80::/10']}}]}]",
			"ip daddr 0.0.0.0/0 ip daddr != { 169.254.0.0/16, 10.1.0.0/16 } return", "-",
		},
		"pods of the namespace":     {run + "ingress: [{from: [{podSelector: {}}]}]", "-", "ip saddr { 10.65.0.2, 10.65.0.3 } return"},
		"pods of another namespace": {run + "ingress: [{from: [{namespaceSelector: {matchLabels: {team: b}}}]}]", "-", "ip saddr { 10.65.128.4, 10.65.128.5 } return"},
		"pods by both selectors":    {run + "ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: db}}}]}]", "-", "ip saddr { 10.65.0.3, 10.65.128.4 } return"},
		"pods that there are not":   {run + "ingress: [{from: [{podSelector: {matchLabels: {app: none}}}]}]", "-", ""},
		"peers and ports": {
			run + "ingress: [{from: [{podSelector: {matchLabels: {app: db}}}, {ipBlock: {cidr: 10.9.0.0/16}}], ports: [{port: 1}, {port: 2}]}]", "-",
			"ip saddr { 10.65.0.3 } tcp dport 1 return; ip saddr { 10.65.0.3 } tcp dport 2 return; " +
				"ip saddr 10.9.0.0/16 tcp dport 1 return; ip saddr 10.9.0.0/16 tcp dport 2 return",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := cluster(Enforced, tc.spec).Compile("one")
			for d, want := range map[direction]string{directions[0]: tc.egress, directions[1]: tc.ingress} {
				if has := rulesIn(got, chainName(d, "10.65.0.2")); has != want {
					t.Errorf("%s: %q, want %q", d.kind, has, want)
				}
			}
		})
	}
}

// rulesIn returns the rules of a chain in a line; "-": there is no such chain.
func rulesIn(rules, name string) string {
	_, after, found := strings.Cut(rules, "\tchain "+name+" {\n")
	if !found {
		return "-"
	}
	body, _, _ := strings.Cut(after, "\t}\n")
	lines := strings.Split(strings.TrimSpace(body), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines[1:len(lines)-1], "; ")
}

// Policies add up.
func TestPoliciesAddUp(t *testing.T) {
	const spec = "podSelector: {}\npolicyTypes: [Egress]\negress: [{ports: [{port: %}]}]"
	got := cluster(Enforced, strings.Replace(spec, "%", "1", 1), strings.Replace(spec, "%", "2", 1)).Compile("one")
	if has := rulesIn(got, "egress-10.65.0.2"); has != "tcp dport 1 return; tcp dport 2 return" {
		t.Errorf("%q", has)
	}
}

// A pod that has ended, has no address, has that of its node, or is on another node has no rules.
func TestPodsWithoutRules(t *testing.T) {
	const closed = "podSelector: {}\npolicyTypes: [Egress, Ingress]"
	s := cluster(Enforced, closed)
	for node, want := range map[string]int{"one": 4, "two": 0} { // two pods, two directions
		if got := strings.Count(s.Compile(node), "\tchain ") - 1; got != want {
			t.Errorf("%s has %d chains, want %d", node, got, want)
		}
	}
}

func TestModes(t *testing.T) {
	const spec = "podSelector: {matchLabels: {app: run}}\npolicyTypes: [Egress]"
	const (
		jump   = "ip saddr vmap { 10.65.0.2 : jump egress-10.65.0.2 }"
		marks  = "ip saddr 10.65.0.2 ct state new ct mark set " + known
		drops  = "ip daddr 10.65.0.2 ct direction reply ct mark != " + known + " drop"
		accept = "ct state established,related accept"
	)
	for name, tc := range map[string]struct {
		mode Mode
		open bool
		want []string
	}{
		"none":                      {None, false, []string{accept}},
		"enforced":                  {Enforced, true, []string{accept, jump}},
		"delayed, while it is open": {Delayed, true, []string{accept}},
		"delayed, afterwards":       {Delayed, false, []string{marks, drops, accept, jump}},
		"no mode":                   {"Perhaps", false, []string{accept}},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(tc.mode, spec)
			s.Default = None
			s.Open = func(*corev1.Pod) bool { return tc.open }
			_, body, _ := strings.Cut(s.Compile("one"), "policy accept;\n")
			body, _, _ = strings.Cut(body, "\t}\n")
			if got := strings.TrimSpace(strings.ReplaceAll(body, "\t", "")); got != strings.Join(tc.want, "\n") {
				t.Errorf("the base chain is\n%s\nwant\n%s", got, strings.Join(tc.want, "\n"))
			}
		})
	}
}
