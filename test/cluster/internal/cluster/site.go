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

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/enforce"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/netns"
)

// The addresses are the same in every cluster, because each cluster has network namespaces of its own.
const (
	nodeIP       = "10.64.0.1"    // of the first node
	podRange     = "10.65.0.0/16" // of all nodes
	serviceRange = "10.96.0.0/16"
	apiServiceIP = "10.96.0.1"
	pauseImage   = "deckhand.test/pause:1"
	criNamespace = "k8s.io" // where containerd's CRI plugin keeps its images
	cniNetwork   = "pods"
)

// A Site is where a cluster is.
type Site struct {
	Name  string // of the first node, its network namespace and its cgroup
	Dir   string // everything the cluster keeps
	Port  int    // of the API server, on the loopback of host and namespace alike
	K8s   string // the program that is all of Kubernetes
	Pause string // the program of the sandbox image
	// Policies is how NetworkPolicies take effect in namespaces that do not choose.
	Policies enforce.Mode
}

// SiteFromEnv reads CLUSTER_NAME, CLUSTER_DIR, CLUSTER_PORT, CLUSTER_K8S, CLUSTER_PAUSE and CLUSTER_POLICIES. The
// programs k8s and pause are by default in the folder of this program.
func SiteFromEnv() (Site, error) {
	self, err := os.Executable()
	if err != nil {
		return Site{}, fmt.Errorf("finding this program: %w", err)
	}
	beside := filepath.Dir(self)
	s := Site{
		Name:  env("CLUSTER_NAME", "deckhand-cluster"),
		Dir:   env("CLUSTER_DIR", "/var/lib/deckhand-cluster"),
		K8s:   env("CLUSTER_K8S", filepath.Join(beside, "k8s")),
		Pause: env("CLUSTER_PAUSE", filepath.Join(beside, "pause")),
	}
	if s.Port, err = strconv.Atoi(env("CLUSTER_PORT", "16443")); err != nil {
		return Site{}, fmt.Errorf("reading CLUSTER_PORT: %w", err)
	}
	if s.Policies, err = enforce.ParseMode(os.Getenv("CLUSTER_POLICIES")); err != nil {
		return Site{}, fmt.Errorf("reading CLUSTER_POLICIES: %w", err)
	}
	for _, p := range []*string{&s.Dir, &s.K8s, &s.Pause} {
		if *p, err = filepath.Abs(*p); err != nil {
			return Site{}, fmt.Errorf("reading environment: %w", err)
		}
	}
	return s, nil
}

func env(key, otherwise string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return otherwise
}

// Path joins names to the cluster's folder.
func (s Site) Path(names ...string) string {
	return filepath.Join(append([]string{s.Dir}, names...)...)
}

// Kubeconfig returns the path of the administrator's kubeconfig, which works on the host and inside the namespaces.
func (s Site) Kubeconfig() string { return s.Path("kubeconfig") }

// Kubectl returns a link to the kubectl of the cluster's own version.
func (s Site) Kubectl() string { return s.Path("bin", "kubectl") }

func (s Site) api() string                { return fmt.Sprintf("127.0.0.1:%d", s.Port) }
func (s Site) log(name string) string     { return s.Path("log", name+".log") }
func (s Site) pidFile(name string) string { return s.Path("pid", name) }
func (s Site) bin(name string) string     { return s.Path("bin", name) }
func (s Site) conf(name string) string    { return s.Path("conf", name) }
func (s Site) pki(name string) string     { return s.Path("pki", name) }

// A node is a kubelet with what it needs for itself: a containerd, a network
// namespace, cgroups, and addresses for its pods.
type node struct {
	Site
	suffix string // of the names of files and components: "" for the first node
	ip     string
	pods   string // the range of the addresses of its pods
}

// nodes lists the nodes. The control plane runs on the first.
func (s Site) nodes() []node {
	return []node{
		{Site: s, ip: nodeIP, pods: "10.65.0.0/17"},
		{Site: s, suffix: "-2", ip: "10.64.0.2", pods: "10.65.128.0/17"},
	}
}

func (n node) name() string               { return n.Name + n.suffix }
func (n node) file(name string) string    { return name + n.suffix }
func (n node) namespace() netns.Namespace { return netns.Namespace(n.name()) }
func (n node) containerd() string         { return n.Path("run", n.file("containerd")+".sock") }

// api returns the address at which the node reaches the API server.
func (n node) api() string {
	if n.suffix == "" {
		return n.Site.api()
	}
	return fmt.Sprintf("%s:%d", nodeIP, n.Port)
}

func (s Site) nodeNames() []string {
	var names []string
	for _, n := range s.nodes() {
		names = append(names, n.name())
	}
	return names
}

// createNetwork makes a namespace for each node, and connects each node to the first.
func (s Site) createNetwork(ctx context.Context) error {
	all := s.nodes()
	for i, n := range all {
		if n.namespace().Exists() {
			continue
		}
		if err := n.namespace().Create(ctx, n.ip); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		if err := netns.Connect(ctx, all[0].end(), n.end()); err != nil {
			return errors.Join(err, n.namespace().Delete(ctx))
		}
	}
	return nil
}

func (n node) end() netns.End {
	return netns.End{Namespace: n.namespace(), Address: n.ip, Behind: n.pods}
}

// eachNode calls do for all nodes at once.
func (s Site) eachNode(do func(node) error) error {
	all := s.nodes()
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, n := range all {
		running.Go(func() { errs[i] = do(n) })
	}
	running.Wait()
	return errors.Join(errs...)
}
