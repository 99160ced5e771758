// Package redact removes secrets from everything that the runner writes, shows and sends. One Redactor is applied to
// the journal, events, status, the termination message and results for the model. It replaces each known value, and its
// common encodings (base64, URL-encoded, escaped in JSON), by a name that tells users which secret it was:
// ‹secret:anthropic/api-key›. It cannot recognize other encodings; the real protection is that tools never get a
// secret.
package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MinSecret is the length of the shortest value that is redacted, in bytes: shorter ones occur by chance.
const MinSecret = 8

// A Secret is one value that must not be seen.
type Secret struct {
	// Name and Key identify the key of a Kubernetes Secret.
	Name, Key string
	Value     []byte
}

// A Redactor replaces secrets by their names. A nil Redactor replaces nothing. It is safe for concurrent use.
type Redactor struct {
	table atomic.Pointer[table] // nil while it knows none
	mu    sync.Mutex            // one Add at a time
}

// A table has the known forms, by first byte, longest first. It is never changed: adding a secret makes a new table.
type table [256][]form

// A form is one encoding of a secret, and its replacement.
type form struct {
	text, name string
}

// New returns a Redactor of these secrets.
func New(secrets ...Secret) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		r.Add(s)
	}
	return r
}

// Add adds a secret, or another value of a rotated one: the old value stays known.
func (r *Redactor) Add(s Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next table
	if had := r.table.Load(); had != nil {
		next = *had
	}
	name := "‹secret:" + s.Name + "/" + s.Key + "›"
	for _, text := range spellings(string(s.Value)) {
		at := &next[text[0]]
		if slices.ContainsFunc(*at, func(f form) bool { return f.text == text }) {
			continue
		}
		*at = append(slices.Clone(*at), form{text: text, name: name})
		slices.SortStableFunc(*at, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	r.table.Store(&next)
}

// knows returns the current table; nil: there are no secrets.
func (r *Redactor) knows() *table {
	if r == nil {
		return nil
	}
	return r.table.Load()
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	known := r.knows()
	if known == nil {
		return s
	}
	out, rest := known.replace(s, whole)
	return out + rest
}

// JSON returns a JSON value without secrets. It stays valid: if a secret was not inside a string, the whole value
// becomes a string.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if bytes.ContainsRune(raw, '\\') {
		raw = r.unescaped(raw)
	}
	out := r.String(string(raw))
	switch {
	case out == string(raw):
		return raw
	case json.Valid([]byte(out)):
		return json.RawMessage(out)
	default:
		quoted, _ := json.Marshal(out) // a string: cannot fail
		return quoted
	}
}

// unescaped searches for secrets behind JSON's escapes, which can spell a value in many ways.
func (r *Redactor) unescaped(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	clean, changed := r.redactValue(v)
	if !changed {
		return raw
	}
	out, _ := json.Marshal(clean) // it was JSON: cannot fail
	return out
}

// redactValue returns a decoded JSON value without secrets, and whether there were any.
func (r *Redactor) redactValue(v any) (any, bool) {
	changed := false
	switch v := v.(type) {
	case string:
		s := r.String(v)
		return s, s != v
	case []any:
		for i, item := range v {
			clean, c := r.redactValue(item)
			v[i], changed = clean, changed || c
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			clean, c := r.redactValue(item)
			key := r.String(k)
			out[key], changed = clean, changed || c || key != k
		}
		return out, changed
	}
	return v, changed
}

// mode reports whether more text may follow.
type mode int

const (
	whole mode = iota // all of it is here
	part              // more may come: hold back what may become a secret
)

// replace copies s with its secrets replaced. In part mode it stops if the rest may be the beginning of a secret, and
// returns that rest.
func (t *table) replace(s string, m mode) (out, rest string) {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		f, wait := t.at(s[i:])
		if wait && m == part {
			return b.String() + s[from:i], s[i:]
		}
		if f == nil {
			i++
			continue
		}
		b.WriteString(s[from:i])
		b.WriteString(f.name)
		i += len(f.text)
		from = i
	}
	return b.String() + s[from:], "" // s itself, not a copy, if nothing was replaced
}

// at returns the longest form at the beginning of s, and whether a longer one may still follow.
func (t *table) at(s string) (found *form, wait bool) {
	forms := t[s[0]]
	for i := range forms {
		f := &forms[i]
		if strings.HasPrefix(s, f.text) {
			return f, wait
		}
		wait = wait || strings.HasPrefix(f.text, s)
	}
	return nil, wait
}

// spellings returns the forms in which a secret may appear, none shorter than MinSecret. Some may be listed twice.
func spellings(value string) []string {
	var all []string
	// A key file often ends in a newline that the key does not have.
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if len(v) < MinSecret {
			continue
		}
		all = append(all, v)
		all = append(all, inURLs(v)...)
		all = append(all, base64s(v)...)
	}
	for _, s := range slices.Clone(all) {
		all = append(all, escaped(s))
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < MinSecret })
}

// inURLs returns the encodings of a value in a URL. Some programs write a blank of a query as %20, or the digits
// of escapes in lower case.
func inURLs(v string) []string {
	query := url.QueryEscape(v)
	all := []string{query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(v)}
	for _, s := range slices.Clone(all) {
		parts := strings.Split(s, "%")
		for i := 1; i < len(parts); i++ {
			parts[i] = strings.ToLower(parts[i][:2]) + parts[i][2:]
		}
		all = append(all, strings.Join(parts, "%"))
	}
	return all
}

// lettersBefore is how many letters of base64 have bits of the 0, 1 or 2 bytes before a value.
var lettersBefore = []int{0, 2, 3}

// base64s returns the encodings of a value, alone and within a longer text ("user:password" of basic authentication).
// There the letters depend on the position of the value modulo three, and the letters at its ends on the neighboring
// bytes.
func base64s(v string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift, begin := range lettersBefore {
			padded := make([]byte, shift, shift+len(v))
			padded = append(padded, v...)
			text := enc.EncodeToString(padded)
			end := len(padded) * 8 / 6 // behind the last letter of our bits alone
			all = append(all, text[begin:end])
		}
		all = append(all, enc.EncodeToString([]byte(v)))
	}
	return append(all, base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)))
}

// escaped returns s as it is written within a JSON string.
func escaped(s string) string {
	quoted, _ := json.Marshal(s) // a string: cannot fail
	return string(quoted[1 : len(quoted)-1])
}

// A Stream redacts text that arrives in pieces. It holds back a possible beginning of a secret, so that a secret that
// is split over two pieces is found.
type Stream struct {
	redactor *Redactor
	held     string
}

// Stream returns a Stream of this Redactor.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r} }

// Write adds a piece and returns the text that is safe to show.
func (s *Stream) Write(piece string) string {
	known := s.redactor.knows()
	if known == nil {
		return piece
	}
	out, rest := known.replace(s.held+piece, part)
	s.held = rest
	return out
}

// Flush returns the text that was held back, at the end.
func (s *Stream) Flush() string {
	held := s.held
	s.held = ""
	return s.redactor.String(held)
}

// dropped makes strings.Map leave a character out.
const dropped = -1

// Printable returns s for a terminal: without control characters except newline and tab, and without characters that
// change the direction of text.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
			return dropped
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional overrides
			return dropped
		}
		return r
	}, s)
}
