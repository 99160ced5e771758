package config

import (
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/task"
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

// maxInstructions bounds the instructions of all servers that an agent reads, in bytes.
const maxInstructions = 8 << 10

// instructions returns how the servers of an agent's Toolsets want to be used, in the
// order of their names: it is a part of every request to a model.
func (h *SandboxTools) instructions(agent task.Agent) string {
	var used []string
	for _, entry := range agent.Tools {
		if _, is := h.servers[entry.Toolset]; is {
			used = append(used, entry.Toolset)
		}
	}
	slices.Sort(used)
	var all []string
	room := maxInstructions
	for _, name := range slices.Compact(used) {
		text := h.servers[name].Instructions(room)
		if text != "" {
			all = append(all, text)
			room -= len(text)
		}
	}
	return paragraphs(all...)
}
