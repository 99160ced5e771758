package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
)

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
