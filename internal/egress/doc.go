// Package egress closes the way out of runner pods, as far as the cluster's
// network heeds NetworkPolicies: what the agents of a pod need is open, all else
// is shut, and nobody gets in.
//
// What a pod may reach is its class, computed from the snapshot of its Agent. Pods
// of one namespace and one class share one policy, named by the class and selected
// by a label. It is made before the first pod that needs it and goes some minutes
// after the last.
//
// A policy knows addresses and ports, not names. So every outside host is reached
// at its port, which then is open to every address but link-local ones, and every
// Service at all ports of its namespace's pods: docs/networking.md says what that is
// worth, and what shuts the rest.
package egress
