package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// fetcher is an Agent that may reach some hosts.
func fetcher(hosts ...v1alpha1.Host) *v1alpha1.Agent {
	return gen.Agent(func(a *v1alpha1.Agent) {
		a.Name = "fetcher"
		a.Spec.Sandbox = &v1alpha1.Sandbox{Egress: &v1alpha1.Egress{Hosts: hosts}}
	})
}

// refusedRun is a Run of an Agent whose commands were refused hosts.
func refusedRun(name, agent string, minutes int, connections int64, hosts ...v1alpha1.RefusedHost) *v1alpha1.Run {
	return namedRun(name, "Finished", func(r *v1alpha1.Run) {
		r.Spec.Agent = agent
		r.CreationTimestamp = metav1.NewTime(gen.Noon.Add(time.Duration(minutes) * time.Minute))
		r.Status.Progress = &v1alpha1.RunProgress{Refused: &v1alpha1.Refused{Connections: connections, Hosts: hosts}}
	})
}

func TestHostsListsWhatWasRefusedAndProposesWhatIsMissing(t *testing.T) {
	unlisted := func(host string, port int32, count int64) v1alpha1.RefusedHost {
		return v1alpha1.RefusedHost{Host: host, Port: port, Reason: v1alpha1.RefusedNotListed, Count: count}
	}
	s := newSession(
		t, fetcher("proxy.golang.org", "*.example.com", "pages"),
		refusedRun("old", "fetcher", 1, 8, unlisted("sum.golang.org", 443, 3), unlisted("api.example.com", 443, 2), unlisted("203.0.113.7", 80, 1),
			unlisted("hosts:\n- evil.example\x1b[2J", 443, 1), unlisted("under_score.example", 443, 1)),
		refusedRun("new", "fetcher", 30, 50, unlisted("sum.golang.org", 443, 4), unlisted("sum.golang.org", 80, 1), unlisted("example.com", 443, 1),
			v1alpha1.RefusedHost{Host: "pages", Port: 80, Reason: v1alpha1.RefusedNotPublic, Count: 2}),
		refusedRun("another", "other", 30, 1, unlisted("other.example", 443, 1)),
		namedRun("quiet", "Running", func(r *v1alpha1.Run) { r.Spec.Agent = "fetcher" }),
	)
	if code := s.run(t, "hosts", "agent/fetcher"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "hosts.txt", s.text())
}

func TestHostsProposesNothing(t *testing.T) {
	full := make([]v1alpha1.Host, maxHosts)
	for i := range full {
		full[i] = v1alpha1.Host(strings.Repeat("a", i+1) + ".example")
	}
	sum := v1alpha1.RefusedHost{Host: "sum.golang.org", Port: 443, Reason: v1alpha1.RefusedNotListed, Count: 1}
	for name, tc := range map[string]struct {
		agent *v1alpha1.Agent
		runs  []v1alpha1.RefusedHost
		says  string
	}{
		"nothing was refused":    {fetcher(), nil, "No connection was refused in 1 Run of Agent fetcher"},
		"the host is listed now": {fetcher("sum.golang.org"), []v1alpha1.RefusedHost{sum}, "yes"},
		"the list is full":       {fetcher(full...), []v1alpha1.RefusedHost{sum}, "has 64 hosts, and no more are possible"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, tc.agent, refusedRun("a", "fetcher", 1, int64(len(tc.runs)), tc.runs...))
			if code := s.run(t, "hosts", "fetcher"); code != exit.OK || !strings.Contains(s.text(), tc.says) || strings.Contains(s.text(), "spec:") {
				t.Errorf("exit code %d:\n%s", code, s.text())
			}
		})
	}
}

func TestHostsOfAnAgentThatDoesNotExist(t *testing.T) {
	s := newSession(t, fetcher())
	if code := s.run(t, "hosts", "fetchr"); code != exit.Error || !strings.Contains(s.text(), "agent fetchr not found in namespace team-a. Did you mean fetcher?") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
