package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// pieceSize is the maximum size of the text in one chunk, in bytes.
const pieceSize = 24

// reasons maps finishes to the finish reasons of OpenAI.
var reasons = map[step.Finish]string{
	step.FinishStop:    "stop",
	step.FinishCalls:   "tool_calls",
	step.FinishLength:  "length",
	step.FinishRefusal: "content_filter",
	step.FinishOther:   "other",
}

// A playback is an answer, ready to be sent.
type playback struct {
	contentType string
	chunks      [][]byte
	delay       time.Duration
	wire        *wire
}

// render returns the answer to a request in the format of chat completions.
func render(r Request, t Turn) playback {
	if !r.Stream {
		return playback{contentType: "application/json", chunks: [][]byte{whole(r, t)}, delay: t.delay()}
	}
	p := playback{contentType: "text/event-stream", delay: t.delay()}
	say := func(delta map[string]any, reason any) {
		p.chunks = append(p.chunks, event(envelope(r, map[string]any{"choices": []any{map[string]any{
			"index": 0, "delta": delta, "finish_reason": reason,
		}}})))
	}
	say(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(t.Thinking) {
		say(map[string]any{"reasoning_content": piece}, nil)
	}
	for _, piece := range pieces(t.Text) {
		say(map[string]any{"content": piece}, nil)
	}
	for i, c := range t.Calls {
		say(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": callID(i), "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""},
		}}}, nil)
		for _, piece := range pieces(c.text()) {
			say(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	say(map[string]any{}, t.reason(reasons))
	p.chunks = append(p.chunks, event(envelope(r, map[string]any{"choices": []any{}, "usage": t.cost(r)})), []byte("data: [DONE]\n\n"))
	return p
}

// whole returns the answer to a request without streaming.
func whole(r Request, t Turn) []byte {
	message := map[string]any{"role": "assistant", "content": t.Text}
	if t.Thinking != "" {
		message["reasoning_content"] = t.Thinking
	}
	var calls []any
	for i, c := range t.Calls {
		calls = append(calls, map[string]any{
			"id": callID(i), "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.text()},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return encode(envelope(r, map[string]any{
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": t.reason(reasons)}},
		"usage":   t.cost(r),
	}))
}

func event(v any) []byte { return fmt.Appendf(nil, "data: %s\n\n", encode(v)) }

// envelope adds the fields that every chunk has.
func envelope(r Request, body map[string]any) map[string]any {
	body["id"] = fmt.Sprintf("scripted-%d", r.turn())
	body["object"] = "chat.completion.chunk"
	body["model"] = r.Model
	return body
}

// callID returns the provider's id of a call. As with some real providers, it is used again in the next turn.
func callID(i int) string { return fmt.Sprintf("call_%d", i) }

// text returns the arguments that the model writes.
func (c Call) text() string {
	var broken string
	if json.Unmarshal(c.Args, &broken) == nil {
		return broken
	}
	return string(c.Args)
}

// spent returns the usage that an answer reports.
func (t Turn) spent(r Request) Usage {
	if t.Usage != nil {
		return *t.Usage
	}
	said := len(t.Thinking) + len(t.Text)
	for _, c := range t.Calls {
		said += len(c.Name) + len(c.Args)
	}
	return Usage{Input: r.tokens(), Output: model.EstimateTokens(said)}
}

// cost returns the usage in the form of OpenAI.
func (t Turn) cost(r Request) map[string]any {
	u := t.spent(r)
	cost := map[string]any{
		"prompt_tokens":             u.Input,
		"completion_tokens":         u.Output,
		"total_tokens":              u.Input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
	if u.CostUSD != "" {
		cost["cost"] = u.CostUSD
	}
	return cost
}

// serve sends the answer, chunk by chunk.
func (p playback) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", p.contentType)
	flusher := http.NewResponseController(w)
	for _, chunk := range p.chunks {
		if !pause(r, p.delay) {
			return
		}
		if _, err := w.Write(chunk); err != nil {
			return // the client went away
		}
		_ = flusher.Flush() // a recorder cannot
	}
}

// before returns the answer up to n bytes.
func (p playback) before(n int) playback {
	all := bytes.Join(p.chunks, nil)
	p.chunks = [][]byte{all[:min(n, len(all))]}
	return p
}

// events returns the answer up to the last chunk that is complete within n bytes.
func (p playback) events(n int) playback {
	for i, chunk := range p.chunks {
		if n -= len(chunk); n < 0 {
			p.chunks = p.chunks[:i]
			break
		}
	}
	return p
}

// pause waits, unless the client goes away.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}

// pieces cuts a text at characters' boundaries.
func pieces(s string) []string {
	var list []string
	for s != "" {
		end := min(pieceSize, len(s))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		list = append(list, s[:end])
		s = s[end:]
	}
	return list
}

// encode returns v as JSON. Invalid raw arguments are an error of the script.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

// maxPrefixes bounds how many prefixes are stored; beyond it all are dropped, like expired entries of a cache.
const maxPrefixes = 1 << 20

// Prefixes compute how much of a prompt is in the provider's cache: the longest beginning that was sent before with the
// same key. The zero value is empty.
type Prefixes struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool
}

