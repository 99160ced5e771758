//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// nowhere is a host that does not exist, as a typing error makes one.
const nowhere = "wether.nowhere.svc.cluster.local"

// A misspelled host does not end as if all were well: the Run of a Toolset that no
// call reached says so, and that of a hook ends ToolUnavailable.
func TestEndpointsThatDoNotExist(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	weather := &v1alpha1.Toolset{Spec: v1alpha1.ToolsetSpec{Requests: &v1alpha1.Requests{
		BaseURL: "http://" + nowhere,
		Tools: []v1alpha1.RequestTool{{
			Name: "show", Description: "Shows the weather.", Method: "GET", Path: "/weather",
			Input: &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "day", Required: new(false)}}},
		}},
	}}}
	weather.Name = "weather"
	p.create(weather)
	p.agent("forecaster", func(a *v1alpha1.Agent) { a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: "weather"}) })
	run := p.run("forecaster")
	seen := p.ends(run, "True Finished")
	for _, piece := range []string{
		"The work is done. Every call of toolset weather failed (2 of 2): lookup " + nowhere, "Check spec.requests.baseURL of Toolset weather.",
	} {
		if !strings.Contains(message(seen), piece) {
			t.Errorf("the message lacks %q: %s", piece, message(seen))
		}
	}
	p.eventOf(run, "ResultWarning")

	none := int32(0)
	p.agent("reader", func(a *v1alpha1.Agent) {
		a.Spec.Hooks = []v1alpha1.Hook{{Name: "guard", Point: v1alpha1.BeforeTool, URL: "http://" + nowhere + "/hook"}}
	})
	guarded := p.ends(p.run("reader", func(r *v1alpha1.Run) { r.Spec.MaxRetries = &none }), "False ToolUnavailable")
	if want := "The hook guard could not be asked: lookup " + nowhere + ": no such host"; !strings.Contains(message(guarded), want) {
		t.Errorf("the message lacks %q: %s", want, message(guarded))
	}
}

// An optional MCP server that is not there is named by the Run, and a required one ends
// it; either way the log of the pod says how the attempt ended.
func TestServersThatDoNotExist(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	optional := &v1alpha1.Toolset{Spec: v1alpha1.ToolsetSpec{HTTP: &v1alpha1.HTTPServer{URL: "http://" + nowhere + "/mcp"}, Required: new(false)}}
	optional.Name = "optional"
	required := &v1alpha1.Toolset{Spec: v1alpha1.ToolsetSpec{HTTP: optional.Spec.HTTP}}
	required.Name = "required"
	p.create(optional, required)
	for agent, tc := range map[string]struct{ script, toolset, ends, event, says string }{
		"goes on": {"trivial", "optional", "True Finished", "ResultWarning", "The work is done. The optional toolset optional was not available: lookup " + nowhere + ": no such host. Check spec.http.url of Toolset optional."},
		"ends":    {"reader", "required", "False ToolUnavailable", "ToolUnavailable", "Toolset required: the MCP server (spec.http.url) is not available: lookup " + nowhere + ": no such host"},
	} {
		t.Run(agent, func(t *testing.T) {
			p := &testNamespace{t: t, name: p.name}
			p.agent(tc.script, func(a *v1alpha1.Agent) {
				a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: v1alpha1.ObjectName(tc.toolset)})
			})
			run := p.run(tc.script, func(r *v1alpha1.Run) { r.Spec.MaxRetries = new(int32) })
			if got := message(p.ends(run, tc.ends)); got != tc.says {
				t.Errorf("the message is %q, want %q", got, tc.says)
			}
			var log string
			err := until(t.Context(), func(ctx context.Context) (bool, error) { // the runner writes it after the result
				log = p.log(ctx, run.Name+"-1")
				return strings.Contains(log, `"type":"run.finished"`), nil
			})
			if err != nil {
				t.Errorf("the log of the pod lacks run.finished: %q", log)
			}
			p.eventOf(run, tc.event)
		})
	}
}
