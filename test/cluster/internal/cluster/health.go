package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/enforce"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/proc"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/volumes"
)

// A check returns why a component is not healthy yet; nil: it is healthy.
type check func(context.Context) error

// probes check whether the components of a Site are healthy.
type probes struct{ Site }

// httpOK returns a check that asks a health endpoint of the control plane.
func (p probes) httpOK(url string) check { return httpOKOn(p.nodes()[0], url) }

// httpOKOn returns a check that asks a health endpoint inside the namespace of a node. It does not verify the
// certificate: some of these servers make one themselves when they start.
func httpOKOn(n node, url string) check {
	client := &http.Client{Transport: &http.Transport{
		DialContext:       n.namespace().Dial,
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	return func(ctx context.Context) error {
		_, err := fetch(ctx, client, url)
		return err
	}
}

func socketOpen(path string) check {
	return func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// nameResolved asks the cluster's DNS for the one Service every cluster has.
func (p probes) nameResolved(ctx context.Context) error {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return p.nodes()[0].namespace().Dial(ctx, "udp", nodeIP+":53")
	}}
	_, err := r.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	return err
}

// nodeListed lists the nodes as a user does: through the gate, as administrator.
func (p probes) nodeListed(ctx context.Context) error {
	_, err := p.get(ctx, "/api/v1/nodes?limit=1")
	return err
}

// classListed checks that the StorageClass exists, which the provisioner of volumes creates before it works.
func (p probes) classListed(ctx context.Context) error {
	_, err := p.get(ctx, "/apis/storage.k8s.io/v1/storageclasses/"+volumes.Class)
	return err
}

// rulesApplied waits for the first rules of each node.
func (p probes) rulesApplied(ctx context.Context) error {
	for _, n := range p.nodes() {
		if err := enforce.Applied(ctx, n.name()); err != nil {
			return err
		}
	}
	return nil
}

// nodeReady returns a check for what a first pod needs: a node that accepts pods, and the ServiceAccount default.
func (p probes) nodeReady(n node) check {
	return func(ctx context.Context) error {
		if _, err := p.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default"); err != nil {
			return err
		}
		body, err := p.get(ctx, "/api/v1/nodes/"+n.name())
		if err != nil {
			return err
		}
		return takesPods(body)
	}
}

// takesPods returns an error if a node, in JSON, does not accept pods.
func takesPods(body []byte) error {
	var node struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return fmt.Errorf("reading node: %w", err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		if c.Status != "True" {
			return errors.New(c.Message)
		}
		for _, t := range node.Spec.Taints {
			return fmt.Errorf("node is tainted %s", t.Key)
		}
		return nil
	}
	return errors.New("the node has not reported yet")
}

// get reads from the API server as administrator.
func (p probes) get(ctx context.Context, path string) ([]byte, error) {
	cert, err := tls.LoadX509KeyPair(p.pki("admin.crt"), p.pki("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("loading administrator's certificate: %w", err)
	}
	ca, err := os.ReadFile(p.pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("loading certificate of the authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots},
	}}
	return fetch(ctx, client, "https://"+p.api()+path)
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return body, err
}

// ErrNotUp is returned by Status when part of the cluster is missing.
var ErrNotUp = errors.New("the cluster is not up; run `cluster up`")

// Status prints the state of each component.
func (s Site) Status(ctx context.Context, out io.Writer) error {
	healthy := true
	for _, c := range s.components().all() {
		r, err := proc.Read(s.pidFile(c.name))
		if err != nil {
			return err
		}
		state := "healthy"
		if !r.Alive() {
			state = "not running"
		} else if err := c.healthy(ctx); err != nil {
			state = err.Error()
		}
		healthy = healthy && state == "healthy"
		fmt.Fprintf(out, "%-24s %7d  %s\n", c.name, r.PID, state)
	}
	if !healthy {
		return ErrNotUp
	}
	fmt.Fprintln(out)
	for _, args := range [][]string{{"get", "nodes"}, {"get", "pods", "--all-namespaces"}} {
		cmd := exec.CommandContext(ctx, s.Kubectl(), append([]string{"--kubeconfig", s.Kubeconfig()}, args...)...)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("asking the API server: %w", err)
		}
	}
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\nkubectl: %s\n", s.Kubeconfig(), s.Kubectl())
	return nil
}
