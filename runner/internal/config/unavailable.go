package config

import (
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
)

// Notes tell the model which servers are unavailable.
func (h *SandboxTools) Notes() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		if note := h.servers[name].Note(); note != "" {
			out = append(out, note)
		}
	}
	return out
}

// Unavailable returns the optional servers that are not there.
func (h *SandboxTools) Unavailable() []journal.Remote {
	var out []journal.Remote
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		if why := h.servers[name].Absent(); why != nil {
			out = append(out, journal.Remote{Name: "toolset " + name, Field: why.Field + " of Toolset " + name, Unreachable: why.Reason()})
		}
	}
	return out
}
