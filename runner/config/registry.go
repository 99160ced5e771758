package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A KeyFunc reads a key of a Secret, each time anew: Secrets rotate. It is nil
// where there is none to read.
type KeyFunc func() (string, error)

// A ModelSpec is what a driver makes a model of.
type ModelSpec struct {
	task.Model
	// Key is asked before each request; nil where the Model has no credentials.
	Key KeyFunc
}

// A ModelFactory makes the model of a provider.
type ModelFactory func(ModelSpec) (model.Model, error)

// A ToolSpec is what the tools of one entry of an Agent are made of, anew for
// each session.
type ToolSpec struct {
	// Entry is what the Agent says of them, Agent who it is.
	Entry task.Tool
	Agent task.Agent
	// Agents are those of the Run that this one may call, by name.
	Agents map[string]task.Agent
	Run    task.Run
	// User is the spec.user of the Run.
	User string
	// Files are the file tools of the session, Memories and Sessions what is
	// remembered.
	Files    *files.Toolset
	Memories backend.Backend
	Sessions session.Store
	// SandboxTools are what runs in the sandbox.
	SandboxTools *SandboxTools
	// Key reads the key of the entry; nil where it names none.
	Key KeyFunc
}

// A ToolFactory makes the tools of one entry of an Agent's tools.
type ToolFactory func(ToolSpec) ([]tool.Tool, error)

// A LayerFactory makes a layer around the calls of an agent, anew for each
// session.
type LayerFactory func(agent task.Agent, run task.Run) (middleware.Layer, error)

// A BackendSpec is what a backend is made of.
type BackendSpec struct {
	Run   task.Run
	Agent task.Agent
	// Dir is a directory of its own that lives as long as the journal.
	Dir string
}

// A BackendFactory makes what the file tools see below a path.
type BackendFactory func(BackendSpec) (backend.Backend, error)

// A Listener is told of each event as it happens, in order.
type Listener func(events.Event)

// A StoreFactory opens the store that sessions are copied to.
type StoreFactory func(ctx context.Context, run task.Run) (session.Store, error)

// A Registry knows everything that a task may name: drivers of models by
// provider, and by driver for those that are not ours, tools, layers, backends
// and the store of sessions.
type Registry struct {
	models    map[string]ModelFactory
	drivers   map[string]ModelFactory
	builtins  map[string]ToolFactory
	customs   map[string]ToolFactory
	layers    []LayerFactory
	listeners []Listener
	backends  map[string]BackendFactory
	store     StoreFactory
}

// NewRegistry knows what the runner comes with.
func NewRegistry() *Registry {
	r := &Registry{
		models: map[string]ModelFactory{}, drivers: map[string]ModelFactory{},
		builtins: map[string]ToolFactory{}, customs: map[string]ToolFactory{},
		backends: map[string]BackendFactory{},
	}
	builtin(r)
	return r
}

// Driver adds what Models of the provider Custom name as their driver.
func (r *Registry) Driver(name string, f ModelFactory) { r.drivers[name] = f }

// Tool adds what Agents name as a custom tool.
func (r *Registry) Tool(name string, f ToolFactory) { r.customs[name] = f }

// Layer adds a layer around the calls of every agent.
func (r *Registry) Layer(f LayerFactory) { r.layers = append(r.layers, f) }

// Backend adds a place for files below a path, or replaces one of ours:
// /workspace, /tmp or /memories.
func (r *Registry) Backend(path string, f BackendFactory) { r.backends[path] = f }

// Store adds a store that sessions are copied to; without it they are not.
func (r *Registry) Store(f StoreFactory) { r.store = f }

// Listener adds somebody who is told of events; one that is slow misses some.
func (r *Registry) Listener(f Listener) { r.listeners = append(r.listeners, f) }

// Listeners are those that were added.
func (r *Registry) Listeners() []Listener { return r.listeners }

// names are the keys of a map, for people.
func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
