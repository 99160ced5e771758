package mcp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// The methods whose results are rendered here, before the library reads them. The library (go-sdk v1.8.0) drops a whole
// result, and with it the session, if one part has an unknown kind or a field of an unexpected type
// (mcp/content.go:359). It also reads integers of structured content as 64-bit floats.
const (
	methodCall     = "tools/call"
	methodPrompt   = "prompts/get"
	methodResource = "resources/read"
)

// rendered returns a result as one text, in a form that the library reads, with the members that describe the result.
func rendered(method string, result json.RawMessage) json.RawMessage {
	answer := readObject(result)
	if resultType, ok := answer.text("resultType"); ok && resultType == "input_required" {
		return marshal(map[string]any{"resultType": resultType})
	}
	var p page
	switch method {
	case methodPrompt:
		p.messages(answer)
		messages := []any{map[string]any{"role": "user", "content": textPart(&p)}}
		for _, data := range p.files {
			messages = append(messages, map[string]any{"role": "user", "content": filePart(data)})
		}
		return marshal(map[string]any{"messages": messages})
	case methodResource:
		each(answer["contents"], p.resource)
		contents := []any{map[string]any{"uri": "", "text": p.String()}}
		for _, data := range p.files {
			contents = append(contents, map[string]any{"uri": "", "blob": data})
		}
		return marshal(map[string]any{"contents": contents})
	}
	p.toolResult(answer, result)
	content := []any{textPart(&p)}
	for _, data := range p.files {
		content = append(content, filePart(data))
	}
	return marshal(map[string]any{"content": content, "isError": isSet(answer["isError"])})
}

func textPart(p *page) map[string]any { return map[string]any{"type": "text", "text": p.String()} }

func filePart(data []byte) map[string]any {
	return map[string]any{"type": "image", "mimeType": "", "data": data}
}

func marshal(value any) json.RawMessage {
	raw, _ := json.Marshal(value) // of texts, booleans and JSON that was read: cannot fail
	return raw
}

// An object is a JSON object whose members are decoded one by one: an invalid member does not make the others
// unreadable.
type object map[string]json.RawMessage

