package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A catalog is what a server offered when it was first asked.
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

// survey reads the catalog of a server.
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
				s.Log(fmt.Sprintf("the tool %q is left out: it has no name or a second one has it, or there are too many", quote.Line(t.Name, 64)))
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

// page reads one page of the tools of a server. It leaves out tools that must be called as tasks.
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
		s.Log(fmt.Sprintf("the tool %q is left out: it must be called as a task (execution.taskSupport is required), which is not supported", quote.Line(t.Name, 64)))
		return true
	})
	return page, nil
}

// read returns an offer for a tool of a server.
func read(t *mcp.Tool) (offer, bool) {
	o := offer{name: t.Name, description: quote.Clip(cmp.Or(t.Description, t.Title, t.Name), maxDescription), input: inputOf(t.InputSchema)}
	if a := t.Annotations; a != nil {
		o.readOnly, o.idempotent = a.ReadOnlyHint, a.IdempotentHint
	}
	return o, t.Name != "" && len(t.Name) <= 256
}

// anything is the schema of a tool whose own schema cannot be used.
const anything = `{"type":"object","properties":{}}`

// inputOf returns the schema of a tool in the form that providers require: of type object, with properties. A schema
// that is missing or too large is replaced by a schema that accepts anything; the server validates the arguments
// itself.
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

// The tools for resources and prompts.
const (
	listResources = "list_resources"
	readResource  = "read_resource"
	listPrompts   = "list_prompts"
	getPrompt     = "get_prompt"
)

// maxListed bounds how many entries one list has.
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

// reader makes a tool that reads. Only one of them runs at a time: the library caches answers, and its cache is emptied
// after each, so that a server cannot fill our memory.
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

func (s *session) resources(ctx context.Context, in listIn) (tool.Result, error) {
	answer, err := s.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: in.Cursor})
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
		s.templates(ctx, &p)
	}
	return listed(p.String(), "There are no resources."), nil
}

// templates adds the templates of URIs, if the server has any.
func (s *session) templates(ctx context.Context, p *page) {
	answer, err := s.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{})
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

func (s *session) resource(ctx context.Context, in readIn) (tool.Result, error) {
	params := &mcp.ReadResourceParams{URI: in.URI}
	addTrace(ctx, params)
	answer, err := s.client.ReadResource(ctx, params)
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

func (s *session) prompts(ctx context.Context, in listIn) (tool.Result, error) {
	answer, err := s.client.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: in.Cursor})
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

// arguments returns the arguments of a prompt, in one line.
func arguments(of []*mcp.PromptArgument) string {
	var b strings.Builder
	for _, a := range of[:min(len(of), 32)] {
		if a == nil {
			continue
		}
		b.WriteString("\n  " + quote.Line(a.Name, 128))
		if a.Required {
			b.WriteString(" (required)")
		}
		if a.Description != "" {
			b.WriteString(": " + quote.Line(a.Description, maxQuote))
		}
	}
	return b.String()
}

func (s *session) prompt(ctx context.Context, in promptIn) (tool.Result, error) {
	params := &mcp.GetPromptParams{Name: in.Name, Arguments: in.Arguments}
	addTrace(ctx, params)
	answer, err := s.client.GetPrompt(ctx, params)
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

// more describes how to get the rest of a list.
func more(p *page, n int, cursor string) {
	if n > maxListed {
		p.addf("[%d more are not shown]", n-maxListed)
	}
	if cursor != "" {
		quoted, _ := json.Marshal(quote.Clip(cursor, 2<<10)) // a string: cannot fail
		p.addf("[there is more: go on with cursor %s]", quoted)
	}
}

// listed returns the list, or nothing if it is empty.
func listed(text, nothing string) tool.Result {
	if text != "" {
		return tool.Result{Text: text}
	}
	return tool.Result{Text: fmt.Sprintf("[%s]", nothing)}
}

// maxBatch is the maximum number of messages in one array.
const maxBatch = 256

// decode decodes a message, or several in an array, which old servers send.
func decode(text []byte) ([]jsonrpc.Message, error) {
	if text[0] != '[' {
		m, err := message(text)
		if err != nil {
			return nil, err
		}
		return []jsonrpc.Message{m}, nil
	}
	parts, err := elements(text)
	if err != nil {
		return nil, err
	}
	all := make([]jsonrpc.Message, 0, len(parts))
	for _, part := range parts {
		m, err := message(part)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// message decodes a message. Only responses are passed to the library, because decoding is so expensive there that a
// server could keep it busy with other messages.
func message(text []byte) (jsonrpc.Message, error) {
	var m struct {
		ID     any             `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.Method == nil {
		return jsonrpc.DecodeMessage(text)
	}
	id, err := jsonrpc.MakeID(m.ID)
	return &jsonrpc.Request{ID: id, Method: *m.Method, Params: m.Params}, err
}

// elements returns the elements of a JSON array.
func elements(text []byte) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for dec.More() {
		if len(all) == maxBatch {
			return nil, errors.New("too many messages at once")
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// progressLine returns progress as a line for users.
func progressLine(message string, done, total float64) string {
	text := quote.Line(message, maxQuote)
	switch {
	case total > 0:
		text = fmt.Sprintf("%s (%g/%g)", text, done, total)
	case text == "":
		text = fmt.Sprintf("(%g)", done)
	}
	return string(bytes.TrimSpace([]byte(text)))
}
