// Package cluster makes a whole Kubernetes out of processes on one machine:
// etcd, the control plane, containerd and one node, in a network namespace that
// nothing leaves.
//
//	host │ namespace
//	     │   etcd ── kube-apiserver ┬ kube-controller-manager, kube-scheduler
//	gate ┼──────────────┘           ├ kubelet ── containerd ── pods
//	     │                          └ kube-proxy, cluster-dns, volumes
//
// Everything it keeps is under one folder, everything it starts is written down
// there, and Down takes all of it away. Up may be called at any time: what runs
// stays, what died is started again, and when nothing lives any more (the
// machine was restarted) what was left is cleared and a new cluster begins.
package cluster
