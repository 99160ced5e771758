package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A page is a text for the model, up to a bound. Unknown JSON comes last: it gets the room that is left.
type page struct {
	parts   []pagePart
	used    int   // bytes of the known parts
	unknown int   // bytes of the other parts
	left    int64 // bytes that are not shown
	// files are images and documents that the model is shown; moreFiles counts further ones.
	files     [][]byte
	moreFiles int
}

// A pagePart is one text of a page.
type pagePart struct {
	text    string
	unknown bool
}

// add adds a text, separated from the previous one.
func (p *page) add(text string) {
	shown := clipTo(text, maxResult-p.used)
	p.left += int64(len(text) - len(shown))
	if shown != "" {
		p.used += len(shown) + 1
		p.parts = append(p.parts, pagePart{text: shown})
	}
}

// isFull reports whether there is no room for another character.
func (p *page) isFull() bool { return p.used > maxResult-utf8.UTFMax }

func (p *page) addf(format string, args ...any) { p.add(fmt.Sprintf(format, args...)) }

// addUnknown adds a line and JSON whose meaning only the server knows.
func (p *page) addUnknown(about string, raw json.RawMessage) {
	p.addf("[%s]", about)
	text := compact(raw)
	shown := clipTo(text, maxResult-p.unknown)
	p.left += int64(len(text) - len(shown))
	if shown != "" {
		p.unknown += len(shown)
		p.parts = append(p.parts, pagePart{text: shown, unknown: true})
	}
}

func (p *page) String() string {
	var text strings.Builder
	left, room := p.left, maxResult-p.used
	for _, part := range p.parts {
		shown := part.text
		if part.unknown {
			shown = clipTo(shown, room)
			room -= len(shown) + 1
			left += int64(len(part.text) - len(shown))
		}
		if text.Len() > 0 && shown != "" {
			text.WriteByte('\n')
		}
		text.WriteString(shown)
	}
	if left > 0 {
		fmt.Fprintf(&text, "\n[cut: %s more]", size(left))
	}
	if p.moreFiles > 0 {
		fmt.Fprintf(&text, "\n[%d more files are not shown: at most %d are at once]", p.moreFiles, model.MaxFiles)
	}
	return text.String()
}

// clipTo returns the beginning of a text, at most n bytes, cut at a character.
func clipTo(text string, n int) string {
	n = min(max(n, 0), len(text))
	for n < len(text) && n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// resultOf returns the result of a call for the model. The guard has rendered it as one text, with its images and
// documents.
func resultOf(answer *mcp.CallToolResult) tool.Result {
	if answer.NeedsInput() {
		return tool.Fail("The tool asks for something that only a person could give it here, and was not given it.")
	}
	text := ""
	if len(answer.Content) > 0 {
		text = textOf(answer.Content[0])
	}
	result := tool.Result{Text: text}
	switch {
	case answer.IsError && text == "":
		result = tool.Fail("The tool failed and did not say why.")
	case answer.IsError:
		result = tool.Fail(text)
	case text == "":
		result.Text = "[done; the tool answered nothing]"
	}
	for _, c := range answer.Content[min(1, len(answer.Content)):] {
		addFile(&result, c)
	}
	return result
}

// addFile adds a file that the guard passed on to a result.
func addFile(result *tool.Result, c mcp.Content) {
	if file, is := c.(*mcp.ImageContent); is {
		result.Files = append(result.Files, fileOf(len(result.Files), file.Data))
	}
}

// fileOf returns the n-th file of a result, from 0. Servers give them no names.
func fileOf(n int, data []byte) tool.File {
	return tool.File{Name: fmt.Sprintf("result-%d", n+1), Data: data}
}

// textOf returns the text that the guard made.
func textOf(c mcp.Content) string {
	if text, is := c.(*mcp.TextContent); is {
		return text.Text
	}
	return ""
}

// about returns a line about an offer of a server.
func about(uri, name, media, description string) string {
	text := quote.Line(uri, 2<<10)
	if name != "" {
		text += " " + quote.Line(name, maxQuote)
	}
	if media != "" {
		text += " (" + quote.Line(media, 64) + ")"
	}
	if description != "" {
		text += ": " + quote.Line(description, maxQuote)
	}
	return text
}
