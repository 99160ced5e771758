// Package enforce makes NetworkPolicies take effect on the nodes of the test cluster, in the
// two ways in which network plugins differ most. A namespace chooses by [Label]; without it,
// the cluster's default applies, which is that nothing is enforced.
//
// Compile turns policies into rules of nftables and has no I/O, Serve keeps the rules of all
// nodes as the API server has the policies. It knows what Deckhand writes: addresses of IPv4,
// ports by number, selectors.
package enforce
