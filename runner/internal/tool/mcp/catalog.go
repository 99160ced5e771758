package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A catalog is what a server offers, as it was asked first.
type catalog struct {
	tools              []offer
	taskOnly           []string // names of tools that must be called as tasks
	resources, prompts bool
	instructions       string // how the server wants to be used
}

// An offer is one tool of a server.
type offer struct {
	name, description    string
	input                json.RawMessage
	readOnly, idempotent bool // as the server says
}

// survey asks a server what it offers.
func (s *Server) survey(ctx context.Context, cs *session) error {
	var can mcp.ServerCapabilities
	begun := cs.client.InitializeResult()
	if begun != nil && begun.Capabilities != nil {
		can = *begun.Capabilities
	}
	found := catalog{
		instructions: s.instructionsIn(begun),
		resources:    s.Toolset.Resources && can.Resources != nil,
		prompts:      s.Toolset.Prompts && can.Prompts != nil,
	}
	if s.Toolset.Resources && !found.resources || s.Toolset.Prompts && !found.prompts {
		s.Log("the Toolset offers resources or prompts, which the server does not have; there are no tools for them")
	}
	if !s.Toolset.NoTools && can.Tools != nil {
		tools, err := s.list(ctx, cs)
		if err != nil {
			return fmt.Errorf("listing its tools: %w", err)
		}
		found.tools = tools
		found.taskOnly = cs.guard.taskOnly()
	}
	s.offered = found
	return nil
}

// list reads the tools of a server, page by page.
func (s *Server) list(ctx context.Context, cs *session) ([]offer, error) {
	var (
		all    []offer
		seen   = map[string]bool{}
		cursor string
		room   = maxCatalog
	)
	for range maxPages {
		page, err := s.page(ctx, cs, cursor)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			o, ok := read(t)
			if room -= len(o.input) + len(o.description); !ok || seen[o.name] || room < 0 || len(all) == maxOffered {
				s.Log(fmt.Sprintf("the tool %q is left out: it has no name or a second one has it, or there are too many", line(t.Name, 64)))
				continue
			}
			seen[o.name] = true
			all = append(all, o)
		}
		if page.NextCursor == "" || page.NextCursor == cursor || room < 0 || len(all) == maxOffered {
			break
		}
		cursor = page.NextCursor
	}
	slices.SortFunc(all, func(a, b offer) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// page reads one page of the tools of a server, without those that must be called
// as tasks.
func (s *Server) page(ctx context.Context, cs *session, cursor string) (page *mcp.ListToolsResult, err error) {
	err = safely(func() error {
		page, err = cs.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		return err
	})
	if err != nil {
		return nil, err
	}
	taskOnly := cs.guard.taskOnly()
	page.Tools = slices.DeleteFunc(page.Tools, func(t *mcp.Tool) bool {
		if !slices.Contains(taskOnly, t.Name) {
			return false
		}
		s.Log(fmt.Sprintf("the tool %q is left out: it must be called as a task (execution.taskSupport is required), which is not supported", line(t.Name, 64)))
		return true
	})
	return page, nil
}

// read makes an offer of what a server says of a tool.
func read(t *mcp.Tool) (offer, bool) {
	o := offer{name: t.Name, description: clip(cmp.Or(t.Description, t.Title, t.Name), maxDescription), input: inputOf(t.InputSchema)}
	if a := t.Annotations; a != nil {
		o.readOnly, o.idempotent = a.ReadOnlyHint, a.IdempotentHint
	}
	return o, t.Name != "" && len(t.Name) <= 256
}

// anything is the schema of a tool whose own cannot be shown.
const anything = `{"type":"object","properties":{}}`

// inputOf is the schema of a tool as providers take it: of type object, with
// properties. One that is too large, or none, takes anything; the server checks
// the arguments itself.
func inputOf(schema any) json.RawMessage {
	members, ok := schema.(map[string]any)
	if !ok {
		return json.RawMessage(anything)
	}
	if kind, ok := members["type"].(string); ok && !strings.EqualFold(kind, "object") {
		return json.RawMessage(anything)
	}
	if kind, isList := members["type"].([]any); !isList || !slices.Contains(kind, any("object")) {
		members["type"] = "object"
	}
	if _, ok := members["properties"].(map[string]any); !ok {
		members["properties"] = map[string]any{}
	}
	raw, err := json.Marshal(members)
	if err != nil || len(raw) > maxSchema {
		return json.RawMessage(anything)
	}
	return raw
}