// readObject reads an object; any other value has no members.
func readObject(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// text returns a member that is a string.
func (o object) text(name string) (string, bool) {
	var s *string
	if json.Unmarshal(o[name], &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// string returns a member that is a string; any other is empty.
func (o object) string(name string) string {
	s, _ := o.text(name)
	return s
}

// isSet reports whether a flag is set. Every value that is not plainly false counts as set: a failure must not be taken for
// a success.
func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`, `"false"`:
		return false
	}
	return true
}

// each calls f with each element of an array. A value that is not an array counts as its only element.
func each(raw json.RawMessage, f func(json.RawMessage)) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	if raw[0] != '[' {
		f(raw)
		return
	}
	// The elements are read one at a time: millions of them may be in one message.
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token()
	for dec.More() {
		var element json.RawMessage
		if dec.Decode(&element) != nil {
			return
		}
		f(element)
	}
}

// toolResult adds the result of a call: its content, and then the structured content, unless the content repeats it.
func (p *page) toolResult(answer object, raw json.RawMessage) {
	var text resultText
	each(answer["content"], func(part json.RawMessage) {
		p.content(part)
		text.add(part)
	})
	structured := answer["structuredContent"]
	hasStructured := len(structured) > 0 && string(structured) != "null"
	switch {
	case hasStructured && text.none():
		p.add(compact(structured))
	case hasStructured && !text.includes(structured):
		p.add("[structured content]")
		p.add(compact(structured))
	case hasStructured || text.parts > 0:
	case answer == nil && string(raw) != "null":
		p.addUnknown("the answer is no result of a tool; its JSON follows", raw)
	case hasOthers(answer):
		p.addUnknown("the answer has no content; its JSON follows", raw)
	}
}

// compact returns JSON without white space between its parts.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// hasOthers reports whether a result has members other than those for its description.
func hasOthers(answer object) bool {
	for name := range answer {
		switch name {
		case "_meta", "content", "structuredContent", "isError", "resultType":
		default:
			return true
		}
	}
	return false
}

// messages adds the messages of a prompt.
func (p *page) messages(answer object) {
	each(answer["messages"], func(raw json.RawMessage) {
		message := readObject(raw)
		if message == nil {
			return
		}
		p.addf("[%s]", quote.Line(message.string("role"), 16))
		each(message["content"], p.content)
	})
}

// content adds a part of a result. A part with an unknown kind, or in an invalid form, is shown as JSON.
func (p *page) content(raw json.RawMessage) {
	if p.isFull() { // reading millions of parts that are not shown takes long
		p.left += int64(len(raw))
		return
	}
	part := readObject(raw)
	if text, ok := asText(raw); ok {
		p.add(text)
		return
	}
	kind := part.string("type")
	if !p.known(kind, part) {
		p.addUnknown("content "+ofType(kind)+", which cannot be shown; its JSON follows", raw)
	}
}

// known adds a part of a result if the protocol defines its kind, and reports whether it does.
// https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
func (p *page) known(kind string, part object) bool {
	switch kind {
	case "text":
		text, ok := part.text("text")
		p.add(text)
		return ok
	case "image", "audio":
		data, ok := part.text("data")
		if ok {
			data = withoutScheme(data)
			p.addf("[%s %s, %s]", kind, quote.Line(part.string("mimeType"), 64), size(decodedLen(data)))
			p.addFile(data)
		}
		return ok
	case "resource_link":
		uri, ok := part.text("uri")
		if ok {
			p.add("[resource " + about(uri, part.string("name"), part.string("mimeType"), part.string("description")) + "]")
		}
		return ok
	case "resource":
		return p.resourceContents(readObject(part["resource"]))
	}
	return false
}

// resource adds a resource that was read.
func (p *page) resource(raw json.RawMessage) {
	if !p.resourceContents(readObject(raw)) {
		p.addUnknown("content that is no resource; its JSON follows", raw)
	}
}

// resourceContents adds the contents of a resource, and reports whether there are any.
func (p *page) resourceContents(r object) bool {
	about := about(r.string("uri"), "", r.string("mimeType"), "")
	if blob, ok := r.text("blob"); ok {
		blob = withoutScheme(blob)
		p.addf("[resource %s, %s]", about, size(decodedLen(blob)))
		p.addFile(blob)
		return true
	}
	text, ok := r.text("text")
	if ok {
		p.addf("[resource %s]", about)
		p.add(text)
	}
	return ok
}

// withoutScheme returns the base64 of a data URL, which some servers send instead of plain base64.
func withoutScheme(data string) string {
	const mark = ";base64,"
	head := data[:min(len(data), 256)]
	if i := strings.Index(head, mark); i >= 0 && strings.HasPrefix(head, "data:") {
		return data[i+len(mark):]
	}
	return data
}

// addFile adds an image or a document in base64 to the files that the model is shown, or a line that explains why it is
// not shown. Its bytes determine its type, because servers name wrong types.
func (p *page) addFile(data string) {
	head, err := decodeHead(data)
	if err == nil {
		err = cmp.Or(attachment.CheckFormat(head), attachment.CheckSize(decodedLen(data)))
	}
	if err == nil && len(p.files) == model.MaxFiles {
		p.moreFiles++
		return
	}
	var decoded []byte
	if err == nil {
		decoded, err = base64.StdEncoding.DecodeString(data)
	}
	if _, isBroken := errors.AsType[base64.CorruptInputError](err); isBroken {
		err = errors.New("it is not valid base64")
	}
	if err != nil {
		p.addf("[it is not shown: %v]", err)
		return
	}
	p.files = append(p.files, decoded)
}

// decodeHead decodes the first bytes of base64, which may have line breaks.
func decodeHead(data string) ([]byte, error) {
	if len(data) <= attachment.HeadBytes {
		return base64.StdEncoding.DecodeString(data) //nolint:wrapcheck // addFile says what it means
	}
	head := strings.NewReplacer("\r", "", "\n", "").Replace(data[:attachment.HeadBytes])
	return base64.StdEncoding.DecodeString(head[:len(head)/4*4]) //nolint:wrapcheck // likewise
}

// asText returns a value that is a JSON string.
func asText(raw json.RawMessage) (string, bool) {
	return object{"": raw}.text("")
}

// ofType returns a phrase that names the type of a part.
func ofType(kind string) string {
	if kind == "" {
		return "without a type"
	}
	return fmt.Sprintf("of type %q", quote.Line(kind, 64))
}

// decodedLen returns the decoded size of a base64 text.
func decodedLen(encoded string) int64 {
	text := bytes.TrimRight([]byte(encoded), "=\n")
	return int64(len(text)) * 3 / 4
}

// A resultText is the text of a result, for comparison with its structured content, which servers repeat as text for
// older clients.
// https://modelcontextprotocol.io/specification/2025-11-25/server/tools#structured-content
type resultText struct {
	parts int      // of any kind
	texts []string // the texts, as far as they are compared
	size  int
}

// maxCompared bounds the compared text, in bytes: parsed JSON takes many times its size.
const maxCompared = 1 << 20

// add adds a part of a result.
func (r *resultText) add(raw json.RawMessage) {
	r.parts++
	if r.size > maxCompared {
		return
	}
	text, ok := asText(raw)
	if !ok {
		text, ok = readObject(raw).text("text")
	}
	if r.size += len(text) + 1; ok && r.size <= maxCompared {
		r.texts = append(r.texts, text)
	}
}

// none reports whether a result has no content.
func (r *resultText) none() bool {
	return r.parts == 0 || r.parts == len(r.texts) && strings.Join(r.texts, "") == ""
}

// includes reports whether the texts repeat a whole structured content: either one of them is its JSON, or they are the
// value of its only member, in which servers wrap values that are not objects.
func (r *resultText) includes(structured json.RawMessage) bool {
	if len(structured) > maxCompared || r.size > maxCompared {
		return false
	}
	value, err := decodeExact(structured)
	if err != nil {
		return false
	}
	if r.repeats(value) {
		return true
	}
	wrapped, ok := value.(map[string]any)
	if !ok || len(wrapped) != 1 {
		return false
	}
	for _, only := range wrapped {
		value = only
	}
	return r.repeats(value)
}

// repeats reports whether one of the texts is the value, or each text is an element of it.
func (r *resultText) repeats(value any) bool {
	for _, text := range r.texts {
		if isText(text, value) {
			return true
		}
	}
	list, ok := value.([]any)
	if !ok || len(list) != len(r.texts) || len(list) == 0 {
		return false
	}
	for i, text := range r.texts {
		if !isText(text, list[i]) {
			return false
		}
	}
	return true
}

// isText reports whether a text is a value, literally or as JSON.
func isText(text string, value any) bool {
	if text == value {
		return true
	}
	parsed, err := decodeExact([]byte(text))
	return err == nil && reflect.DeepEqual(parsed, value)
}

// decodeExact decodes JSON and keeps the digits of numbers.
func decodeExact(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errPanic
	}
	return value, nil
}
