package snapshot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func of(t *testing.T, agent *v1alpha1.Agent, o snapshot.Objects) *snapshot.Version {
	t.Helper()
	v, err := snapshot.Of(agent, o)
	if err != nil {
		t.Fatalf("making a version: %v", err)
	}
	return v
}

func TestVersionIsWhatItIsMadeOf(t *testing.T) {
	base := of(t, gen.Agent(), gen.Objects())
	if again := of(t, gen.Agent(), gen.Objects()); again.Hash != base.Hash {
		t.Error("the same Agent and Model make two versions")
	}
	moved := gen.Agent(func(a *v1alpha1.Agent) { a.Generation, a.ResourceVersion = 7, "9" })
	if of(t, moved, gen.Objects()).Hash != base.Hash {
		t.Error("metadata makes another version")
	}
	for what, other := range map[string]*snapshot.Version{
		"instructions": of(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Other." }), gen.Objects()),
		"limits":       of(t, gen.Agent(func(a *v1alpha1.Agent) { d := v1alpha1.Duration("2h"); a.Spec.Limits.Duration = &d }), gen.Objects()),
		"a hook":       of(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Hooks = []v1alpha1.Hook{{Name: "h"}} }), gen.Objects()),
		"the Model":    of(t, gen.Agent(), gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec.ModelID = "other" }))),
		"the image": of(t, gen.Agent(func(a *v1alpha1.Agent) {
			a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "other"}
		}), gen.Objects()),
	} {
		if other.Hash == base.Hash {
			t.Errorf("%s may change without another version", what)
		}
	}
}

func TestVersionSurvivesItsConfigMap(t *testing.T) {
	v := of(t, gen.Agent(), gen.Objects())
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
	v := of(t, gen.Agent(), gen.Objects())
	for _, key := range []string{"snapshot.json", "sources.json"} {
		cm := v.ConfigMap("team-a")
		cm.Data[key] = strings.Replace(cm.Data[key], "fix", "break", 1)
		if _, err := snapshot.Read(cm, v.Hash); err == nil {
			t.Errorf("a forged %s is taken", key)
		}
	}
}

// A Run that began before its operator was replaced goes on: what it started with
// was written when an Agent had one Model and reached no other.
func TestAVersionOfTheFirstFormatIsRead(t *testing.T) {
	runner := `{"version":1,"agent":{"name":"fixer","instructions":"You fix.","tools":[{"builtin":"Files"}],"parallelTools":10,"events":"Full"},` +
		`"models":[{"name":"sonnet","provider":"OpenAICompatible","model":"s","endpoint":"https://m/v1","secret":"anthropic","key":"api-key","params":{"maxOutputTokens":100}}]}`
	sources := `{"agent":"fixer","agentSpec":{"instructions":"You fix.","model":"sonnet","tools":[{"builtin":"Files"}],"limits":{"steps":7}},` +
		`"model":"sonnet","modelSpec":{"provider":"OpenAICompatible","model":"s","endpoint":"https://m/v1","credentials":{"secretName":"anthropic","key":"api-key"}}}`
	hash := task.Hash([]byte(task.Hash([]byte(sources)) + task.Hash([]byte(runner))))
	v, err := snapshot.Read(&corev1.ConfigMap{Data: map[string]string{"snapshot.json": runner, "sources.json": sources}}, hash)
	if err != nil {
		t.Fatalf("reading it: %v", err)
	}
	if string(v.Runner) != runner || v.RunnerHash != task.Hash([]byte(runner)) {
		t.Error("the runner is not given what it was")
	}
	if diff := cmp.Diff([]snapshot.Secret{{Name: "anthropic", Keys: []string{"api-key"}}}, snapshot.Secrets(v.Snapshot)); diff != "" {
		t.Errorf("its Secrets -want +got:\n%s", diff)
	}
	if limits := snapshot.LimitsOf(v.Sources.AgentSpec.Limits); limits.Steps != 7 || limits.Depth != 3 {
		t.Errorf("its limits are %+v", limits)
	}
}
