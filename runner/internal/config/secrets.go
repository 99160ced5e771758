package config

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Secrets are the keys that a snapshot names, each once, the first Model's
// first.
func Secrets(s task.Snapshot) []task.SecretKey {
	var all []task.SecretKey
	add := func(k task.SecretKey) {
		if k.Secret != "" && !slices.Contains(all, k) {
			all = append(all, k)
		}
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
	return all
}
