package snapshot_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func of(t *testing.T, agent *v1alpha1.Agent, model *v1alpha1.Model) *snapshot.Version {
	t.Helper()
	v, err := snapshot.Of(agent, model)
	if err != nil {
		t.Fatalf("making a version: %v", err)
	}
	return v
}

func TestVersionIsWhatItIsMadeOf(t *testing.T) {
	base := of(t, gen.Agent(), gen.Model())
	if again := of(t, gen.Agent(), gen.Model()); again.Hash != base.Hash {
		t.Error("the same Agent and Model make two versions")
	}
	moved := gen.Agent(func(a *v1alpha1.Agent) { a.Generation, a.ResourceVersion = 7, "9" })
	if of(t, moved, gen.Model()).Hash != base.Hash {
		t.Error("metadata makes another version")
	}
	for what, other := range map[string]*snapshot.Version{
		"instructions": of(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Other." }), gen.Model()),
		"limits":       of(t, gen.Agent(func(a *v1alpha1.Agent) { d := v1alpha1.Duration("2h"); a.Spec.Limits.Duration = &d }), gen.Model()),
		"the Model":    of(t, gen.Agent(), gen.Model(func(m *v1alpha1.Model) { m.Spec.Model = "other" })),
		"the image": of(t, gen.Agent(func(a *v1alpha1.Agent) {
			a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "other"}
		}), gen.Model()),
	} {
		if other.Hash == base.Hash {
			t.Errorf("%s may change without another version", what)
		}
	}
}

func TestVersionSurvivesItsConfigMap(t *testing.T) {
	v := of(t, gen.Agent(), gen.Model())
	cm := v.ConfigMap("team-a")
	got, err := snapshot.Read(cm, v.Hash)
	if err != nil {
		t.Fatalf("reading it back: %v", err)
	}
	if got.RunnerHash != v.RunnerHash || got.Sources.AgentSpec.Instructions != v.Sources.AgentSpec.Instructions {
		t.Errorf("it came back as %+v", got)
	}
	if cm.Immutable == nil || !*cm.Immutable {
		t.Error("the ConfigMap may be changed")
	}
}

// Somebody may delete the ConfigMap and make another under its name.
func TestForgedVersionIsRefused(t *testing.T) {
	v := of(t, gen.Agent(), gen.Model())
	for _, key := range []string{"snapshot.json", "sources.json"} {
		cm := v.ConfigMap("team-a")
		cm.Data[key] = strings.Replace(cm.Data[key], "fix", "break", 1)
		if _, err := snapshot.Read(cm, v.Hash); err == nil {
			t.Errorf("a forged %s is taken", key)
		}
	}
}

func TestProblems(t *testing.T) {
	cost := v1alpha1.Money("1USD")
	cases := map[string]struct {
		agent  *v1alpha1.Agent
		model  *v1alpha1.Model
		reason string
		says   string
	}{
		"a Model that is not there": {gen.Agent(), nil, v1alpha1.ReasonModelNotFound, `Model "sonnet" not found in namespace team-a`},
		"a limit of cost without prices": {
			gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = &cost }),
			gen.Model(func(m *v1alpha1.Model) { m.Spec.Prices = nil }),
			v1alpha1.ReasonPricesMissing, "set its spec.prices",
		},
		"an output schema that is none": {
			gen.Agent(func(a *v1alpha1.Agent) {
				a.Spec.Output = &v1alpha1.Output{Schema: runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`)}}
			}),
			gen.Model(), v1alpha1.ReasonOutputSchemaInvalid, "$ref",
		},
		"extra parameters that are no object": {
			gen.Agent(),
			gen.Model(func(m *v1alpha1.Model) {
				m.Spec.Parameters = &v1alpha1.ModelParameters{Extra: &runtime.RawExtension{Raw: []byte(`[1]`)}}
			}),
			v1alpha1.ReasonModelNotReady, "must be an object",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Of(tc.agent, tc.model)
			var problem *snapshot.NotReadyError
			if !errors.As(err, &problem) || problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("Of() = %v, want reason %s and %q", err, tc.reason, tc.says)
			}
		})
	}
}

// What the runner reads is complete, and holds no secret: only where one lies.
func TestRunnerReadsTheWholeAgent(t *testing.T) {
	temperature, timeout, tokens := v1alpha1.Decimal("0.2"), v1alpha1.Duration("5m"), v1alpha1.Tokens("200k")
	v := of(t,
		gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Tools[0].Timeout = &timeout }),
		gen.Model(func(m *v1alpha1.Model) {
			m.Spec.ContextWindow = &tokens
			m.Spec.Headers = []v1alpha1.Header{{Name: "X-Team", Value: "a"}}
			m.Spec.Parameters = &v1alpha1.ModelParameters{Temperature: &temperature, Reasoning: "Low"}
		}))
	var got task.Snapshot
	if err := json.Unmarshal(v.Runner, &got); err != nil {
		t.Fatal(err)
	}
	m := got.Models[0]
	if got.Version != task.Version || got.Agent.Tools[0].TimeoutSeconds != 300 || m.ContextWindow != 200_000 ||
		*m.Params.Temperature != 0.2 || m.Headers["X-Team"] != "a" || m.Secret != "sonnet" || m.Key != "api-key" ||
		m.Prices.Input != 3_000_000 || m.Prices.CacheRead != 3_000_000 || m.Prices.Output != 15_000_000 {
		t.Errorf("the runner reads %s", v.Runner)
	}
}
