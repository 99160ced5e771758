// Package simnode simulates a node for tests at scale: it acts as the kubelet and as
// the runners of thousands of pods, and starts no container.
//
// Only the containers are simulated. The API server, its admission policies, the
// scheduler and the operator are the real ones:
//
//   - The kubelet's requests are made as system:node:<name>, in the group
//     system:nodes, so that the Node authorizer and NodeRestriction apply to them.
//   - The reports of a runner are written by package internal/shared/report, as the pod's
//     ServiceAccount with the pod's name and UID, which is what a token bound to the
//     pod would say. The policy that guards the status of Runs applies to them.
//
// Both need a client that may impersonate, as an administrator may.
//
// A simulated node is tainted, so that only pods that tolerate it are scheduled there:
//
//	pod.Spec.NodeSelector = simnode.Selector("sim")
//	pod.Spec.Tolerations = simnode.Tolerations()
//
// A pod becomes Running, works for as long as Options.Work says, and ends as
// Succeeded. A runner reports its result in between, and nothing while it works. A kubelet
// patches the status of a pod more often than that.
package simnode
