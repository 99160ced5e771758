package attempt

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// soakTools are the tools of the soak: a request to the server of effects for each class of
// effects. A Toolset does not reach the loopback interface.
func soakTools(url string) option {
	return withTool("outside", func(_ context.Context, spec registry.ToolSpec) ([]tool.Tool, error) {
		var tools []tool.Tool
		for method, effect := range map[string]tool.Effect{http.MethodPost: tool.Once, http.MethodPut: tool.Idempotent, http.MethodGet: tool.ReadOnly} {
			s := tool.Spec{Name: "outside_" + method, Description: "Has an effect.", Effect: effect, Concurrency: tool.Parallel}
			tools = append(tools, tool.Typed(s, func(ctx context.Context, call tool.Call, in struct {
				ID string `json:"id"`
			},
			) (tool.Result, error) {
				return soakRequest(ctx, method, url+"/?id="+in.ID, spec.Run.UID+"/"+call.ID)
			}))
		}
		return tools, nil
	})
}

func soakRequest(ctx context.Context, method, url, key string) (tool.Result, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return tool.Result{}, err
	}
	req.Header.Set("X-Call", key) // an Idempotency-Key would allow net/http to repeat the request
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tool.Result{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return tool.Result{Text: string(text)}, err
}
