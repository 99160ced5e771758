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
// All files of the cluster are in one folder, with a record of each process, and Down removes all of it. Up may be
// called at any time. It leaves running components alone and starts ended ones again. If no process is left, because
// the machine was restarted, it clears the folder and starts a new cluster.
package cluster
