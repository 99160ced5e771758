package snapshot_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func of(t *testing.T, agent *v1alpha1.Agent, o snapshot.Objects) *snapshot.Revision {
	t.Helper()
	v, err := snapshot.Of(agent, o)
	if err != nil {
		t.Fatalf("making a revision: %v", err)
	}
	return v
}

func TestVersionIsWhatItIsMadeOf(t *testing.T) {
	base := of(t, gen.Agent(), gen.Objects())
	if again := of(t, gen.Agent(), gen.Objects()); again.Hash != base.Hash {
		t.Error("the same Agent and Model make two revisions")
	}
	moved := gen.Agent(func(a *v1alpha1.Agent) { a.Generation, a.ResourceVersion = 7, "9" })
	if of(t, moved, gen.Objects()).Hash != base.Hash {
		t.Error("metadata makes another revision")
	}
	for what, other := range map[string]*snapshot.Revision{
		"instructions": of(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Other." }), gen.Objects()),
		"limits":       of(t, gen.Agent(func(a *v1alpha1.Agent) { d := v1alpha1.Duration("2h"); a.Spec.Limits.Duration = &d }), gen.Objects()),
		"a hook":       of(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Hooks = []v1alpha1.Hook{{Name: "h"}} }), gen.Objects()),
		"the Model":    of(t, gen.Agent(), gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec.ModelID = "other" }))),
		"the image": of(t, gen.Agent(func(a *v1alpha1.Agent) {
			a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "other"}
		}), gen.Objects()),
	} {
		if other.Hash == base.Hash {
			t.Errorf("%s may change without another revision", what)
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
	if got.RunnerHash != v.RunnerHash || !cmp.Equal(got.Agent, v.Agent) || !cmp.Equal(got.Snapshot, v.Snapshot) {
		t.Errorf("it came back as %+v", got)
	}
	if cm.Immutable == nil || !*cm.Immutable {
		t.Error("the ConfigMap may be changed")
	}
}

// Somebody may delete the ConfigMap and make another under its name.
func TestForgedVersionIsRefused(t *testing.T) {
	v := of(t, gen.Agent(), gen.Objects())
	for _, key := range []string{"runner.json", "agent.json"} {
		cm := v.ConfigMap("team-a")
		cm.Data[key] = strings.Replace(cm.Data[key], "fixer", "breaker", 1)
		if _, err := snapshot.Read(cm, v.Hash); err == nil {
			t.Errorf("a forged %s is taken", key)
		}
	}
}

// What this operator does not understand of a revision could change what the Run does.
func TestARevisionOfAnotherOperatorIsRefused(t *testing.T) {
	v := of(t, gen.Agent(), gen.Objects())
	for name, tc := range map[string]struct {
		key, was, is string
		newer        bool
	}{
		"a newer form":                {"agent.json", `"version":1`, `"version":3`, true},
		"a newer form for the runner": {"runner.json", `"version":2`, `"version":3`, true},
		"an unknown field":            {"agent.json", `"version":1`, `"version":1,"gpu":1`, true},
		"one for the runner":          {"runner.json", `"version":2`, `"version":2,"gpu":1`, true},
		"no version":                  {"agent.json", `"version":1,`, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			cm := v.ConfigMap("team-a")
			cm.Data[tc.key] = strings.Replace(cm.Data[tc.key], tc.was, tc.is, 1)
			hash := task.Hash([]byte(task.Hash([]byte(cm.Data["agent.json"])) + task.Hash([]byte(cm.Data["runner.json"]))))
			got, err := snapshot.Read(cm, hash)
			if unsupported, is := errors.AsType[*stored.UnsupportedError](err); !is || got != nil || unsupported.IsNewer() != tc.newer {
				t.Errorf("Read() = %v, %v", got, err)
			}
		})
	}
}
