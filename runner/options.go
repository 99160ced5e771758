package runner

import (
	"errors"

	"github.com/deckhand-dev/deckhand/runner/internal/attempt"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

// An Option adds a model, tool, layer, directory, store or listener to a runner. If two options have the same name,
// each attempt ends with reason Misconfigured.
type Option struct {
	add func(*config.Registry) error
}

// WithModel adds a model, which a Model names: provider: Custom, custom: {driver: NAME}.
func WithModel(driver string, f registry.ModelFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddModel(driver, f) }}
}

// WithTool adds tools, which an Agent lists as custom: NAME.
func WithTool(name string, f registry.ToolFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddTool(name, f) }}
}

// WithLayer adds a layer around the model and tool calls of every agent.
func WithLayer(f registry.LayerFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddLayer(f) }}
}

// WithBackend adds files that every agent sees below a path. /workspace, /tmp and
// /memories replace the built-in ones.
func WithBackend(path string, f registry.BackendFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddBackend(path, f) }}
}

// WithStore copies each session to a store.
func WithStore(f registry.StoreFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddStore(f) }}
}

// WithListener adds a listener that receives each event as it happens, in order. Secrets
// are not redacted in these events. If the listener is slow, it misses events; nothing
// waits for it.
func WithListener(f registry.Listener) Option {
	return Option{func(r *config.Registry) error { return r.AddListener(f) }}
}

// registryOf returns the function that applies the options. It returns the errors of all of them.
func registryOf(options []Option) attempt.Registry {
	return func() (*config.Registry, error) {
		r := config.NewRegistry()
		var errs []error
		for _, o := range options {
			if o.add != nil { // the zero Option adds nothing
				errs = append(errs, o.add(r))
			}
		}
		return r, errors.Join(errs...)
	}
}
