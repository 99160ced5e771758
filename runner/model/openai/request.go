package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A request is the request of the client library, and the fields that its types lack: a temperature of 0, and the
// fields of providers.
type request struct {
	library openai.ChatCompletionRequest
	// fields are added to the body, and then patches are merged into it in their
	// order.
	fields  map[string]any
	patches []string
	// settings maps fields to the settings that they come from. messageFields are fields of messages that not every
	// provider knows.
	settings      map[string]string
	messageFields []string
}

// request returns the request in the form that the provider wants.
//
// The messages are fields, because the library's type has no null content, no marks of a prompt cache, and no data that
// providers require back. If the library wrote its own messages, and these were decoded and encoded again to add the
// rest, a resume with 20 MB of messages would take 510 ms of CPU instead of 160 ms.
func (c *client) request(req *model.Request) *request {
	p := req.Params
	messages := c.messages(req)
	r := &request{
		library: openai.ChatCompletionRequest{
			Model:         c.dialect.modelName(c.Options),
			Tools:         tools(req.Tools),
			StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		},
		fields:  map[string]any{"model": c.dialect.modelName(c.Options), "messages": messages},
		patches: []string{c.dialect.extraBody, c.dialect.reasoning.of(c.Model)[p.Reasoning], string(p.Extra)},

		settings:      httpapi.Fields(c.dialect.reasoning.of(c.Model)[p.Reasoning], httpapi.SettingReasoning),
		messageFields: fieldsOf(messages),
	}
	r.settings["temperature"], r.settings["top_p"] = httpapi.SettingTemperature, httpapi.SettingTopP
	if p.MaxOutputTokens > 0 {
		r.fields[c.dialect.maxTokens] = p.MaxOutputTokens
	}
	if c.dialect.sampled(c.Model, p.Reasoning) {
		if p.Temperature != nil {
			r.fields["temperature"] = *p.Temperature
		}
		if p.TopP != nil {
			r.fields["top_p"] = *p.TopP
		}
	}
	if c.dialect.cacheKey != "" && req.CacheKey != "" {
		r.fields[c.dialect.cacheKey] = httpapi.CacheKey(req.CacheKey)
	}
	// The library refuses some requests by the name of a model of OpenAI, which
	// another provider may accept under that name.
	if openai.NewReasoningValidator().Validate(r.library) != nil {
		r.library.Model = ""
	}
	return r
}

func tools(list []step.Tool) []openai.Tool {
	var tools []openai.Tool
	for _, t := range list {
		input := t.Input
		if len(input) == 0 {
			input = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: input,
		}})
	}
	return tools
}

// complete adds to the library's body the fields that its types lack. Equal requests get equal bytes, because the
// fields are sorted.
func (r *request) complete(written []byte) (map[string]any, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(written, &raw); err != nil {
		return nil, fmt.Errorf("decoding the client's request: %w", err)
	}
	body := maps.Clone(r.fields)
	for name, value := range raw {
		if _, ok := body[name]; !ok {
			body[name] = value
		}
	}
	for _, patch := range r.patches {
		if err := httpapi.Merge(body, patch); err != nil {
			return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
		}
	}
	return body, nil
}

// fieldsOf returns the fields of messages that not every provider knows.
func fieldsOf(list []message) []string {
	found := map[string]bool{}
	for _, m := range list {
		found[fieldReasoningContent] = found[fieldReasoningContent] || m.ReasoningContent != nil
		found[fieldReasoning] = found[fieldReasoning] || m.Reasoning != nil
		found["reasoning_details"] = found["reasoning_details"] || m.ReasoningDetails != nil
		found[fieldCacheControl] = found[fieldCacheControl] || isMarked(m.Content)
	}
	maps.DeleteFunc(found, func(_ string, sent bool) bool { return !sent })
	return slices.Sorted(maps.Keys(found))
}

// filesOfResults is the text before the images and documents of tool results.
const filesOfResults = "The files of the tool results above:"

const typeText = "text"

// A contentPart is a part of the content of a message: a text, an image or a document.
// https://platform.openai.com/docs/api-reference/chat/create
type contentPart struct {
	Type         string        `json:"type"`
	Text         string        `json:"text,omitempty"`
	ImageURL     *imageURL     `json:"image_url,omitempty"`
	File         *fileData     `json:"file,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"` // the provider caches the prompt up to it
}

type imageURL struct {
	URL string `json:"url"`
}

type fileData struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// filesOf returns the images and documents of a step, each behind a line that names it.
func (w *writer) filesOf(s step.Step) (parts []contentPart) {
	for _, p := range s.Parts {
		if p.File == nil {
			continue
		}
		part := contentPart{Type: "image_url", ImageURL: &imageURL{URL: w.conversation.DataURL(p.File)}}
		if p.Kind == step.PartDocument {
			part = contentPart{Type: "file", File: &fileData{Name: p.File.BaseName(), Data: w.conversation.DataURL(p.File)}}
		}
		parts = append(parts, contentPart{Type: typeText, Text: p.File.Line(p.Kind, "")}, part)
	}
	return parts
}

// joinContent returns the content of a message with a text and files added. content is nil for an empty message, a
// string, or parts. Without any files the result is a string.
func joinContent(content any, text string, files []contentPart) any {
	before, isText := content.(string)
	if isText {
		text = before + "\n\n" + text
	}
	parts, _ := content.([]contentPart)
	if len(parts)+len(files) == 0 {
		return text
	}
	return append(append(slices.Clip(parts), contentPart{Type: typeText, Text: text}), files...)
}

