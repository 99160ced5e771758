package egress

import (
	"flag"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The ports of the API server are in one order, whatever that of its addresses: a policy would change
// with it.
func TestPortsOfServersAreSorted(t *testing.T) {
	rule := toServers([]Address{{"172.18.0.2", 8443}, {"172.18.0.3", 6443}, {"172.18.0.4", 8443}})
	var got []int
	for _, p := range rule.Ports {
		got = append(got, p.Port.IntValue())
	}
	if !slices.Equal(got, []int{6443, 8443}) {
		t.Errorf("ports %v", got)
	}
}

// The whole policies, to be read.
func TestPolicies(t *testing.T) {
	servers := toServers([]Address{{"172.18.0.2", 6443}, {"172.18.0.3", 6443}})
	cases := map[string]struct {
		class   Class
		servers networkingv1.NetworkPolicyEgressRule
	}{
		"testdata/model.yaml":      {Of(snapshot(), "team-a"), servers},
		"testdata/everything.yaml": {Of(snapshot(model("http://ollama.ai.svc:11434"), model("http://10.1.2.3:8000"), model("http://[fd00::1]:8000"), model("https://gateway.example.com:8443")), "team-a"), servers},
		"testdata/unlisted.yaml":   {Of(snapshot(), "team-a"), toServers(nil)},
		"testdata/ports.yaml":      {Of(snapshot(), "team-a"), toAnyServer()},
	}
	for file, tc := range cases {
		t.Run(file, func(t *testing.T) {
			got, err := yaml.Marshal(Policy(tc.class, "team-a", tc.servers, Operator{Namespace: "deckhand-system", Port: 20471}))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// No rule lets anybody in, and none leads to the metadata service of a cloud.
func TestNoPolicyLeadsToMetadata(t *testing.T) {
	p := Policy(Of(snapshot(model("http://gateway.example.com")), "team-a"), "team-a", toAnyServer(), Operator{})
	if len(p.Spec.Ingress) > 0 || len(p.Spec.PolicyTypes) != 2 {
		t.Errorf("somebody gets in: %+v", p.Spec)
	}
	for i, rule := range p.Spec.Egress {
		for _, port := range rule.Ports {
			number := port.Port.IntValue()
			if number == 80 && len(rule.To) == 0 {
				t.Errorf("rule %d leads everywhere at port 80", i)
			}
		}
		for _, to := range rule.To {
			if b := to.IPBlock; b != nil && strings.HasSuffix(b.CIDR, "/0") {
				leadsToNoMetadata(t, i, b)
			}
		}
	}
}

// known finds the metadata services that the runner knows.
var known = regexp.MustCompile(`"([0-9a-f.:]+/[0-9]+)",? +// (?:metadata:|the host:|link-local,)`)

func leadsToNoMetadata(t *testing.T, rule int, b *networkingv1.IPBlock) {
	t.Helper()
	source, err := os.ReadFile("../../../runner/internal/address/address.go")
	if err != nil {
		t.Fatal(err)
	}
	all := known.FindAllStringSubmatch(string(source), -1)
	if len(all) < 7 {
		t.Fatalf("found %d metadata services", len(all))
	}
	for _, m := range all {
		if of := netip.MustParsePrefix(m[1]); of.Addr().Is4() == strings.Contains(b.CIDR, ".") && !slices.Contains(b.Except, m[1]) {
			t.Errorf("rule %d leads to %s", rule, m[1])
		}
	}
}

// Behind NAT64 an address of IPv4 has one of IPv6, too.
func TestWhatIsExceptedOfIPv4IsExceptedBehindNAT64(t *testing.T) {
	peers := everywhere()
	for _, written := range peers[0].IPBlock.Except {
		prefix := netip.MustParsePrefix(written)
		nat64 := netip.MustParseAddr("64:ff9b::").As16()
		copy(nat64[12:], prefix.Addr().AsSlice())
		want := netip.PrefixFrom(netip.AddrFrom16(nat64), 96+prefix.Bits()).String()
		if !slices.Contains(peers[1].IPBlock.Except, want) {
			t.Errorf("%s is excepted, and %s is not", written, want)
		}
	}
}
