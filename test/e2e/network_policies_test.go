//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// maxNetworkWait is the longest time that a Run may wait for the network where policies
// take effect late, compared with a Run where there are none.
const maxNetworkWait = 30 * time.Second

// reach prints whether a server is reached, after the time in which a pod may be open.
const reach = `import socket, sys, time
time.sleep(3)
try:
    socket.create_connection(("ADDRESS", 8080), 3).close()
    print("reached")
except OSError as e:
    print("not reached:", e)
`

// policyScripts are the scripts of stories about NetworkPolicies.
var policyScripts = map[string]modeltest.Dialogue{
	"walled": turns(
		modeltest.Turn{Calls: []modeltest.Call{call("Shell", sh("python3 attacks/reach.py", withTimeout(60)))}},
		modeltest.Turn{Calls: []modeltest.Call{call("Shell", sh("echo all is well"))}},
		modeltest.Turn{Text: "Done."},
	),
}

// Where policies are ignored, enforced at once, or enforced two seconds after a pod has
// started, with connections of before that are dead from then on: no Run without Required fails
// or is retried, Required holds where policies are enforced and refuses where they are not, and
// what the policy does not allow is not reached. The pods are not on the node of the API server,
// which policies would always allow.
func TestNetworkPolicies(t *testing.T) {
	if _, err := os.Stat(filepath.Join(os.Getenv("CLUSTER_DIR"), "pid", "policies")); err != nil {
		t.Skip("not tried: whether this cluster enforces policies cannot be chosen")
	}
	without := newPolicyNamespace(t, "None")
	node := without.nodeWithoutAPIServer()
	run := without.walled(node, v1alpha1.ConfinementBestEffort, "reached", "PortsOnly")
	usual := without.sinceStart(run)
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		checkRefusal(t, node)
	})
	for _, mode := range []string{"Enforced", "Delayed"} {
		for _, confinement := range []v1alpha1.ConfinementPolicy{v1alpha1.ConfinementBestEffort, v1alpha1.ConfinementRequired} {
			t.Run(mode+" "+string(confinement), func(t *testing.T) {
				t.Parallel()
				p := newPolicyNamespace(t, mode)
				run := p.walled(node, confinement, "not reached: timed out", "Enforced")
				took := p.sinceStart(run)
				t.Logf("%s, without policies %s", took, usual)
				if took > usual+maxNetworkWait {
					t.Errorf("the Run took %s, without policies %s", took, usual)
				}
			})
		}
	}
}

// newPolicyNamespace is a namespace whose policies take effect in one of the ways that
// test/cluster has.
func newPolicyNamespace(t *testing.T, mode string) *testNamespace {
	t.Helper()
	p := newNamespace(t)
	var ns corev1.Namespace
	ns.Name = p.name
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"deckhand.test/policies":"`+mode+`"}}}`))
	if err := cluster.admin.Patch(t.Context(), &ns, patch); err != nil {
		t.Fatalf("choosing how policies take effect: %v", err)
	}
	return p
}

// nodeWithoutAPIServer returns the name of a cluster node on which the API server does not run.
func (p *testNamespace) nodeWithoutAPIServer() string {
	p.t.Helper()
	var nodes corev1.NodeList
	if err := cluster.admin.List(p.t.Context(), &nodes); err != nil {
		p.t.Fatal(err)
	}
	server := p.apiServerAddress()
	for i := range nodes.Items {
		isServer := false
		for _, a := range nodes.Items[i].Status.Addresses {
			isServer = isServer || a.Address == server
		}
		if !isServer && len(nodes.Items[i].Spec.Taints) == 0 {
			return nodes.Items[i].Name
		}
	}
	p.t.Fatalf("each of %d nodes is that of the API server", len(nodes.Items))
	return ""
}

// walledAgent creates an Agent whose command tries a pod that its policy does not allow.
func (p *testNamespace) walledAgent(node string, confinement v1alpha1.ConfinementPolicy) {
	p.t.Helper()
	address := p.server()
	p.agent("walled", withShell, p.furnished(map[string]string{"reach.py": strings.ReplaceAll(reach, "ADDRESS", address)}), func(a *v1alpha1.Agent) {
		a.Spec.Sandbox.Confinement = confinement
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{NodeSelector: map[string]string{corev1.LabelHostname: node}}
	})
}

// walled runs the Agent, which must find out the same about its pod as the operator.
func (p *testNamespace) walled(node string, confinement v1alpha1.ConfinementPolicy, found, network string) *v1alpha1.Run {
	p.t.Helper()
	p.walledAgent(node, confinement)
	run := p.ends(p.run("walled"), "True Finished")
	if s := run.Status; s.Attempt.Number != 1 || s.Failures != 0 || s.Disruptions != 0 {
		p.t.Errorf("%d failures, %d disruptions, attempt %d", s.Failures, s.Disruptions, s.Attempt.Number)
	}
	if shut := run.Status.Progress.Confinement; shut == nil || shut.Network != network {
		p.t.Errorf("confinement is %+v, want the network to be %s", shut, network)
	}
	if results := p.toolResults("walled-1"); len(results) != 2 || !strings.HasPrefix(results[0], found) {
		p.t.Errorf("the results of the tool calls are %q, want %q first", results, found)
	}
	return run
}

// checkRefusal runs an Agent that requires confinement where policies are ignored.
func checkRefusal(t *testing.T, node string) {
	t.Helper()
	required := newPolicyNamespace(t, "None")
	required.walledAgent(node, v1alpha1.ConfinementRequired)
	run := required.ends(required.run("walled"), "False Misconfigured")
	if said := message(run); !strings.Contains(said, "network is PortsOnly: this pod connected to a port of the operator") {
		t.Errorf("the message is %q", said)
	}
}

// server runs a server in the namespace and returns the address of its pod.
func (p *testNamespace) server() string {
	p.t.Helper()
	p.serveGit()
	var pods corev1.PodList
	if err := cluster.admin.List(p.t.Context(), &pods, client.InNamespace(p.name), client.MatchingLabels{"app": gitName}); err != nil || len(pods.Items) == 0 {
		p.t.Fatalf("finding the server: %v", err)
	}
	return pods.Items[0].Status.PodIP
}

// sinceStart is how long a Run took from the start of its runner to its end.
func (p *testNamespace) sinceStart(run *v1alpha1.Run) time.Duration {
	p.t.Helper()
	var pod corev1.Pod
	var started time.Time
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: run.Name + "-1"}, &pod)
		for _, c := range pod.Status.ContainerStatuses {
			if end := c.State.Terminated; c.Name == "runner" && end != nil {
				started = end.StartedAt.Time
			}
		}
		return !started.IsZero(), err
	})
	if err != nil {
		p.t.Fatalf("the end of Pod %s-1 is not known: %v", run.Name, err)
	}
	return run.Status.CompletionTime.Sub(started)
}
