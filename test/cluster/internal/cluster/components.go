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
func (s components) all() []component {
	return slices.Concat(
		[]component{s.etcd()}, s.runtimes(), []component{s.apiServer(), s.gate()},
		[]component{s.controllers(), s.scheduler(), s.dns(), s.volumes(), s.policies()}, s.kubelets(), s.proxies(),
	)
}

// onNodes returns a component of each node.
func (s components) onNodes(of func(node) component) []component {
	var all []component
	for _, n := range s.nodes() {
		c := of(n)
		c.name, c.inside = n.file(c.name), n.namespace()
		all = append(all, c)
	}
	return all
}

// control returns a component of the control plane, which runs on the first node.
func (s components) control(c component) component {
	c.inside = s.nodes()[0].namespace()
	return c
}

// etcd does not wait for the disk: a cluster of this kind does not survive its
// machine anyway, and starts in half the time.
func (s components) etcd() component {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return s.control(component{name: "etcd", healthy: s.httpOK(client + "/health"), args: []string{
		s.bin("etcd"),
		"--data-dir=" + s.Path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
	}})
}

func (s components) runtimes() []component {
	return s.onNodes(func(n node) component {
		return component{name: "containerd", healthy: socketOpen(n.containerd()), args: []string{
			"containerd", "--config=" + s.conf(n.file("containerd")+".toml"),
		}}
	})
}

func (s components) apiServer() component {
	return s.control(component{name: "kube-apiserver", healthy: s.httpOK("https://" + s.api() + "/readyz"), args: []string{
		s.bin("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		fmt.Sprintf("--secure-port=%d", s.Port), "--advertise-address=" + nodeIP,
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--tls-cert-file=" + s.pki("apiserver.crt"), "--tls-private-key-file=" + s.pki("apiserver.key"),
		"--client-ca-file=" + s.pki("ca.crt"),
		"--kubelet-certificate-authority=" + s.pki("ca.crt"),
		"--kubelet-client-certificate=" + s.pki("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + s.pki("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + s.pki("service-account.key"),
		"--service-account-signing-key-file=" + s.pki("service-account.key"),
		"--requestheader-client-ca-file=" + s.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + s.pki("front-proxy.crt"),
		"--proxy-client-key-file=" + s.pki("front-proxy.key"),
	}})
}

// gate lets programs on the host reach the API server.
func (s components) gate() component {
	return component{name: "gate", healthy: s.nodeListed, args: []string{
		self(), "gate", s.api(), s.Name,
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
func (s components) controllers() component {
	return s.control(component{name: "kube-controller-manager", healthy: s.httpOK("https://127.0.0.1:10257/healthz"), args: []string{
		s.bin("kube-controller-manager"),
		"--kubeconfig=" + s.conf("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--kube-api-qps=2000", "--kube-api-burst=2000",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + s.pki("service-account.key"),
		"--root-ca-file=" + s.pki("ca.crt"),
		"--cluster-signing-cert-file=" + s.pki("ca.crt"), "--cluster-signing-key-file=" + s.pki("ca.key"),
	}})
}

func (s components) scheduler() component {
	return s.control(component{name: "kube-scheduler", healthy: s.httpOK("https://127.0.0.1:10259/healthz"), args: []string{
		s.bin("kube-scheduler"),
		"--kubeconfig=" + s.conf("scheduler.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--kube-api-qps=2000", "--kube-api-burst=2000",
	}})
}

func (s components) kubelets() []component {
	return s.onNodes(func(n node) component {
		return component{name: "kubelet", healthy: httpOKOn(n, "http://127.0.0.1:10248/healthz"), args: []string{
			s.bin("kubelet"),
			"--config=" + s.conf(n.file("kubelet")+".yaml"), "--kubeconfig=" + s.conf(n.file("kubelet")+".kubeconfig"),
			"--root-dir=" + s.Path(n.file("kubelet")), "--cert-dir=" + s.Path(n.file("kubelet"), "pki"),
			"--hostname-override=" + n.name(), "--node-ip=" + n.ip,
		}}
	})
}

func (s components) proxies() []component {
	return s.onNodes(func(n node) component {
		return component{name: "kube-proxy", healthy: httpOKOn(n, "http://127.0.0.1:10256/livez"), args: []string{
			s.bin("kube-proxy"), "--config=" + s.conf(n.file("kube-proxy")+".yaml"), "--hostname-override=" + n.name(),
		}}
	})
}

func (s components) dns() component {
	return s.control(component{name: "cluster-dns", healthy: s.nameResolved, args: []string{
		s.bin("cluster-dns"), "--kubeconfig=" + s.conf("dns.kubeconfig"), "--listen=" + nodeIP + ":53",
	}})
}

// volumes makes the volumes for claims of all nodes, which are one machine. It has the rights of the administrator,
// because it creates its StorageClass.
func (s components) volumes() component {
	return s.control(component{name: "volumes", healthy: s.classListed, args: slices.Concat(
		[]string{self(), "volumes", s.Kubeconfig(), s.Path("volumes")}, s.nodeNames(),
	)})
}

// policies enforces NetworkPolicies on all nodes, whose namespaces it enters.
func (s components) policies() component {
	return component{name: "policies", healthy: s.rulesApplied, args: slices.Concat(
		[]string{self(), "policies", s.Kubeconfig(), string(s.Policies)}, s.nodeNames(),
	)}
}
