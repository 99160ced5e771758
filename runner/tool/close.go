package tool

import (
	"context"
	"encoding/json"
	"io"
)

// WithClose makes a tool that holds something, for example connections. f is called once:
// when its session has ended, or, for the first session of an Agent, when the attempt ends.
// A tool that a factory returns for each session is closed when the attempt ends. A type that implements [Tool] and [io.Closer] needs no WithClose.
func WithClose(t Tool, f func() error) Tool { return &closer{Tool: t, close: f} }

type closer struct {
	Tool
	close func() error
}

// Close implements [io.Closer].
func (c *closer) Close() error { return c.close() }

// EffectOf implements [Classifier] for a tool that does.
func (c *closer) EffectOf(args json.RawMessage) Effect { return EffectOf(c.Tool, args) }

// Canonical implements [Canonicalizer] for a tool that does.
func (c *closer) Canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *Error) {
	return Canonical(ctx, c.Tool, args)
}

// Close implements [io.Closer] for a tool that does.
func (c *canonicalizer) Close() error {
	if inner, ok := c.Tool.(io.Closer); ok {
		return inner.Close()
	}
	return nil
}
