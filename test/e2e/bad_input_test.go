//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// sse is an event of a stream of chat completions.
const sse = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"again and again and again and again \"}}]}\n\n"

// hostile are pages of servers that mean no good, or do not know better.
var hostile = map[string]page{
	"POST /flood/chat/completions":   {ContentType: "text/event-stream", Body: strings.Repeat(sse, 100), Repeat: -1},
	"POST /garbage/chat/completions": {ContentType: "text/event-stream", Body: "data: \x00\x01\xff garbage\n\n"},
	"GET /endless":                   {Body: strings.Repeat("on and on and on and on and on and on and on and on\n", 100), Repeat: -1},
	"POST /hook/hangs":               {DelayMS: 60_000},
	"POST /hook/nonsense":            {Body: "<html>What?</html>", ContentType: "text/html"},
	"POST /hook/endless":             {Body: strings.Repeat("{", 8<<10), Repeat: -1},
}

// withoutOutages has the Runs of an Agent end when a model is unavailable.
func withoutOutages(a *v1alpha1.Agent) {
	a.Spec.Limits.ModelOutage = new(v1alpha1.Duration("0s"))
}

// hook is one hook of a hostile server before each turn.
func hook(path string, policy v1alpha1.FailurePolicy) func(*v1alpha1.Agent) {
	return func(a *v1alpha1.Agent) {
		a.Spec.Hooks = []v1alpha1.Hook{{Name: "hostile", Point: v1alpha1.BeforeModel, URL: "http://" + host + "/hook/" + path, Timeout: "30s", FailurePolicy: policy}}
	}
}

// hangingHook is a hook that does not answer within its timeout.
func hangingHook(a *v1alpha1.Agent) {
	hook("hangs", "")(a)
	a.Spec.Hooks[0].Timeout = "2s"
}

// Whatever answers in the place of a model or a hook: the Run ends with a reason
// that says what is wrong, or goes on, and its pod never runs out of memory.
func TestBadAnswersOfModelsAndHooks(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	for name, tc := range map[string]struct {
		endpoint string // below the host; empty: the script
		agent    func(*v1alpha1.Agent)
		want     string
		says     []string // in the message
	}{
		"a stream without an end":      {"flood", nil, "False Misconfigured", []string{"4 MiB"}},
		"a stream of garbage":          {"garbage", withoutOutages, "False ModelUnavailable", nil},
		"a hook that hangs":            {"", hangingHook, "False ToolUnavailable", []string{"hostile", "2s"}},
		"a hook that answers nonsense": {"", hook("nonsense", ""), "False ToolUnavailable", []string{"hostile", "no JSON object"}},
		"a hook without an end":        {"", hook("endless", ""), "False ToolUnavailable", []string{"hostile", "more than"}},
		"a hook of no consequence":     {"", hook("nonsense", v1alpha1.FailurePolicyIgnore), "True Finished", nil},
		"a page without an end":        {"", nil, "True Finished", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &testNamespace{t: t, name: p.name}
			kebab := strings.ReplaceAll(name, " ", "-")
			m := modelOf("hostile", func(m *v1alpha1.Model) {
				m.Name = kebab
				if tc.endpoint != "" {
					m.Spec.Endpoint = "http://" + host + "/" + tc.endpoint
				}
			})
			a := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{
				Instructions: "Do what you are told.", Model: m.Name,
				Tools: []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinHTTPRequest, HTTPRequest: &v1alpha1.WebTool{Hosts: []v1alpha1.Host{v1alpha1.Host(host)}}}},
			}}
			a.Name = kebab
			if tc.agent != nil {
				tc.agent(a)
			}
			p.create(m, a)
			none := int32(0)
			seen := p.ends(p.run(kebab, func(r *v1alpha1.Run) { r.Spec.MaxRetries = &none }), tc.want)
			for _, piece := range tc.says {
				if !strings.Contains(message(seen), piece) {
					t.Errorf("the message lacks %q: %s", piece, message(seen))
				}
			}
		})
	}
}

// What cannot work is said before anything runs, and Runs of it wait.
func TestBadAgentsAreNotReady(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	fallbacks := func(names ...v1alpha1.ObjectName) func(*v1alpha1.Model) {
		return func(m *v1alpha1.Model) { m.Spec.Fallbacks = names }
	}
	p.create(
		modelOf("fine"), modelOf("a", fallbacks("b")), modelOf("b", fallbacks("a")), modelOf("c", fallbacks("nobody")),
	)
	agent := func(name, model string, mod func(*v1alpha1.AgentSpec)) client.Object {
		a := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Instructions: "Do it.", Model: model}}
		a.Name = name
		if mod != nil {
			mod(&a.Spec)
		}
		return a
	}
	schema := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	p.create(
		agent("in-a-circle", "a", nil),
		agent("without-fallback", "c", nil),
		agent("no-output-schema", "fine", func(s *v1alpha1.AgentSpec) { s.Output = &v1alpha1.Output{Schema: schema(`{"type":"objekt"}`)} }),
		agent("no-input-schema", "fine", func(s *v1alpha1.AgentSpec) {
			s.Input = &v1alpha1.Input{Schema: new(schema(`{"type":"object","oneOf":[]}`))}
		}),
		agent("no-such-input", "fine", func(s *v1alpha1.AgentSpec) { s.Instructions = "Speak ${{ input.language }}." }),
		agent("no-such-agent", "fine", func(s *v1alpha1.AgentSpec) { s.Tools = []v1alpha1.Tool{{Agent: "nobody"}} }),
	)
	for name, want := range map[string][]string{
		"in-a-circle":      {v1alpha1.ReasonNotReady, "a"},
		"without-fallback": {v1alpha1.ReasonNotReady, "c"},
		"no-output-schema": {v1alpha1.ReasonInvalid, "spec.output.schema: type must be one of"},
		"no-input-schema":  {v1alpha1.ReasonInvalid, "oneOf"},
		"no-such-input":    {v1alpha1.ReasonInvalid, "language"},
		"no-such-agent":    {v1alpha1.ReasonNotFound, "nobody"},
	} {
		a := &v1alpha1.Agent{}
		p.awaitNotReady(a, name, want, func() string { return ready(a.Status.Conditions) })
	}
	for name, want := range map[string][]string{
		"a": {v1alpha1.ReasonCycle, "a -> b -> a"},
		"c": {v1alpha1.ReasonNotFound, "nobody"},
	} {
		m := &v1alpha1.Model{}
		p.awaitNotReady(m, name, want, func() string { return ready(m.Status.Conditions) })
	}
	run := p.run("in-a-circle")
	p.await(run, "waits for its Agent", func(r *v1alpha1.Run) bool {
		return strings.HasPrefix(succeeded(r), "Unknown Pending") && strings.Contains(message(r), "in-a-circle")
	})
}

// honest is what the model says that reads a page without an end.
var honest = turns(
	modeltest.Turn{Calls: []modeltest.Call{call("HTTPRequest", args{"method": "GET", "url": "http://" + host + "/endless"})}},
	modeltest.Turn{Text: "Done."},
)
