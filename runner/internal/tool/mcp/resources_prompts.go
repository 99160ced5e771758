package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The tools that are made of resources and prompts.
const (
	listResources = "list_resources"
	readResource  = "read_resource"
	listPrompts   = "list_prompts"
	getPrompt     = "get_prompt"
)

// maxListed bounds what is listed at once.
const maxListed = 500

type listIn struct {
	Cursor string `json:"cursor,omitempty" jsonschema:"where to go on, as the list before said; empty: at the beginning"`
}

type readIn struct {
	URI string `json:"uri" jsonschema:"the URI of the resource"`
}

type promptIn struct {
	Name      string            `json:"name" jsonschema:"the name of the prompt"`
	Arguments map[string]string `json:"arguments,omitempty" jsonschema:"the arguments of the prompt, by name"`
}

// resourceAndPromptTools returns the tools for the resources and prompts of a server.
func (s *Server) resourceAndPromptTools() []*remote {
	var all []*remote
	if s.offered.resources {
		all = append(all,
			reader(s, listResources, "Lists the resources of "+s.Toolset.Name+", and the templates of their URIs.", (*session).resources),
			reader(s, readResource, "Reads a resource of "+s.Toolset.Name+" by its URI.", (*session).resource))
	}
	if s.offered.prompts {
		all = append(all,
			reader(s, listPrompts, "Lists the prompts of "+s.Toolset.Name+" with their arguments.", (*session).prompts),
			reader(s, getPrompt, "Gets a prompt of "+s.Toolset.Name+" with its arguments filled in.", (*session).prompt))
	}
	return all
}

// reader makes a tool that reads. Only one of them reads at once: what the
// library keeps of an answer is emptied when it has been shown, so that a server
// cannot fill our memory with what it says may be kept.
func reader[In any](s *Server, home, page string, read func(*session, context.Context, In) (tool.Result, error)) *remote {
	t := tool.Typed(s.spec(tool.Spec{Name: home, Description: page, Effect: tool.ReadOnly}),
		func(ctx context.Context, call tool.Call, in In) (tool.Result, error) {
			return s.callTool(ctx, call, tool.ReadOnly, func(ctx context.Context, cs *session, _ string) (tool.Result, error) {
				select {
				case s.reading <- struct{}{}:
					defer func() { <-s.reading }()
				case <-ctx.Done():
					return tool.Result{}, context.Cause(ctx)
				}
				return read(cs, ctx, in)
			})
		})
	return &remote{home: home, Tool: t}
}

func (cs *session) resources(ctx context.Context, in listIn) (tool.Result, error) {
	answer, err := cs.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: in.Cursor})
	if err != nil {
		return tool.Result{}, err
	}
	var p page
	for _, r := range answer.Resources[:min(len(answer.Resources), maxListed)] {
		if r != nil {
			p.add(about(r.URI, r.Name, r.MIMEType, r.Description))
		}
	}
	more(&p, len(answer.Resources), answer.NextCursor)
	*answer = mcp.ListResourcesResult{}
	if in.Cursor == "" {
		cs.templates(ctx, &p)
	}
	return listed(p.String(), "There are no resources."), nil
}

// templates adds those of URIs. Not every server that has resources has them.
func (cs *session) templates(ctx context.Context, p *page) {
	answer, err := cs.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{})
	if err != nil {
		return
	}
	for _, r := range answer.ResourceTemplates[:min(len(answer.ResourceTemplates), maxListed)] {
		if r != nil {
			p.add("template " + about(r.URITemplate, r.Name, r.MIMEType, r.Description))
		}
	}
	*answer = mcp.ListResourceTemplatesResult{}
}

func (cs *session) resource(ctx context.Context, in readIn) (tool.Result, error) {
	params := &mcp.ReadResourceParams{URI: in.URI}
	addTrace(ctx, params)
	answer, err := cs.client.ReadResource(ctx, params)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { *answer = mcp.ReadResourceResult{} }()
	if answer.NeedsInput() {
		return tool.Fail("The server asks for something that only a person could give it here, and was not given it."), nil
	}
	text := ""
	if len(answer.Contents) > 0 {
		text = answer.Contents[0].Text
	}
	result := listed(text, "The resource is empty.")
	for _, c := range answer.Contents[min(1, len(answer.Contents)):] {
		result.Files = append(result.Files, fileOf(len(result.Files), c.Blob))
	}
	return result, nil
}

func (cs *session) prompts(ctx context.Context, in listIn) (tool.Result, error) {
	answer, err := cs.client.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: in.Cursor})
	if err != nil {
		return tool.Result{}, err
	}
	var p page
	for _, r := range answer.Prompts[:min(len(answer.Prompts), maxListed)] {
		if r != nil {
			p.add(about(r.Name, "", "", r.Description) + arguments(r.Arguments))
		}
	}
	more(&p, len(answer.Prompts), answer.NextCursor)
	*answer = mcp.ListPromptsResult{}
	return listed(p.String(), "There are no prompts."), nil
}

// arguments are those of a prompt, in a line.
func arguments(of []*mcp.PromptArgument) string {
	var b strings.Builder
	for _, a := range of[:min(len(of), 32)] {
		if a == nil {
			continue
		}
		b.WriteString("\n  " + line(a.Name, 128))
		if a.Required {
			b.WriteString(" (required)")
		}
		if a.Description != "" {
			b.WriteString(": " + line(a.Description, maxQuote))
		}
	}
	return b.String()
}

func (cs *session) prompt(ctx context.Context, in promptIn) (tool.Result, error) {
	params := &mcp.GetPromptParams{Name: in.Name, Arguments: in.Arguments}
	addTrace(ctx, params)
	answer, err := cs.client.GetPrompt(ctx, params)
	if err != nil {
		return tool.Result{}, err
	}
	if answer.NeedsInput() {
		return tool.Fail("The server asks for something that only a person could give it here, and was not given it."), nil
	}
	text := ""
	if len(answer.Messages) > 0 {
		text = textOf(answer.Messages[0].Content)
	}
	result := listed(text, "The prompt is empty.")
	for _, m := range answer.Messages[min(1, len(answer.Messages)):] {
		addFile(&result, m.Content)
	}
	return result, nil
}

// more says how a list goes on.
func more(p *page, n int, cursor string) {
	if n > maxListed {
		p.addf("[%d more are not shown]", n-maxListed)
	}
	if cursor != "" {
		quoted, _ := json.Marshal(clip(cursor, 2<<10)) // a string: cannot fail
		p.addf("[there is more: go on with cursor %s]", quoted)
	}
}

// listed is what was read, or that there is nothing.
func listed(text, nothing string) tool.Result {
	if text != "" {
		return tool.Result{Text: text}
	}
	return tool.Result{Text: fmt.Sprintf("[%s]", nothing)}
}
