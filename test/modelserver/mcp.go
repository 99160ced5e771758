package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newMCP returns an MCP server over HTTP, for the berths of a harbor. It refuses requests without the key as bearer
// token; an empty key refuses none.
func newMCP(key string) http.Handler {
	server := newHarborServer()
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key != "" && r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "show the key as a bearer token", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

type bookIn struct {
	Berth int    `json:"berth" jsonschema:"the number of the berth"`
	Ship  string `json:"ship" jsonschema:"the name of the ship"`
}

// newHarborServer returns a server with tools that read and write, a tool that agents should not be given, and a
// resource.
func newHarborServer() *mcp.Server {
	var mu sync.Mutex
	booked := map[int]string{}
	server := mcp.NewServer(&mcp.Implementation{Name: "harbor", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "berths", Description: "Lists the berths 7 to 9, and whose they are."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			mu.Lock()
			defer mu.Unlock()
			var lines []string
			for berth := 7; berth <= 9; berth++ {
				who := booked[berth]
				if who == "" {
					who = "free"
				}
				lines = append(lines, fmt.Sprintf("berth %d: %s", berth, who))
			}
			return textResult(strings.Join(lines, "\n")), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "book", Description: "Books a berth for a ship."},
		func(_ context.Context, _ *mcp.CallToolRequest, in bookIn) (*mcp.CallToolResult, any, error) {
			mu.Lock()
			defer mu.Unlock()
			if booked[in.Berth] != "" {
				return nil, nil, fmt.Errorf("berth %d is %s's", in.Berth, booked[in.Berth])
			}
			booked[in.Berth] = in.Ship
			return textResult(fmt.Sprintf("berth %d is %s's now", in.Berth, in.Ship)), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "close_harbor", Description: "Closes the harbor."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return textResult("the harbor is closed"), nil, nil
		})
	server.AddResource(&mcp.Resource{Name: "rules", URI: "harbor://rules", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: "harbor://rules", MIMEType: "text/plain", Text: "No ship of more than 90 m at berth 7."},
			}}, nil
		})
	return server
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
