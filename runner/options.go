package runner

import "github.com/deckhand-dev/deckhand/runner/config"

// An Option adds to what a runner knows.
type Option func(*config.Registry)

// WithModel adds the driver that Models of the provider Custom name.
func WithModel(driver string, f config.ModelFactory) Option {
	return func(r *config.Registry) { r.Driver(driver, f) }
}

// WithTool adds what an Agent lists in its tools as custom.
func WithTool(name string, f config.ToolFactory) Option {
	return func(r *config.Registry) { r.Tool(name, f) }
}

// WithLayer adds a layer around the calls of every agent.
func WithLayer(f config.LayerFactory) Option {
	return func(r *config.Registry) { r.Layer(f) }
}

// WithBackend adds files below a path that every agent sees, or puts others in
// the place of /workspace, /tmp or /memories.
func WithBackend(path string, f config.BackendFactory) Option {
	return func(r *config.Registry) { r.Backend(path, f) }
}

// WithStore keeps a copy of each session in a store of your own.
func WithStore(f config.StoreFactory) Option {
	return func(r *config.Registry) { r.Store(f) }
}

// WithListener adds a listener that receives each event as it happens, in order. A slow
// listener misses some; nothing waits for it.
func WithListener(f config.Listener) Option {
	return func(r *config.Registry) { r.Listener(f) }
}

func registry(options []Option) *config.Registry {
	r := config.NewRegistry()
	for _, add := range options {
		add(r)
	}
	return r
}
