package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/frametest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// messages is the wire of Anthropic's Messages.
var messages = &wire{
	read:   readMessages,
	check:  func(r Request) error { return r.strict.check() },
	keys:   func(h http.Header) []string { return []string{h.Get("X-Api-Key"), h.Get("Authorization")} },
	render: renderMessages,
	failure: func(status int, message string) map[string]any {
		kind := errorTypes[status]
		if kind == "" {
			kind = "api_error"
		}
		return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
	},
	marksCache: true,
}

// errorTypes are the names of errors by their status.
var errorTypes = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	529: "overloaded_error",
}

// stopReasons maps finishes to the stop reasons of Anthropic.
var stopReasons = map[step.Finish]string{
	step.FinishStop:    "end_turn",
	step.FinishCalls:   "tool_use",
	step.FinishLength:  "max_tokens",
	step.FinishRefusal: "refusal",
	step.FinishOther:   "other",
}

// Signature returns the signature that a Server puts on thinking over the Messages API; it accepts no other.
func Signature(thinking string) string { return fmt.Sprintf("signed-%d", len(thinking)) }

// renderMessages returns the answer to a request in the format of the Messages API.
func renderMessages(r Request, t Turn) playback {
	if !r.Stream {
		return playback{contentType: "application/json", chunks: [][]byte{encode(t.message(r, t.blocks(r), t.reason(stopReasons)))}, delay: t.delay()}
	}
	p := playback{contentType: "text/event-stream", delay: t.delay()}
	say := func(kind string, fields map[string]any) {
		fields["type"] = kind
		p.chunks = append(p.chunks, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(fields)))
	}
	begun := t.message(r, []any{}, nil)
	begun["usage"] = map[string]any{"input_tokens": t.billed(r)["input_tokens"], "output_tokens": 1}
	say("message_start", map[string]any{"message": begun})
	say("ping", map[string]any{})
	for i, b := range t.blocks(r) {
		whole, _ := b.(map[string]any)
		t.stream(whole, func(kind string, fields map[string]any) {
			fields["index"] = i
			say(kind, fields)
		})
	}
	say("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": t.reason(stopReasons), "stop_sequence": nil}, "usage": t.billed(r),
	})
	say("message_stop", map[string]any{})
	return p
}

// message returns an answer with the given content.
func (t Turn) message(r Request, content []any, reason any) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", r.turn()), "type": "message", "role": "assistant", "model": r.Model,
		"content": content, "stop_reason": reason, "stop_sequence": nil, "usage": t.billed(r),
	}
}

