// Package networkcheck tests whether NetworkPolicies close ports to a pod. A [Server], in the operator, listens on two
// ports. The policies of runner pods allow only the first; a [Checker], in a runner, tries both.
//
// docs/designs/032-proof-of-network-policies.md describes each outcome.
package networkcheck
