//go:build linux

package enforce

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/netns"
)

// unreachable is how long a connection is waited for that no packet answers.
const unreachable = 300 * time.Millisecond

// A network is a node with two pods, each in a network namespace of its own.
type network struct {
	t    *testing.T
	node netns.Namespace
}

// pods are the addresses of two pods of the function cluster.
var pods = []string{"10.65.0.2", "10.65.0.3"}

const nodeAddress = "10.64.0.1"

func newNetwork(t *testing.T) network {
	t.Helper()
	for _, tool := range []string{"ip", "nft", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil || os.Getuid() != 0 {
			t.Skipf("not tried: it needs root and %s", tool)
		}
	}
	n := network{t: t, node: netns.Namespace(fmt.Sprintf("enforce-test-%d", os.Getpid()))}
	n.create(n.node, nodeAddress)
	for i, address := range pods {
		p := n.pod(address)
		n.create(p, address)
		n.ip(n.node, fmt.Sprintf("link add pod%d type veth peer name eth0 netns %s", i, p))
		n.ip(n.node, fmt.Sprintf("link set pod%d up", i))
		n.ip(n.node, fmt.Sprintf("route add %s dev pod%d", address, i))
		n.ip(p, "link set eth0 up")
		n.ip(p, "route add "+nodeAddress+" dev eth0 src "+address)
		n.ip(p, "route replace default via "+nodeAddress+" dev eth0 src "+address)
	}
	return n
}

func (n network) pod(address string) netns.Namespace {
	return netns.Namespace(string(n.node) + "-" + address)
}

func (n network) create(at netns.Namespace, address string) {
	n.t.Helper()
	if err := at.Create(n.t.Context(), address); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := at.Delete(context.WithoutCancel(n.t.Context())); err != nil {
			n.t.Error(err)
		}
	})
}

func (n network) ip(in netns.Namespace, args string) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "ip", append([]string{"-n", string(in)}, strings.Fields(args)...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// echo answers each connection with what it sends.
func (n network) echo(in netns.Namespace, address string) {
	n.t.Helper()
	l, err := in.Listen(n.t.Context(), "tcp", address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // until the client ends
			}()
		}
	}()
}

func (n network) enforce(s State) {
	n.t.Helper()
	if err := apply(n.t.Context(), string(n.node), s.Compile("one")); err != nil {
		n.t.Fatal(err)
	}
}

func (n network) dial(from netns.Namespace, to string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), unreachable)
	defer cancel()
	return from.Dial(ctx, "tcp", to)
}

// reaches checks whether a connection is established and answered.
func (n network) reaches(from netns.Namespace, to string, want bool) {
	n.t.Helper()
	conn, err := n.dial(from, to)
	if err == nil {
		defer conn.Close()
		err = answers(conn)
	}
	if (err == nil) != want {
		n.t.Errorf("%s to %s: %v, want it to be reached: %v", from, to, err, want)
	}
}

// answers returns why a connection to an echo is not answered.
func answers(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(unreachable))
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}

// A kernel does with packets what policies say.
func TestRulesInTheKernel(t *testing.T) {
	n := newNetwork(t)
	run, db := n.pod(pods[0]), n.pod(pods[1])
	n.echo(db, pods[1]+":5432")
	n.echo(db, pods[1]+":5433")
	n.echo(run, pods[0]+":80")
	n.echo(n.node, nodeAddress+":10250")
	const run1 = "podSelector: {matchLabels: {app: run}}\npolicyTypes: [Egress, Ingress]\n"
	for _, tc := range []struct {
		name     string
		mode     Mode
		policies []string
		allowed  bool // the port 5432, of 5433 the opposite unless all is open
		second   bool
		inbound  bool
	}{
		{"no policy", Enforced, nil, true, true, true},
		{"nothing is enforced", None, []string{run1}, true, true, true},
		{"nothing is allowed", Enforced, []string{run1}, false, false, false},
		{"a port", Enforced, []string{run1 + "egress: [{ports: [{port: 5432}]}]"}, true, false, false},
		{"a range of ports", Enforced, []string{run1 + "egress: [{ports: [{port: 5433, endPort: 5500}]}]"}, false, true, false},
		{"except", Enforced, []string{run1 + "egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.65.0.3/32]}}]}]"}, false, false, false},
		{"a block", Enforced, []string{run1 + "egress: [{to: [{ipBlock: {cidr: 10.65.0.0/24}}], ports: [{port: 5432}]}]"}, true, false, false},
		{"a selector", Enforced, []string{run1 + "egress: [{to: [{podSelector: {matchLabels: {app: db}}}]}]"}, true, true, false},
		{"inbound", Enforced, []string{run1 + "ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}]"}, false, false, true},
		{"inbound of the other pod", Enforced, []string{run1 + "egress: [{}]", "podSelector: {matchLabels: {app: db}}"}, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := network{t: t, node: n.node}
			n.enforce(cluster(tc.mode, tc.policies...))
			n.reaches(run, pods[1]+":5432", tc.allowed)
			n.reaches(run, pods[1]+":5433", tc.second)
			n.reaches(db, pods[0]+":80", tc.inbound)
			n.reaches(run, nodeAddress+":10250", true) // the own node
			n.reaches(n.node, pods[0]+":80", true)
		})
	}
}

// In a namespace with the mode Delayed, no reply arrives at a connection that was begun while
// the pod was open, and new ones are as the policy says.
func TestRepliesOfEarlyConnections(t *testing.T) {
	const spec = "podSelector: {matchLabels: {app: run}}\npolicyTypes: [Egress]\negress: [{ports: [{port: 5432}]}]"
	n := newNetwork(t)
	run, db := n.pod(pods[0]), n.pod(pods[1])
	n.echo(db, pods[1]+":5432")
	n.echo(db, pods[1]+":5433")
	before, err := n.dial(run, pods[1]+":5432") // the address of the pod is not known yet
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	s := cluster(Delayed, spec)
	s.Open = func(*corev1.Pod) bool { return true }
	n.enforce(s)
	n.reaches(run, pods[1]+":5433", true)
	if err := answers(before); err != nil {
		t.Errorf("a connection of an open pod is not answered: %v", err)
	}
	s.Open = func(*corev1.Pod) bool { return false }
	n.enforce(s)
	if err := answers(before); err == nil {
		t.Error("a connection that was begun before is answered")
	}
	n.reaches(run, pods[1]+":5432", true)
	n.reaches(run, pods[1]+":5433", false)
}
