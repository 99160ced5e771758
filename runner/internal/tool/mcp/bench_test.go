package mcp

import (
	"context"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A call over the streams of a program, whose answer costs nothing.
func BenchmarkCall(b *testing.B) {
	s, err := Connect(context.Background(), Options{Toolset: stdio(), Sandbox: always(scripted(plain))})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	tools, err := s.Tools(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tools[0].Call(b.Context(), tool.Call{Args: []byte(`{}`), Emit: func(string) {}}); err != nil {
			b.Fatal(err)
		}
	}
}
