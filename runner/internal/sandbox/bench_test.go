//go:build linux

package sandbox_test

import (
	"context"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// BenchmarkTrue is a command from its start to its end.
func BenchmarkTrue(b *testing.B) {
	for name, option := range map[string]sandboxtest.Option{"confined": sandboxtest.Confined(), "open": sandboxtest.Environ()} {
		b.Run(name, func(b *testing.B) {
			c := sandbox.Dial(sandboxtest.Start(b, option).Socket)
			defer c.Close()
			for b.Loop() {
				p, err := c.Start(b.Context(), sandbox.Command{Args: []string{"true"}})
				if err != nil {
					b.Fatal(err)
				}
				drain(b.Context(), p)
			}
		})
	}
}

// BenchmarkOutput is a program that writes as fast as it can.
func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	c := sandbox.Dial(sandboxtest.Start(b, sandboxtest.Confined()).Socket)
	defer c.Close()
	b.SetBytes(size)
	for b.Loop() {
		p, err := c.Start(b.Context(), sandbox.Command{Args: []string{"head", "-c", "67108864", "/dev/zero"}})
		if err != nil {
			b.Fatal(err)
		}
		if n := drain(b.Context(), p); n != size {
			b.Fatalf("%d bytes", n)
		}
	}
}

func drain(ctx context.Context, p sandbox.Process) int {
	n := 0
	for chunk := range p.Output() {
		n += len(chunk.Data)
	}
	_, _ = p.Wait(ctx)
	return n
}
