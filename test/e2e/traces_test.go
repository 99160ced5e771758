//go:build e2e && upgrade

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// The spans of a Workflow with two Agents are one tree: those of the operator and of the
// runners, with a call of an MCP server, and with a pod that was killed while it waited for an
// approval. The MCP server can put its own spans below the call.
func TestTraceOfAWorkflowIsOneTree(t *testing.T) {
	i := installed(t)
	p := newNamespace(t)
	models := map[string]modeltest.Dialogue{
		"scout":  turns(does(call("harbor__berths", args{})), says("Berth 7 is free.")),
		"writer": turns(does(call("counter__add", args{"id": "note"})), does(call("Ls", args{})), says("Noted.")),
	}
	if err := serve(t.Context(), p.name, modeltest.Script{Key: key, Models: models}, nil); err != nil {
		t.Fatal(err)
	}
	i.sendTraces(t, "http://"+modelsName+"."+p.name)
	t.Cleanup(func() { i.current(t) })

	s := &exampleFixture{testNamespace: p, runs: map[string]*v1alpha1.Run{}}
	s.create(counterTools(), harborTools())
	for name, tool := range map[string]v1alpha1.ObjectName{"scout": "harbor", "writer": "counter"} {
		agent := agentOnVolume(name, v1alpha1.Tool{Toolset: tool})
		agent.Spec.Sandbox = nil
		agent.Spec.Tools[0].Approval = &v1alpha1.Approval{When: `tool == "Ls"`}
		s.create(modelOf(name, func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName + "/" + name }), agent)
	}
	s.workflow("guide", `
order: Sequential
nodes:
- {name: look, agent: scout, prompt: Look.}
- {name: write, agent: writer, prompt: Write.}
`)
	guide := s.start("guide")
	write := s.childOf(guide, "write")
	request := s.pendingOf(write, 1)
	// A killed pod loses the spans that it has not sent yet.
	s.awaitTrace(guide, func(tree string) bool { return strings.Contains(tree, "execute_tool counter__add deckhand.attempt=1") })
	s.killPod(s.pod(write, 1))
	if again := s.pendingOf(write, 2); again.ID != request.ID {
		t.Errorf("attempt 2 asks %+v, attempt 1 asked %+v", again, request)
	}
	s.approves(s.as("ann", s.approverRole()), write.Name, request)
	s.settles(guide, "True Finished")

	want := `
  invoke_workflow guide
    invoke_agent scout
      chat scout deckhand.attempt=1
      chat scout deckhand.attempt=1
      execute_tool harbor__berths deckhand.attempt=1
    invoke_agent writer
      chat writer deckhand.attempt=1
      chat writer deckhand.attempt=1
      chat writer deckhand.attempt=2
      execute_tool Ls deckhand.attempt=2
      execute_tool counter__add deckhand.attempt=1
      wait Approval deckhand.attempt=2
`
	tree := s.awaitTrace(guide, func(tree string) bool {
		return strings.Count(tree, "\n") >= strings.Count(want, "\n") && !strings.Contains(tree, "(not sent)")
	})
	if diff := cmp.Diff(want, sortSpansOfAgents(tree)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	trace := "00-" + strings.ReplaceAll(string(guide.UID), "-", "") + "-"
	for _, r := range s.requestsWith("POST " + modelsName + "/mcp") {
		if strings.Contains(r.Body, "tools/call") && !strings.HasPrefix(r.Header["Traceparent"][0], trace) {
			t.Errorf("the MCP server was asked %+v", r)
		}
	}
}

// sortSpansOfAgents sorts the spans below each Agent by name. They begin one after the
// other, but what an earlier attempt asked is known to the second only.
func sortSpansOfAgents(tree string) string {
	lines := strings.SplitAfter(tree, "\n")
	for i := 0; i < len(lines); i++ {
		end := i
		for end < len(lines) && strings.HasPrefix(lines[end], "      ") {
			end++
		}
		slices.Sort(lines[i:end])
		i = max(i, end-1)
	}
	return strings.Join(lines, "")
}

// sendTraces installs the chart of this tree with traces and metrics on, and waits until the operator
// before, which may still lead, has ended.
func (i installation) sendTraces(t *testing.T, endpoint string) {
	t.Helper()
	var before corev1.PodList
	if err := cluster.admin.List(t.Context(), &before, client.InNamespace(releaseNamespace)); err != nil {
		t.Fatal(err)
	}
	defer awaitEnd(t, before.Items)
	runHelm(t, "upgrade", release, chart, "--values="+i.values, "--wait", "--timeout=5m", "--set=traces.endpoint="+endpoint, "--set=traces.metrics=true")
}

// awaitEnd waits until pods no longer exist.
func awaitEnd(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		err := until(t.Context(), func(ctx context.Context) (bool, error) {
			err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(&pod), &corev1.Pod{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Fatalf("pod %s continues: %v", pod.Name, err)
		}
	}
}

// harborTools are those of the MCP server of the scripted server.
func harborTools() *v1alpha1.Toolset {
	return &v1alpha1.Toolset{
		ObjectMeta: metav1.ObjectMeta{Name: "harbor"},
		Spec: v1alpha1.ToolsetSpec{HTTP: &v1alpha1.HTTPServer{
			URL:  "http://" + modelsName + "/mcp",
			Auth: &v1alpha1.Auth{Bearer: &v1alpha1.BearerAuth{TokenSecretRef: v1alpha1.SecretKeyRef{Name: "key", Key: "api-key"}}},
		}},
	}
}

// childOf waits for the child Run of a node.
func (s *exampleFixture) childOf(run *v1alpha1.Run, node string) *v1alpha1.Run {
	s.t.Helper()
	var runs v1alpha1.RunList
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.List(ctx, &runs, client.InNamespace(s.name), client.MatchingLabels{v1alpha1.LabelWorkflowRun: run.Name, v1alpha1.LabelWorkflowNode: node})
		return len(runs.Items) == 1, err
	})
	if err != nil {
		s.t.Fatalf("node %s of Run %s has %d Runs: %v", node, run.Name, len(runs.Items), err)
	}
	return &runs.Items[0]
}

// awaitTrace waits until the tree of the trace of a Run is as wanted, and returns it. Before all spans
// were sent, it is several trees.
func (s *exampleFixture) awaitTrace(run *v1alpha1.Run, holds func(tree string) bool) string {
	s.t.Helper()
	trace := "trace " + strings.ReplaceAll(string(run.UID), "-", "")
	var tree string
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		data, err := cluster.api.CoreV1().Services(s.name).ProxyGet("http", modelsName, "80", "/traces", map[string]string{"attributes": "deckhand.attempt"}).DoRaw(ctx)
		if err != nil {
			return false, err
		}
		tree = below(trace, string(data))
		return holds(tree), nil
	})
	if err != nil {
		s.t.Fatalf("the trace of Run %s is %s: %v", run.Name, tree, err)
	}
	return tree
}

// below returns the lines below each occurrence of a line that is not indented.
func below(heading, text string) string {
	out, wanted := "\n", false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			wanted = strings.TrimSuffix(line, "\n") == heading
		} else if wanted {
			out += line
		}
	}
	return out
}
