package middleware_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:noinline
func core(_ context.Context, c *tool.Call) (tool.Result, error) {
	return tool.Result{Text: c.Name}, nil
}

// passing layers do nothing but pass a call on.
func passing(n int) []middleware.Layer {
	layers := make([]middleware.Layer, n)
	for i := range layers {
		layers[i] = middleware.Layer{Name: strconv.Itoa(i), Priority: i, Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) { return next(ctx, c) }
		}}
	}
	return layers
}

// The onion itself: one call through ten layers, against ten calls without any
// made in the same run.
func BenchmarkToolCall(b *testing.B) {
	ctx, c := b.Context(), &tool.Call{Name: "read"}
	for _, layers := range []int{1, 5, 10} {
		b.Run("through "+strconv.Itoa(layers)+" layers", func(b *testing.B) {
			s, err := middleware.Build(passing(layers)...)
			if err != nil {
				b.Fatal(err)
			}
			call := s.Tool(core)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = call(ctx, c)
			}
		})
	}
	b.Run("ten times directly", func(b *testing.B) {
		call := middleware.ToolFunc(core)
		b.ReportAllocs()
		for b.Loop() {
			for range 10 {
				_, _ = call(ctx, c)
			}
		}
	})
	// What some frameworks do for each call.
	b.Run("through 10 layers composed for the call", func(b *testing.B) {
		s, err := middleware.Build(passing(10)...)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Tool(core)(ctx, c)
		}
	})
}

// Copying the list of six tools of one layer. No call is made and no layer is
// passed: what is published elsewhere as the cost of a middleware stack is this.
func BenchmarkToolsOfOneLayer(b *testing.B) {
	six := []tool.Tool{named("ls"), named("read"), named("write"), named("edit"), named("glob"), named("grep")}
	s, err := middleware.Build(middleware.Layer{Name: "files", Tools: six})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Tools()
	}
}
