package config

import (
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/request"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// requests makes the tools of a Toolset that is requests to an HTTP API.
func (b *builder) requests(set task.Toolset) ([]tool.Tool, error) {
	made, err := request.New(set, request.Options{Key: b.readKey, Learn: b.Learn, RunUID: b.Task.Run.UID, Traceparent: telemetry.Traceparent(b.Task), Now: b.Now})
	if err != nil {
		return nil, misconfigured("Toolset %s: %w", set.Name, err)
	}
	return within(made, seconds(set.TimeoutSeconds)), nil
}
