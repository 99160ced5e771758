package runner

import "github.com/deckhand-dev/deckhand/runner/config"

// An Option adds to what a runner knows.
type Option func(*config.Registry)

// WithModel adds the driver of a provider, as Model.spec.provider names it.
func WithModel(provider string, f config.ModelFactory) Option {
	return func(r *config.Registry) { r.Model(provider, f) }
}

// WithTool adds a builtin, as Agent.spec.tools name it.
func WithTool(builtin string, f config.ToolFactory) Option {
	return func(r *config.Registry) { r.Tool(builtin, f) }
}

func registry(options []Option) *config.Registry {
	r := config.NewRegistry()
	for _, add := range options {
		add(r)
	}
	return r
}