// Count returns how many tokens of a prompt were sent before and how many it has, with an estimate of four bytes a
// token. parts are the parts of the prompt, such as tools and messages. Only whole parts are compared.
func (p *Prefixes) Count(key string, parts [][]byte) (read, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) > maxPrefixes {
		p.seen = map[[sha256.Size]byte]bool{}
	}
	hash := sha256.New()
	add := func(part []byte) [sha256.Size]byte {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write(part)
		return [sha256.Size]byte(hash.Sum(nil))
	}
	add([]byte(key))
	size, known := 0, true
	for _, part := range parts {
		sum := add(part)
		size += len(part)
		if known = known && p.seen[sum]; known {
			read = size
		}
		p.seen[sum] = true
	}
	return tokens(read), tokens(size)
}

func tokens(size int) int { return int(model.EstimateTokens(size)) }

// A prompt is the part of a request that a provider may cache, and the rest.
type prompt struct {
	key          string
	cached, rest [][]byte
}

// prompt reads the prompt of a request of any API. If the API marks how far a prompt is cached, the part after the last
// mark is not.
func (r Request) prompt(on *wire) prompt {
	var raw struct {
		Key      string            `json:"prompt_cache_key"`
		Tools    []json.RawMessage `json:"tools"`
		System   json.RawMessage   `json:"system"`
		Messages []json.RawMessage `json:"messages"`

		Instructions json.RawMessage   `json:"instructions"` // Responses
		Input        []json.RawMessage `json:"input"`
	}
	_ = json.Unmarshal(r.Raw, &raw) // read before
	parts := raw.Tools
	if raw.System != nil {
		parts = append(parts, raw.System)
	}
	if raw.Instructions != nil {
		parts = append(parts, raw.Instructions)
	}
	parts = append(append(parts, raw.Messages...), raw.Input...)
	p := prompt{key: r.Model + "\n" + raw.Key}
	marked := on.marksCache
	for _, part := range parts {
		plain, mark := unmarked(part)
		p.rest = append(p.rest, plain)
		if marked = marked || mark; mark {
			p.cached, p.rest = append(p.cached, p.rest...), nil
		}
	}
	if !marked {
		p.cached, p.rest = p.rest, nil
	}
	return p
}

// unmarked returns a part without its cache marks, which move from request to request, and whether it had one.
func unmarked(part json.RawMessage) ([]byte, bool) {
	decoder := json.NewDecoder(bytes.NewReader(part))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return part, false
	}
	had := false
	value = strip(value, &had)
	return encode(value), had
}

func strip(value any, had *bool) any {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["cache_control"]; ok {
			*had = true
			delete(v, "cache_control")
		}
		for key, inner := range v {
			v[key] = strip(inner, had)
		}
	case []any:
		for i, inner := range v {
			v[i] = strip(inner, had)
		}
		if len(v) == 1 {
			return bare(v)
		}
	}
	return value
}

// bare returns the text of a list with one text. A content with a mark is such a list, and equals the text without it.
func bare(list []any) any {
	only, _ := list[0].(map[string]any)
	if text, ok := only["text"].(string); ok && len(only) == 2 && only["type"] == "text" {
		return text
	}
	return list
}

// cached returns the turn with a usage that reports the cached part of the prompt, unless the script sets the usage.
func (s *Server) cached(r Request, t Turn, on *wire) Turn {
	if !s.script.Cache || t.Usage != nil {
		return t
	}
	p := r.prompt(on)
	read, held := s.prefixes.Count(p.key, p.cached)
	rest := tokens(len(bytes.Join(p.rest, nil)))
	u := t.spent(r)
	u.Input, u.CacheRead = int64(held+rest), int64(read)
	if on.marksCache {
		u.CacheWrite = int64(held - read)
	}
	t.Usage = &u
	return t
}
