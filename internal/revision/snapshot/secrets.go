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
	whole := ""
	if g := s.Workspace.Git; g != nil {
		whole = g.Secret
	}
	for _, k := range append(keysOf(s), task.SecretKey{Secret: whole}) {
		if k.Secret == "" {
			continue
		}
		if keys[k.Secret] == nil {
			keys[k.Secret] = map[string]bool{}
		}
		keys[k.Secret][k.Key] = true
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

// keysOf are the keys that Models, tools, hooks and Toolsets name, some of them
// empty.
func keysOf(s task.Snapshot) []task.SecretKey {
	var out []task.SecretKey
	for _, m := range s.Models {
		out = append(out, m.SecretKey)
	}
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for _, t := range a.Tools {
			out = append(out, t.SecretKey)
		}
		for _, h := range a.Hooks {
			out = append(out, h.SecretKey)
		}
	}
	for _, t := range s.Toolsets {
		out = append(out, t.Keys()...)
	}
	return out
}
