package snapshot

import (
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// MaxSecrets is how many Secrets a pod mounts.
const MaxSecrets = 64

// A Secret is what an agent uses of a Secret.
type Secret struct {
	Name string
	Keys []string
}

// Secrets are those that anything in a snapshot names, each once, by name.
func Secrets(s task.Snapshot) []Secret {
	keys := map[string]map[string]bool{}
	add := func(k task.SecretKey) {
		if k.Secret == "" {
			return
		}
		if keys[k.Secret] == nil {
			keys[k.Secret] = map[string]bool{}
		}
		keys[k.Secret][k.Key] = true
	}
	for _, m := range s.Models {
		add(m.SecretKey)
	}
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for _, t := range a.Tools {
			add(t.SecretKey)
		}
		for _, h := range a.Hooks {
			add(h.SecretKey)
		}
	}
	var out []Secret
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, Secret{Name: name, Keys: slices.Sorted(maps.Keys(keys[name]))})
	}
	return out
}
