// Package egress restricts the network of runner pods, if the cluster's network enforces NetworkPolicies:
// pods may reach only the destinations that their agents need, and cannot be reached.
//
// The class of a pod is its set of destinations, computed from the snapshot of its Agent. Pods of one
// namespace and one class share a policy, which is named after the class and selects them by a label. It is
// created before the first pod that needs it and deleted some minutes after the last.
//
// A policy has addresses and ports, not host names. So a policy opens the port of each host outside to all addresses
// except link-local ones, and all ports of the pods in the namespace of a Service: docs/networking.md describes what
// this prevents, and how to restrict the rest.
package egress
