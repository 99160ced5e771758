package middleware

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Plugin is a value that Of makes a Layer of. It may have any of these
// methods besides:
//
//	Tools() []tool.Tool
//	Instructions() string
//	WrapModelCall(ctx context.Context, t *Turn, next ModelFunc) (model.Response, error)
//	WrapToolCall(ctx context.Context, c *tool.Call, next ToolFunc) (tool.Result, error)
//	OnAgentStart(ctx context.Context, o *SessionStart) error
//	OnAgentStop(ctx context.Context, c SessionEnd) error
type Plugin interface {
	Name() string
	Priority() int
}

// Of is the Layer that a Plugin amounts to. What it has no method for costs
// nothing.
func Of(p Plugin) Layer {
	l := Layer{Name: p.Name(), Priority: p.Priority()}
	if p, ok := p.(interface{ Tools() []tool.Tool }); ok {
		l.Tools = p.Tools()
	}
	if p, ok := p.(interface{ Instructions() string }); ok {
		l.Instructions = p.Instructions()
	}
	if p, ok := p.(interface {
		WrapModelCall(ctx context.Context, t *Turn, next ModelFunc) (model.Response, error)
	}); ok {
		l.Model = func(next ModelFunc) ModelFunc {
			return func(ctx context.Context, t *Turn) (model.Response, error) { return p.WrapModelCall(ctx, t, next) }
		}
	}
	if p, ok := p.(interface {
		WrapToolCall(ctx context.Context, c *tool.Call, next ToolFunc) (tool.Result, error)
	}); ok {
		l.Tool = func(next ToolFunc) ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) { return p.WrapToolCall(ctx, c, next) }
		}
	}
	if p, ok := p.(interface {
		OnAgentStart(ctx context.Context, o *SessionStart) error
	}); ok {
		l.Start = p.OnAgentStart
	}
	if p, ok := p.(interface {
		OnAgentStop(ctx context.Context, c SessionEnd) error
	}); ok {
		l.Stop = p.OnAgentStop
	}
	return l
}
