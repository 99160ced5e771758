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
	// Keys are those that are mounted; Whole: all there are.
	Keys  []string
	Whole bool
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
	for _, t := range s.Toolsets {
		for _, k := range t.Keys() {
			add(k)
		}
	}
	whole := ""
	if g := s.Workspace.Git; g != nil && g.Secret != "" {
		whole = g.Secret
		add(task.SecretKey{Secret: whole})
	}
	var out []Secret
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		one := Secret{Name: name, Whole: name == whole}
		if !one.Whole {
			one.Keys = slices.Sorted(maps.Keys(keys[name]))
		}
		out = append(out, one)
	}
	return out
}
