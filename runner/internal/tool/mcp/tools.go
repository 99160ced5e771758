package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/toolname"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A remote tool is one that a server executes.
type remote struct {
	tool.Tool
	home string // what it is called at home
}

// Tools are the tools of the server, sorted by name: only those of allow, where
// there is one, and none of deny, both as the server calls them. What is allowed
// but not there is a *NotOfferedError.
func (s *Server) Tools(allow, deny []string) ([]tool.Tool, error) {
	if s.Note() != "" {
		return nil, nil
	}
	all := s.all()
	if missing := without(allow, all); len(missing) > 0 {
		offered := make([]string, len(all))
		for i, t := range all {
			offered[i] = t.home
		}
		return nil, &NotOfferedError{
			Toolset: s.Toolset.Name, Missing: missing, Offered: offered,
			TaskOnly: slices.DeleteFunc(slices.Clone(missing), func(n string) bool { return !slices.Contains(s.offered.taskOnly, n) }),
		}
	}
	var tools []tool.Tool
	for _, t := range all {
		if len(allow) > 0 && !slices.Contains(allow, t.home) || slices.Contains(deny, t.home) {
			continue
		}
		if len(tools) == maxTools {
			s.Log(fmt.Sprintf("it offers more than %d tools; the rest is left out; list the tools that you need in allow", maxTools))
			break
		}
		tools = append(tools, t.Tool)
	}
	return tools, nil
}

// without are the names that no tool has.
func without(names []string, all []*remote) []string {
	var missing []string
	for _, n := range names {
		if !slices.ContainsFunc(all, func(t *remote) bool { return t.home == n }) {
			missing = append(missing, n)
		}
	}
	return missing
}

// all makes each tool that there is. Tools of ours go before those of the server
// that have the same name.
func (s *Server) all() []*remote {
	own := s.resourceAndPromptTools()
	home := make([]string, 0, len(own)+len(s.offered.tools))
	for _, t := range own {
		home = append(home, t.home)
	}
	tools := own
	for _, o := range s.offered.tools {
		if slices.ContainsFunc(own, func(t *remote) bool { return t.home == o.name }) {
			s.Log(fmt.Sprintf("the tool %q is left out: it has the name of a tool that reads resources or prompts", o.name))
			continue
		}
		home = append(home, o.name)
		tools = append(tools, s.offer(o))
	}
	names, seen := toolname.Of(s.Toolset.Name, home), map[string]bool{}
	tools = slices.DeleteFunc(tools, func(t *remote) bool {
		t.Name = names[slices.Index(home, t.home)]
		known := t.Internal.Facts()
		known.Origin = facts.Origin{Toolset: s.Toolset.Name, Tool: t.home}
		t.Internal = known.Internal()
		taken := seen[t.Name] // made so on purpose
		seen[t.Name] = true
		return taken
	})
	slices.SortFunc(tools, func(a, b *remote) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// offer makes a tool of what a server offers.
func (s *Server) offer(o offer) *remote {
	effect := s.effectOf(o)
	return &remote{home: o.name, Tool: tool.Tool{
		Spec: s.spec(tool.Spec{Description: o.description, Input: o.input, Effect: effect}),
		Call: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			return s.callTool(ctx, call, effect, func(ctx context.Context, cs *session, token string) (tool.Result, error) {
				params := &mcp.CallToolParams{Name: o.name, Arguments: call.Args}
				params.SetProgressToken(token)
				addTrace(ctx, params)
				answer, err := cs.client.CallTool(ctx, params)
				if err != nil {
					return tool.Result{}, err
				}
				return resultOf(answer), nil
			})
		},
	}}
}

// spec completes the Spec of a tool of the server. The time of a call is bounded here,
// where its progress is known; Timeout is for the case that this fails.
func (s *Server) spec(spec tool.Spec) tool.Spec {
	known := facts.Facts{Foreign: true}
	if s.Toolset.HTTP != nil {
		known.Endpoint = facts.Endpoint{Name: "toolset " + s.Toolset.Name, Field: s.field() + " of Toolset " + s.Toolset.Name}
	}
	spec.Concurrency, spec.Timeout, spec.Internal = tool.Parallel, maxCall+s.ConnectTimeout, known.Internal()
	return spec
}

// effectOf returns the effect of a tool: Once, unless the Toolset, or a hint of a server
// that it trusts, says otherwise.
func (s *Server) effectOf(o offer) tool.Effect {
	switch {
	case slices.Contains(s.Toolset.ReadOnly, o.name), s.Toolset.TrustHints && o.readOnly:
		return tool.ReadOnly
	case slices.Contains(s.Toolset.Idempotent, o.name), s.Toolset.TrustHints && o.idempotent:
		return tool.Idempotent
	}
	return tool.Once
}
