// Package registry has the factories of a custom runner, which make its models, tools, layers, backends and session
// store, and their inputs. The options of package runner accept them.
package registry

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A KeyFunc returns the current value of a key of a Secret. Call it before each use: Secrets are rotated. The value is
// redacted in the journal, the log and the status.
type KeyFunc func() (string, error)

// A ModelSpec is the input of a ModelFactory.
type ModelSpec struct {
	// Model has the fields of the Model object.
	task.Model
	// Key reads spec.apiKeySecretRef of the Model; nil if it names no Secret.
	Key KeyFunc
}

// A ModelFactory makes the model of a Model object, once for each attempt.
type ModelFactory func(ctx context.Context, spec ModelSpec) (model.Model, error)

// A ToolSpec is the input of a ToolFactory: one entry in spec.tools of an Agent.
type ToolSpec struct {
	// Entry is the entry, Agent the Agent with the entry.
	Entry task.Tool
	Agent task.Agent
	Run   task.Run
	// User is spec.user of the Run.
	User string
	// Key reads settings.apiKeySecretRef of the entry; nil if it names no Secret.
	Key KeyFunc
}

// A ToolFactory makes the tools of one entry, once for each session of the Agent.
type ToolFactory func(ctx context.Context, spec ToolSpec) ([]tool.Tool, error)

// A LayerSpec is the input of a LayerFactory.
type LayerSpec struct {
	Agent task.Agent
	Run   task.Run
	// User is spec.user of the Run.
	User string
}

// A LayerFactory makes a layer around the model and tool calls of an agent, once for
// each session.
type LayerFactory func(ctx context.Context, spec LayerSpec) (middleware.Layer, error)

// A BackendSpec is the input of a BackendFactory.
type BackendSpec struct {
	Run task.Run
	// Agent is the Agent of the Run. The agents that it calls see the same files.
	Agent task.Agent
	// Dir is a directory for this backend alone, which lives as long as the journal.
	// The factory creates it.
	Dir string
}

// A BackendFactory makes the files that agents see below a path, once for each attempt.
type BackendFactory func(ctx context.Context, spec BackendSpec) (backend.Driver, error)

// A StoreSpec is the input of a StoreFactory.
type StoreSpec struct {
	Run task.Run
	// Agent is the Agent of the Run.
	Agent task.Agent
	// User is spec.user of the Run.
	User string
}

// A StoreFactory opens the store to which sessions are copied, once for each attempt.
type StoreFactory func(ctx context.Context, spec StoreSpec) (session.Store, error)

// A Listener receives each event of the Run, in order. Texts are not redacted.
type Listener func(events.Event)
