package middleware

import (
	"context"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Layer is one layer around the calls. Only Name is required; a nil function costs nothing.
type Layer struct {
	Name string
	// Priority orders layers: smaller is further out.
	Priority int
	// Tools are added to the agent's tools. Their Closers are closed before Close is called.
	Tools []tool.Tool
	// Instructions are added to the agent's instructions, once, when it is built.
	Instructions string
	// Start runs before the first turn of a session, outer layers first; not when a session is resumed. It may change
	// the SessionStart.
	Start func(ctx context.Context, o *SessionStart) error
	// Model and Tool wrap the model call and the tool call.
	Model func(next ModelFunc) ModelFunc
	Tool  func(next ToolFunc) ToolFunc
	// Stop runs when a session has ended, inner layers first. It must not change anything; its error is logged.
	Stop func(ctx context.Context, c SessionEnd) error
	// Close releases the layer's resources. It is called once, also if the session never began: when its session has
	// ended or, for the first session of an Agent, when the attempt ends.
	Close func() error
}

// A SessionStart describes a session that is about to begin.
type SessionStart struct {
	Scope step.Scope
	// Prompt is the first user message.
	Prompt string
}

// A SessionEnd describes how a session ended.
type SessionEnd struct {
	Scope step.Scope
	// Reason is why the session ended, Text the last text of the agent.
	Reason, Text string
}

// A ModelFunc calls the model and returns its answer. An error is an error of the model, or a VetoError, which ends the
// Run with reason Denied.
type ModelFunc func(ctx context.Context, t *Turn) (model.Response, error)

// A ToolFunc executes a tool call. A failure of the tool is in the Result. An error ends the Run, unless it is a
// VetoError, which becomes the result of the call.
type ToolFunc func(ctx context.Context, c *tool.Call) (tool.Result, error)

// A Turn is a model call about to be made.
type Turn struct {
	Scope step.Scope
	// Request is the request to the model. A change of earlier content, other than an addition at its end, invalidates
	// the provider's cache.
	Request *model.Request
	// Say adds a message of the user to the session and to the Request.
	Say func(text string, note step.Note) error
	// Charge counts a model call that a layer made itself, with its usage. Calls of next are counted without it.
	Charge func(used step.Usage)
}

// A VetoError forbids the action. Around a tool call the model reads it as the result; around a model call, and at the
// start, it ends the Run with reason Denied.
type VetoError struct {
	// By names the layer or service that forbids.
	By     string
	Reason string
}

func (e *VetoError) Error() string { return fmt.Sprintf("%s does not allow it: %s", e.By, e.Reason) }
