// Package cluster makes a whole Kubernetes out of processes on one machine:
// etcd, the control plane and two nodes, in two connected network namespaces that
// nothing leaves.
//
//	host │ namespace of the first node                              │ of the second
//	     │   etcd ── kube-apiserver ┬ kube-controller-manager, …    │
//	gate ┼──────────────┘           ├ kubelet ── containerd ── pods ┼ kubelet ── containerd ── pods
//	     │                          └ kube-proxy, cluster-dns       │ kube-proxy
//
// Each node has its own containerd: a kubelet ends all pods of its containerd that
// are not its own. So an image is loaded twice.
//
// Everything it keeps is under one folder, everything it starts is written down
// there, and Down takes all of it away. Up may be called at any time: what runs
// stays, what died is started again, and when nothing lives any more (the
// machine was restarted) what was left is cleared and a new cluster begins.
package cluster
