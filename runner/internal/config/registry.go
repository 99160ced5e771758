package config

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/registry"
)

// A Registry has the factories of everything that a task may name: those that a custom
// runner adds, beside the built-in providers and tools.
type Registry struct {
	drivers   map[string]registry.ModelFactory
	customs   map[string]registry.ToolFactory
	backends  map[string]registry.BackendFactory
	layers    []registry.LayerFactory
	listeners []registry.Listener
	store     registry.StoreFactory
}

// NewRegistry returns a Registry with the built-in providers and tools alone.
func NewRegistry() *Registry {
	return &Registry{
		drivers:  map[string]registry.ModelFactory{},
		customs:  map[string]registry.ToolFactory{},
		backends: map[string]registry.BackendFactory{},
	}
}

// AddModel adds a driver for Models of the provider Custom.
func (r *Registry) AddModel(driver string, f registry.ModelFactory) error {
	return add(r.drivers, "WithModel", driver, f)
}

// AddTool adds a custom tool.
func (r *Registry) AddTool(name string, f registry.ToolFactory) error {
	return add(r.customs, "WithTool", name, f)
}

// AddBackend adds files below a path, or replaces those of /workspace, /tmp or /memories.
func (r *Registry) AddBackend(at string, f registry.BackendFactory) error {
	if at != "" {
		at = path.Clean(at)
	}
	return add(r.backends, "WithBackend", at, f)
}

// AddLayer adds a layer around the calls of every agent.
func (r *Registry) AddLayer(f registry.LayerFactory) error {
	if f == nil {
		return errors.New("runner.WithLayer: the factory is nil")
	}
	r.layers = append(r.layers, f)
	return nil
}

// AddStore sets the store to which sessions are copied.
func (r *Registry) AddStore(f registry.StoreFactory) error {
	switch {
	case f == nil:
		return errors.New("runner.WithStore: the factory is nil")
	case r.store != nil:
		return errors.New("runner.WithStore is used twice; a runner has one store")
	}
	r.store = f
	return nil
}

// AddListener adds a listener to the events of the Run.
func (r *Registry) AddListener(f registry.Listener) error {
	if f == nil {
		return errors.New("runner.WithListener: the listener is nil")
	}
	r.listeners = append(r.listeners, f)
	return nil
}

// Models returns the names of the drivers of models, sorted.
func (r *Registry) Models() []string { return slices.Sorted(maps.Keys(r.drivers)) }

// Tools returns the names of the custom tools, sorted.
func (r *Registry) Tools() []string { return slices.Sorted(maps.Keys(r.customs)) }

// Listeners returns the listeners in the order in which they were added.
func (r *Registry) Listeners() []registry.Listener { return r.listeners }

// add adds a factory, a function, under a name that nothing else has. option is the option of package
// runner that adds it.
func add[F any](all map[string]F, option, name string, f F) error {
	if name == "" {
		return fmt.Errorf("runner.%s: the name is empty", option)
	}
	if reflect.ValueOf(f).IsNil() {
		return fmt.Errorf("runner.%s(%q): the factory is nil", option, name)
	}
	if _, taken := all[name]; taken {
		return fmt.Errorf("runner.%s(%q) is used twice; rename one", option, name)
	}
	all[name] = f
	return nil
}

// names returns the keys of a map for a message.
func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
