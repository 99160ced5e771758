package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/files"
)

// A ModelSpec is what a driver makes a model of.
type ModelSpec struct {
	task.Model
	// Key is asked before each request, because Secrets rotate; nil where the
	// Model has no credentials.
	Key func() (string, error)
}

// A ModelFactory makes the model of a provider.
type ModelFactory func(ModelSpec) (model.Model, error)

// A ToolSpec is what tools are made of.
type ToolSpec struct {
	Agent task.Agent
	// Files are the file tools of the session.
	Files *files.Toolset
}

// A ToolFactory makes the tools of one builtin of an Agent.
type ToolFactory func(ToolSpec) ([]tool.Tool, error)

// A Registry knows the drivers of models by provider and tools by builtin.
type Registry struct {
	models map[string]ModelFactory
	tools  map[string]ToolFactory
}

// NewRegistry knows what the runner comes with.
func NewRegistry() *Registry {
	r := &Registry{models: map[string]ModelFactory{}, tools: map[string]ToolFactory{}}
	builtin(r)
	return r
}

// Model adds the driver of a provider, or replaces it.
func (r *Registry) Model(provider string, f ModelFactory) { r.models[provider] = f }

// Tool adds a builtin, or replaces it.
func (r *Registry) Tool(builtin string, f ToolFactory) { r.tools[builtin] = f }

// names are the keys of a map, for people.
func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
