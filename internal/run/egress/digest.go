package egress

import (
	"encoding/json"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// digestPrefix begins the digests in a spec. The API server allows no policy type with it.
const digestPrefix = "sha256:"

// Digest returns what the cache keeps of the spec of a policy, which may be as long as its author
// likes: in place of its policy types the digest of the spec, and that of the rule for the API
// server if there is one. The digest of a digest is itself.
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
