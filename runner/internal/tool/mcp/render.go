package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A page is what a model reads, up to a bound.
type page struct {
	text strings.Builder
	left int64 // bytes that are not shown
}

// add adds a text, apart from what is there.
func (p *page) add(text string) {
	if p.text.Len() > 0 {
		text = "\n" + text
	}
	room := max(maxResult-p.text.Len(), 0)
	for room < len(text) && room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	room = min(room, len(text))
	p.text.WriteString(text[:room])
	p.left += int64(len(text) - room)
}

func (p *page) addf(format string, args ...any) { p.add(fmt.Sprintf(format, args...)) }

func (p *page) String() string {
	if p.left > 0 {
		return fmt.Sprintf("%s\n[cut: %s more]", p.text.String(), size(p.left))
	}
	return p.text.String()
}

// resultOf is the answer to a call as the model reads it.
func resultOf(answer *mcp.CallToolResult) tool.Result {
	if answer.NeedsInput() {
		return tool.Fail("The tool asks for something that only a person could give it here, and was not given it.")
	}
	var p page
	for _, c := range answer.Content {
		p.content(c)
	}
	if p.text.Len() == 0 && answer.StructuredContent != nil {
		if raw, err := json.Marshal(answer.StructuredContent); err == nil {
			p.add(string(raw))
		}
	}
	switch text := p.String(); {
	case answer.IsError && text == "":
		return tool.Fail("The tool failed and did not say why.")
	case answer.IsError:
		return tool.Fail(text)
	case text == "":
		return tool.Result{Text: "[done; the tool answered nothing]"}
	default:
		return tool.Result{Text: text}
	}
}

// content adds a part of an answer.
func (p *page) content(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		p.add(c.Text)
	case *mcp.ImageContent:
		p.addf("[image %s, %s]", line(c.MIMEType, 64), size(int64(len(c.Data))))
	case *mcp.AudioContent:
		p.addf("[audio %s, %s]", line(c.MIMEType, 64), size(int64(len(c.Data))))
	case *mcp.ResourceLink:
		p.add("[resource " + about(c.URI, c.Name, c.MIMEType, c.Description) + "]")
	case *mcp.EmbeddedResource:
		p.resource(c.Resource)
	default:
		p.add("[something that cannot be shown]")
	}
}

// resource adds what is in a resource.
func (p *page) resource(r *mcp.ResourceContents) {
	switch {
	case r == nil:
	case r.Blob != nil:
		p.addf("[resource %s, %s]", about(r.URI, "", r.MIMEType, ""), size(int64(len(r.Blob))))
	default:
		p.addf("[resource %s]", about(r.URI, "", r.MIMEType, ""))
		p.add(r.Text)
	}
}

// about is a line on something that a server has.
func about(uri, name, media, description string) string {
	text := line(uri, 2<<10)
	if name != "" {
		text += " " + line(name, maxQuote)
	}
	if media != "" {
		text += " (" + line(media, 64) + ")"
	}
	if description != "" {
		text += ": " + line(description, maxQuote)
	}
	return text
}
