package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A tracedServer has a tool, a resource and a prompt, and keeps the trace context of requests.
type tracedServer struct {
	mu           sync.Mutex
	meta, header map[string]string // of a request, by method
}

func (s *tracedServer) library() *sdk.Server {
	library := library()
	library.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if value, has := r.GetParams().GetMeta()["traceparent"].(string); has {
				s.meta[method] = value
			}
			if extra := r.GetExtra(); extra != nil && extra.Header.Get("Traceparent") != "" {
				s.header[method] = extra.Header.Get("Traceparent")
			}
			return next(ctx, method, r)
		}
	})
	return library
}

func TestCallsCarryTheTraceContext(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, traceparent := range map[string]func(string) string{
		"with traces":    func(callID string) string { return trace + callID },
		"without traces": nil,
	} {
		t.Run(name, func(t *testing.T) {
			seen := &tracedServer{meta: map[string]string{}, header: map[string]string{}}
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return seen.library() }, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true})
			s, _ := connect(t, handler, func(o *Options) { o.Traceparent, o.Toolset.Resources, o.Toolset.Prompts = traceparent, true, true })
			for home, args := range map[string]string{"add": `{"a":2,"b":3}`, readResource: `{"uri":"note://1"}`, getPrompt: `{"name":"greet","arguments":{"who":"Ann"}}`} {
				result, err := named(t, s, home).Call(t.Context(), tool.Call{ID: "-" + home, Args: json.RawMessage(args), Emit: func(string) {}})
				if err != nil || result.Error != nil {
					t.Fatalf("calling %s: %+v, %v", home, result, err)
				}
			}
			want := map[string]string{}
			if traceparent != nil {
				want = map[string]string{"tools/call": trace + "-add", "resources/read": trace + "-" + readResource, "prompts/get": trace + "-" + getPrompt}
			}
			if !maps.Equal(seen.meta, want) || !maps.Equal(seen.header, want) {
				t.Errorf("_meta has %v and the headers %v, want %v", seen.meta, seen.header, want)
			}
		})
	}
}

// A program gets it with the request: there is no header.
func TestCallsOfAProgramCarryTheTraceContext(t *testing.T) {
	seen := &tracedServer{meta: map[string]string{}, header: map[string]string{}}
	s, err := Connect(t.Context(), Options{
		Toolset: stdio(), Sandbox: always(official(seen.library())),
		Traceparent: func(callID string) string { return "00-" + callID },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	use(t, s, "add", `{"a":2,"b":3}`)
	if got := slices.Collect(maps.Values(seen.meta)); !slices.Equal(got, []string{"00-"}) {
		t.Errorf("_meta has %v", seen.meta)
	}
}
