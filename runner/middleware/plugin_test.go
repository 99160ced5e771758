package middleware_test

import (
	"context"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// whole is a Plugin with every method there is.
type whole struct{ *diary }

func (whole) Name() string         { return "whole" }
func (whole) Priority() int        { return 600 }
func (whole) Tools() []tool.Tool   { return []tool.Tool{named("do")} }
func (whole) Instructions() string { return "Do it." }

func (w whole) WrapModelCall(ctx context.Context, t *middleware.Turn, next middleware.ModelFunc) (model.Response, error) {
	w.note("model")
	return next(ctx, t)
}

func (w whole) WrapToolCall(ctx context.Context, c *tool.Call, next middleware.ToolFunc) (tool.Result, error) {
	w.note("tool")
	return next(ctx, c)
}

func (w whole) OnAgentStart(context.Context, *middleware.SessionStart) error {
	w.note("start")
	return nil
}

func (w whole) OnAgentStop(context.Context, middleware.SessionEnd) error { w.note("stop"); return nil }

// bare is one with none of them.
type bare struct{}

func (bare) Name() string  { return "bare" }
func (bare) Priority() int { return 700 }

func TestOf(t *testing.T) {
	var d diary
	s := build(t, middleware.Of(whole{&d}))
	_ = s.Start(t.Context(), &middleware.SessionStart{})
	_, _ = s.Model(func(context.Context, *middleware.Turn) (model.Response, error) {
		d.note("model's core")
		return model.Response{}, nil
	})(t.Context(), nil)
	_, _ = s.Tool(func(context.Context, *tool.Call) (tool.Result, error) {
		d.note("tool's core")
		return tool.Result{}, nil
	})(t.Context(), nil)
	_ = s.Stop(t.Context(), middleware.SessionEnd{})
	expect(t, []string{"start", "model", "model's core", "tool", "tool's core", "stop"}, d)
	if l := middleware.Of(whole{&d}); l.Priority != 600 || len(l.Tools) != 1 || l.Instructions != "Do it." {
		t.Errorf("Of(whole) = %+v", l)
	}

	l := middleware.Of(bare{})
	if l.Name != "bare" || l.Priority != 700 || l.Tools != nil || l.Model != nil || l.Tool != nil || l.Start != nil || l.Stop != nil {
		t.Errorf("Of(bare) = %+v", l)
	}
}
