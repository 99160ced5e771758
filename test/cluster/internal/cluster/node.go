package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/netns"
)

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
