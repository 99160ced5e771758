package cluster

import (
	"os"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/pki"
)

// An authority issues the certificates of a Site.
type authority struct{ Site }

func (s Site) authority() authority { return authority{s} }

// identities returns the subjects of the certificates, by file name. The subject of a kubelet must be that of its node,
// or NodeRestriction refuses it.
func (a authority) identities() map[string]pki.Subject {
	all := map[string]pki.Subject{
		"apiserver": {Name: "kube-apiserver", Hosts: []string{
			"127.0.0.1", nodeIP, apiServiceIP, "localhost", "kubernetes",
			"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		"apiserver-kubelet":  {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"controller-manager": {Name: "system:kube-controller-manager"},
		"scheduler":          {Name: "system:kube-scheduler"},
		"proxy":              {Name: "system:kube-proxy"},
		"dns":                {Name: "system:kube-proxy"}, // whose role has Services and their EndpointSlices
		"admin":              {Name: "admin", Groups: []string{"system:masters"}},
	}
	for _, n := range a.nodes() {
		all[n.file("kubelet")] = pki.Subject{Name: "system:node:" + n.name(), Groups: []string{"system:nodes"}}
		all[n.file("kubelet-server")] = pki.Subject{
			Name: "system:node:" + n.name(), Groups: []string{"system:nodes"}, Hosts: []string{n.ip, n.name()},
		}
	}
	return all
}

// certificates makes the certificates once. The certificate of the authority is written last: if it exists, all exist.
func (a authority) certificates() error {
	if _, err := os.Stat(a.pki("ca.crt")); err == nil {
		return nil
	}
	now := now()
	front, err := pki.NewAuthority("front-proxy-ca", now)
	if err != nil {
		return err
	}
	ca, err := pki.NewAuthority("deckhand-cluster-ca", now)
	if err != nil {
		return err
	}
	pairs := map[string]pki.Pair{"front-proxy-ca": front.Pair}
	if pairs["front-proxy"], err = front.Issue(pki.Subject{Name: "front-proxy"}); err != nil {
		return err
	}
	for file, subject := range a.identities() {
		if pairs[file], err = ca.Issue(subject); err != nil {
			return err
		}
	}
	if pairs["service-account"], err = serviceAccountKey(); err != nil {
		return err
	}
	for file, pair := range pairs {
		if err := a.writePair(file, pair); err != nil {
			return err
		}
	}
	return a.writePair("ca", ca.Pair)
}

// serviceAccountKey signs tokens; it needs no certificate.
func serviceAccountKey() (pki.Pair, error) {
	key, err := pki.NewKey()
	return pki.Pair{Key: key}, err
}

func (a authority) writePair(file string, p pki.Pair) error {
	if err := write(a.pki(file+".key"), p.Key, 0o600); err != nil {
		return err
	}
	return write(a.pki(file+".crt"), p.Cert, 0o644)
}
