//go:build linux

package networkcheck

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// inNamespace is set in the process that has a network namespace of its own.
const inNamespace = "DECKHAND_TEST_NETWORK_NAMESPACE"

// rules are those of network plugins, by the source address of a connection. %[1]d is the
// open port, %[2]d the closed one.
const rules = `table inet policies {
	chain input {
		type filter hook input priority 0;
		ip saddr 127.0.0.11 tcp dport %[2]d drop
		ip saddr 127.0.0.12 tcp dport %[2]d reject
		ip saddr 127.0.0.13 tcp dport %[2]d reject with tcp reset
		ip saddr 127.0.0.14 tcp dport %[2]d reject with icmpx type admin-prohibited
		ip saddr 127.0.0.15 tcp dport { %[1]d, %[2]d } drop
		ip saddr 127.0.0.16 tcp dport { %[1]d, %[2]d } reject
	}
}`

// What a kernel makes of the rules of network plugins is what the Checker takes it for.
func TestRulesOfAKernel(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		runInNamespace(t)
		return
	}
	command(t, "", "ip", "link", "set", "lo", "up")
	s, _ := serving(t)
	command(t, fmt.Sprintf(rules, portOf(s.open.Addr()), portOf(s.closed.Addr())), "nft", "-f", "-")
	for source, want := range map[string]State{
		"127.0.0.10": Open, "127.0.0.11": Closed, "127.0.0.12": Closed, "127.0.0.13": Closed, "127.0.0.14": Closed,
		"127.0.0.15": Unknown, "127.0.0.16": Unknown,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			c := checking(s.open.Addr())
			c.now = clock.Now
			c.dial = func(ctx context.Context, address string) (net.Conn, error) {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
				return d.DialContext(ctx, "tcp", address)
			}
			if f := c.Check(t.Context()); f.State != want {
				t.Errorf("%+v, want %s", f, want)
			}
		})
	}
}

// runInNamespace runs this test again in a network namespace of its own.
func runInNamespace(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"unshare", "ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil || os.Getuid() != 0 {
			t.Skipf("not tried: it needs root and %s", tool)
		}
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", os.Args[0], "-test.run=^TestRulesOfAKernel$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func command(t *testing.T, input, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