// blocks returns the content blocks of an answer.
func (t Turn) blocks(r Request) []any {
	list := []any{}
	if t.Thinking != "" {
		block := map[string]any{"type": "thinking", "thinking": t.Thinking, "signature": ""}
		if !r.strict.unsigned {
			block["signature"] = Signature(t.Thinking)
		}
		list = append(list, block)
	}
	if t.Text != "" {
		list = append(list, map[string]any{"type": "text", "text": t.Text})
	}
	for i, c := range t.Calls {
		list = append(list, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", i), "name": c.Name, "input": c.input()})
	}
	return list
}

// input returns the arguments of a call as a JSON value, for an answer without streaming; {}: there are none.
func (c Call) input() any {
	if len(c.Args) == 0 {
		return map[string]any{}
	}
	return c.Args
}

// stream streams a block in pieces.
func (t Turn) stream(whole map[string]any, say func(kind string, fields map[string]any)) {
	start := maps.Clone(whole)
	var deltas []map[string]any
	grow := func(kind, field, text string) {
		for _, piece := range pieces(text) {
			deltas = append(deltas, map[string]any{"type": kind, field: piece})
		}
	}
	switch whole["type"] {
	case "thinking":
		start["thinking"], start["signature"] = "", ""
		grow("thinking_delta", "thinking", t.Thinking)
		if whole["signature"] != "" {
			deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": whole["signature"]})
		}
	case "text":
		start["text"] = ""
		grow("text_delta", "text", t.Text)
	case "tool_use":
		start["input"] = map[string]any{}
		grow("input_json_delta", "partial_json", written(whole["input"]))
	}
	say("content_block_start", map[string]any{"content_block": start})
	for _, d := range deltas {
		say("content_block_delta", map[string]any{"delta": d})
	}
	say("content_block_stop", map[string]any{})
}

// written returns the text of a call's input.
func written(input any) string {
	if args, ok := input.(json.RawMessage); ok {
		return Call{Args: args}.text()
	}
	return ""
}

// billed returns the usage as Anthropic reports it: cached tokens do not count as input.
func (t Turn) billed(r Request) map[string]any {
	u := t.spent(r)
	bill := map[string]any{
		"input_tokens":                u.Input - u.CacheRead - u.CacheWrite,
		"cache_read_input_tokens":     u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
		"output_tokens":               u.Output,
	}
	if u.Reasoning > 0 {
		bill["output_tokens_details"] = map[string]any{"thinking_tokens": u.Reasoning}
	}
	if u.CostUSD != "" {
		bill["cost"] = u.CostUSD
	}
	return bill
}

// invoke is the end of the path of a request to Bedrock.
const invoke = "/invoke-with-response-stream"

// bedrock is the API of Messages in the form of Bedrock: the model is in the path, and the answer is a stream of
// frames.
var bedrock = &wire{
	read:       readInvoke,
	check:      checkInvoke,
	keys:       func(h http.Header) []string { return []string{h.Get("Authorization")} },
	render:     renderFrames,
	failure:    func(_ int, message string) map[string]any { return map[string]any{"message": message} },
	marksCache: true,
	framed:     true,
}

// readInvoke sets the fields of a Request from its body and path. The name of the model is one segment of the path, in
// which Amazon requires colons and slashes to be escaped.
func readInvoke(r *Request) error {
	if err := readMessages(r); err != nil {
		return err
	}
	_, segment, _ := strings.Cut(strings.TrimSuffix(r.path, invoke), "/model/")
	if segment == "" || strings.ContainsAny(segment, "/:") {
		return fmt.Errorf("the path %s has no escaped name of a model", r.path)
	}
	var err error
	r.Model, err = url.PathUnescape(segment)
	r.Stream = true
	return err
}

// checkInvoke refuses what Bedrock and other strict providers refuse.
func checkInvoke(r Request) error {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.Raw, &body); err != nil {
		return err
	}
	for _, field := range []string{"model", "stream"} {
		if body[field] != nil {
			return fmt.Errorf("%s: Extra inputs are not permitted", field)
		}
	}
	if string(body["anthropic_version"]) != `"bedrock-2023-05-31"` {
		return errors.New("anthropic_version: Field required")
	}
	return r.strict.check()
}

// renderFrames puts each event of the wire of Messages into a frame. Bedrock sends no pings.
func renderFrames(r Request, t Turn) playback {
	p := renderMessages(r, t)
	p.contentType = frametest.ContentType
	var chunks [][]byte
	for _, event := range p.chunks {
		_, data, _ := bytes.Cut(event, []byte("\ndata: "))
		if bytes.HasPrefix(event, []byte("event: ping\n")) {
			continue
		}
		chunks = append(chunks, frametest.Event("chunk", encode(map[string]any{"bytes": bytes.TrimSpace(data), "p": "ab"})))
	}
	p.chunks = chunks
	return p
}

// exceptions are the names of errors by their status.
var exceptions = map[int]string{
	http.StatusBadRequest: "ValidationException", http.StatusUnauthorized: "UnrecognizedClientException",
	http.StatusForbidden: "AccessDeniedException", http.StatusNotFound: "ResourceNotFoundException",
	http.StatusTooManyRequests: "ThrottlingException", http.StatusServiceUnavailable: "ServiceUnavailableException",
	http.StatusFailedDependency: "ModelStreamErrorException",
}

func exceptionOf(status int) string {
	if name := exceptions[status]; name != "" {
		return name
	}
	return "InternalServerException"
}

// exception returns the frame of an error within a stream, in which the name of the error begins with a small letter.
func (f Fault) exception() string {
	name := exceptionOf(f.status())
	return string(frametest.Exception(strings.ToLower(name[:1])+name[1:], []byte(f.body(bedrock))))
}
