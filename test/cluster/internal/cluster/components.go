package cluster

import (
	"fmt"
	"os"
	"slices"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/netns"
)

// A component is one process of the cluster.
type component struct {
	name    string
	args    []string
	inside  netns.Namespace // "": the host's network
	healthy check           // nil: it is enough that it runs
}

// components builds the components of a Site.
type components struct{ probes }

func (s Site) components() components { return components{probes{s}} }

// all lists the components in the order in which they are started.
func (c components) all() []component {
	return slices.Concat(
		[]component{c.etcd()}, c.runtimes(), []component{c.apiServer(), c.gate()},
		[]component{c.controllers(), c.scheduler(), c.dns(), c.volumes(), c.policies()}, c.kubelets(), c.proxies(),
	)
}

// onNodes returns a component of each node.
func (c components) onNodes(of func(node) component) []component {
	var all []component
	for _, n := range c.nodes() {
		one := of(n)
		one.name, one.inside = n.file(one.name), n.namespace()
		all = append(all, one)
	}
	return all
}

// control returns a component of the control plane, which runs on the first node.
func (c components) control(one component) component {
	one.inside = c.nodes()[0].namespace()
	return one
}

// etcd does not wait for the disk: a cluster of this kind does not survive its
// machine anyway, and starts in half the time.
func (c components) etcd() component {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return c.control(component{name: "etcd", healthy: c.httpOK(client + "/health"), args: []string{
		c.bin("etcd"),
		"--data-dir=" + c.Path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
	}})
}

func (c components) runtimes() []component {
	return c.onNodes(func(n node) component {
		return component{name: "containerd", healthy: socketOpen(n.containerd()), args: []string{
			"containerd", "--config=" + c.conf(n.file("containerd")+".toml"),
		}}
	})
}

func (c components) apiServer() component {
	return c.control(component{name: "kube-apiserver", healthy: c.httpOK("https://" + c.api() + "/readyz"), args: []string{
		c.bin("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		fmt.Sprintf("--secure-port=%d", c.Port), "--advertise-address=" + nodeIP,
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--tls-cert-file=" + c.pki("apiserver.crt"), "--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--kubelet-certificate-authority=" + c.pki("ca.crt"),
		"--kubelet-client-certificate=" + c.pki("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + c.pki("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("service-account.key"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--requestheader-client-ca-file=" + c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki("front-proxy.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy.key"),
	}})
}

// gate lets programs on the host reach the API server.
func (c components) gate() component {
	return component{name: "gate", healthy: c.nodeListed, args: []string{
		self(), "gate", c.api(), c.Name,
	}}
}

// self returns the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "/proc/self/exe" // what os.Executable reads; the child finds itself there too
	}
	return path
}

// The clients' rate limits are lifted: the defaults, meant to protect large
// clusters, would hide the speed of what is tested here.
func (c components) controllers() component {
	return c.control(component{name: "kube-controller-manager", healthy: c.httpOK("https://127.0.0.1:10257/healthz"), args: []string{
		c.bin("kube-controller-manager"),
		"--kubeconfig=" + c.conf("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--kube-api-qps=2000", "--kube-api-burst=2000",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.pki("service-account.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"), "--cluster-signing-key-file=" + c.pki("ca.key"),
	}})
}

func (c components) scheduler() component {
	return c.control(component{name: "kube-scheduler", healthy: c.httpOK("https://127.0.0.1:10259/healthz"), args: []string{
		c.bin("kube-scheduler"),
		"--kubeconfig=" + c.conf("scheduler.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--kube-api-qps=2000", "--kube-api-burst=2000",
	}})
}

func (c components) kubelets() []component {
	return c.onNodes(func(n node) component {
		return component{name: "kubelet", healthy: httpOKOn(n, "http://127.0.0.1:10248/healthz"), args: []string{
			c.bin("kubelet"),
			"--config=" + c.conf(n.file("kubelet")+".yaml"), "--kubeconfig=" + c.conf(n.file("kubelet")+".kubeconfig"),
			"--root-dir=" + c.Path(n.file("kubelet")), "--cert-dir=" + c.Path(n.file("kubelet"), "pki"),
			"--hostname-override=" + n.name(), "--node-ip=" + n.ip,
		}}
	})
}

func (c components) proxies() []component {
	return c.onNodes(func(n node) component {
		return component{name: "kube-proxy", healthy: httpOKOn(n, "http://127.0.0.1:10256/livez"), args: []string{
			c.bin("kube-proxy"), "--config=" + c.conf(n.file("kube-proxy")+".yaml"), "--hostname-override=" + n.name(),
		}}
	})
}

func (c components) dns() component {
	return c.control(component{name: "cluster-dns", healthy: c.nameResolved, args: []string{
		c.bin("cluster-dns"), "--kubeconfig=" + c.conf("dns.kubeconfig"), "--listen=" + nodeIP + ":53",
	}})
}

// volumes makes the volumes for claims of all nodes, which are one machine. It has the rights of the administrator,
// because it creates its StorageClass.
func (c components) volumes() component {
	return c.control(component{name: "volumes", healthy: c.classListed, args: slices.Concat(
		[]string{self(), "volumes", c.Kubeconfig(), c.Path("volumes")}, c.nodeNames(),
	)})
}

// policies enforces NetworkPolicies on all nodes, whose namespaces it enters.
func (c components) policies() component {
	return component{name: "policies", healthy: c.rulesApplied, args: slices.Concat(
		[]string{self(), "policies", c.Kubeconfig(), string(c.Policies)}, c.nodeNames(),
	)}
}
