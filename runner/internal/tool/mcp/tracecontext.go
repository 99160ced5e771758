package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// traceparent is the name of the W3C trace context, as a header and in the _meta of a request.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
const traceparent = "traceparent"

// traceKey is the key of the trace context in a context.
type traceKey struct{}

// withTrace returns a context for the requests of a tool call.
func (s *Server) withTrace(ctx context.Context, callID string) context.Context {
	if s.Traceparent == nil {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, s.Traceparent(callID))
}

func traceOf(ctx context.Context) string {
	value, _ := ctx.Value(traceKey{}).(string)
	return value
}

// addTrace adds the trace context to the _meta of a request.
func addTrace(ctx context.Context, params mcp.Params) {
	value := traceOf(ctx)
	if value == "" {
		return
	}
	meta := params.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	meta[traceparent] = value
	params.SetMeta(meta)
}
