package main

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A bearerTransport sends a key as a bearer token.
type bearerTransport string

func (k bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// The harbor's berths are booked over MCP, by whoever shows the script's key.
func TestMCP(t *testing.T) {
	url := serve(t, "")
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	connect := func(key string) (*mcp.ClientSession, error) {
		return client.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearerTransport(key)}, DisableStandaloneSSE: true,
		}, nil)
	}
	if _, err := connect("sk-2"); err == nil {
		t.Error("another key is taken")
	}
	session, err := connect("sk-1")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	call := func(name string, args map[string]any) (string, bool) {
		t.Helper()
		answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := answer.Content[0].(*mcp.TextContent)
		return text.Text, answer.IsError
	}
	aurora := map[string]any{"berth": 8, "ship": "Aurora"}
	if got, failed := call("book", aurora); failed || got != "berth 8 is Aurora's now" {
		t.Errorf("booking says %q", got)
	}
	if got, failed := call("book", aurora); !failed {
		t.Errorf("booking again says %q", got)
	}
	if got, _ := call("berths", nil); got != "berth 7: free\nberth 8: Aurora\nberth 9: free" {
		t.Errorf("berths are %q", got)
	}
}