// markLastText sets cache_control on the last text of a content, which may be nil.
func markLastText(content any) []contentPart {
	text, _ := content.(string)
	parts, ok := content.([]contentPart)
	if !ok {
		parts = []contentPart{{Type: typeText, Text: text}}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].Type == typeText {
			parts[i].CacheControl = &cacheControl{Type: "ephemeral"}
			break
		}
	}
	return parts
}

// isMarked reports whether a content has cache_control.
func isMarked(content any) bool {
	parts, _ := content.([]contentPart)
	return slices.ContainsFunc(parts, func(p contentPart) bool { return p.CacheControl != nil })
}

// emptyText replaces an empty text, which many providers refuse.
const emptyText = "(no output)"

// A message is one message of a request. Its content is a text, a list of contentPart, or null.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// Fields of earlier answers that some providers require.
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ExtraContent     json.RawMessage   `json:"extra_content,omitempty"`
}

type toolCall struct {
	openai.ToolCall
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// messages returns the session as messages of a request.
func (c *client) messages(req *model.Request) []message {
	w := &writer{client: c, repairs: c.repairs.Now(), conversation: c.files.Conversation(req)}
	steps := w.conversation.Steps
	list := make([]message, 0, len(req.Steps)+1)
	if req.System != "" {
		list = append(list, message{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for i, s := range steps {
		switch s.Role {
		case step.RoleUser:
			list = w.user(list, textOf(s), w.filesOf(s))
		case step.RoleAssistant:
			list = append(list, w.assistant(s))
			list = w.results(list, s.Calls, steps[i+1:])
		case step.RoleTool: // follows its call
		}
	}
	if c.dialect.marked.of(c.Model) && !w.repairs.Dropped(fieldCacheControl) {
		mark(list)
	}
	return list
}

// A writer writes the messages of one request.
type writer struct {
	*client
	repairs httpapi.Repairs
	// thinkingField is the field in which the model sent its reasoning before; empty: it sent none that can be sent
	// back without its details.
	thinkingField string
	conversation  *httpapi.Conversation
}

// user adds a message of the user to a list. Strict chat templates take no message of the user
// right after a tool result or after another one.
func (w *writer) user(list []message, text string, files []contentPart) []message {
	if n := len(list); n > 0 {
		last := &list[n-1]
		switch last.Role {
		case openai.ChatMessageRoleUser:
			last.Content = joinContent(last.Content, text, files)
			return list
		case openai.ChatMessageRoleTool:
			list = append(list, w.assistant(step.Step{Parts: []step.Part{{Kind: step.PartText, Text: model.Interlude}}}))
		}
	}
	return append(list, message{Role: openai.ChatMessageRoleUser, Content: joinContent(nil, text, files)})
}

// textOf returns the text of a step, which is never empty.
func textOf(s step.Step) string { return cmp.Or(s.Text(), emptyText) }

type cacheControl struct {
	Type string `json:"type"`
}

// maxCachedTurns is how many turns end with cache_control: the last, for the next
// request, and the one before it, which the request before this one wrote.
const maxCachedTurns = 2

// mark sets cache_control on the system prompt, which includes the tools before it, and
// on the last turns.
func mark(list []message) {
	left := maxCachedTurns
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		ends := m.Role != openai.ChatMessageRoleAssistant && (i == len(list)-1 || list[i+1].Role == openai.ChatMessageRoleAssistant)
		if m.Role != openai.ChatMessageRoleSystem && (!ends || left == 0) {
			continue
		}
		if m.Role != openai.ChatMessageRoleSystem {
			left--
		}
		m.Content = markLastText(m.Content)
	}
}

// assistant returns an answer of a model, with the reasoning that the provider requires if the same model wrote it.
func (w *writer) assistant(s step.Step) message {
	m := message{Role: openai.ChatMessageRoleAssistant, Content: textOf(s)}
	if len(s.Calls) > 0 && s.Text() == "" {
		m.Content = nil
	}
	for _, call := range s.Calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ToolCall: openai.ToolCall{
			ID:       model.WireID(call.ID),
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: model.WireName(call.Name), Arguments: w.arguments(call.Args)},
		}})
	}
	w.addReasoning(&m, readReasoning(s.ForModel(w.Name)))
	return m
}

// arguments returns the arguments of a call as text: the recorded object, or the replacement of an invalid one.
func (c *client) arguments(args json.RawMessage) string {
	var broken string
	if json.Unmarshal(args, &broken) != nil {
		return cmp.Or(string(args), "{}")
	}
	if c.dialect.invalidArgs == argsVerbatim {
		return cmp.Or(broken, "{}")
	}
	return "{}"
}

// results adds the tool messages for calls, in the order of the calls, from the steps after
// them. Their images and documents follow as a message of the user: a tool message is text.
func (w *writer) results(list []message, calls []step.Call, after []step.Step) []message {
	end := slices.IndexFunc(after, func(s step.Step) bool { return s.Role != step.RoleTool })
	if end >= 0 {
		after = after[:end]
	}
	var files []contentPart
	for _, call := range calls {
		for _, s := range after {
			if s.CallID == call.ID {
				list = append(list, message{Role: openai.ChatMessageRoleTool, ToolCallID: model.WireID(s.CallID), Content: textOf(s)})
				files = append(files, w.filesOf(s)...)
			}
		}
	}
	if files == nil {
		return list
	}
	return w.user(list, filesOfResults, files)
}
