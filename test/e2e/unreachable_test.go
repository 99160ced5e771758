//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// nowhere is a host that does not exist, as a typing error makes one.
const nowhere = "wether.nowhere.svc.cluster.local"

// A misspelled host does not end as if all were well: the Run of a Toolset that no
// call reached says so, and that of a hook ends ToolUnavailable.
func TestEndpointsThatDoNotExist(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	weather := &v1alpha1.Toolset{Spec: v1alpha1.ToolsetSpec{Requests: &v1alpha1.Requests{
		BaseURL: "http://" + nowhere,
		Tools: []v1alpha1.RequestTool{{
			Name: "show", Description: "Shows the weather.", Method: "GET", Path: "/weather",
			Input: &runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"day":{"type":"string"}}}`)},
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
	p.eventOf(run, v1alpha1.ReasonToolUnavailable)

	none := int32(0)
	p.agent("reader", func(a *v1alpha1.Agent) {
		a.Spec.Hooks = []v1alpha1.Hook{{Name: "guard", Point: v1alpha1.BeforeTool, URL: "http://" + nowhere + "/hook"}}
	})
	guarded := p.ends(p.run("reader", func(r *v1alpha1.Run) { r.Spec.Retries = &none }), "False ToolUnavailable")
	if want := "The hook guard could not be asked: lookup " + nowhere + ": no such host"; !strings.Contains(message(guarded), want) {
		t.Errorf("the message lacks %q: %s", want, message(guarded))
	}
}
