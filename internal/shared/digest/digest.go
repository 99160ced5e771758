// Package digest identifies a tool call by its effect: its tool and its arguments. A user decides about a call that is
// shown with its digest, and the digest is computed again for the call that is about to run: if it differs, the
// Decision does not apply.
package digest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Call returns the digest of a call: 64 hexadecimal digits, for exactly this tool and these arguments. The order of
// members, space between values and the form of escapes make no difference, since no tool sees them; everything else
// does, even the digits of a number. Empty arguments equal {}. The digest of arguments that [Canonical] refuses depends
// on their exact bytes.
func Call(tool string, args json.RawMessage) string {
	h := sha256.New()
	part(h, []byte("deckhand call 1"))
	part(h, []byte(tool))
	if canonical, err := Canonical(args); err == nil {
		part(h, []byte("canonical"))
		part(h, canonical)
	} else {
		part(h, []byte("bytes"))
		part(h, args)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shortLength is how many digits of a digest are at the end of a request's id: 128 bits, so that no other call with the
// same id can be found.
const shortLength = 32

// Short returns the digits of a digest that are at the end of the id of a request for approval.
func Short(sum string) string { return sum[:min(len(sum), shortLength)] }

// IsBound reports whether the id of a request ends in the digits of a digest. A user who approves such an id approves
// only the call with this digest.
func IsBound(id, sum string) bool {
	return len(sum) >= shortLength && strings.HasSuffix(id, "-"+Short(sum))
}

// Display returns the digest of a text that users see, in parts: 64 hexadecimal digits, for these
// parts in this order and no others.
func Display(parts ...string) string {
	h := sha256.New()
	part(h, []byte("deckhand display 1"))
	for _, p := range parts {
		part(h, []byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// part adds one part with its length before it, so that parts cannot run into
// each other.
func part(h hash.Hash, p []byte) {
	_, _ = h.Write(strconv.AppendInt(nil, int64(len(p)), 10)) // a hash takes everything
	_, _ = h.Write([]byte{':'})
	_, _ = h.Write(p)
}

// maxDepth bounds how deep arguments are nested.
const maxDepth = 500

// Canonical returns arguments in canonical form, which is equal for equal meanings: without space, members sorted by
// the bytes of their names, only necessary escapes, and numbers with their original digits. Empty arguments become {}.
// It refuses JSON that programs could read differently: with a name that occurs twice in one object, or with invalid
// Unicode.
func Canonical(args json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid(args) {
		return nil, fmt.Errorf("the arguments are not JSON")
	}
	if !utf8.Valid(args) {
		return nil, fmt.Errorf("the arguments are not valid UTF-8")
	}
	w := writer{in: json.NewDecoder(bytes.NewReader(args))}
	w.in.UseNumber()
	out, err := w.value(nil, 0)
	if err == nil && w.replaced != replacements(args) {
		err = fmt.Errorf("the arguments have half of a surrogate pair in %q; send whole characters", shorten(w.suspect))
	}
	return out, err
}

// A writer reads valid JSON and writes the canonical form.
type writer struct {
	in       *json.Decoder
	replaced int    // the number of replacement characters in all strings
	suspect  string // the first string that has one
}

func (w *writer) value(out []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the arguments are nested more than %d deep", maxDepth)
	}
	token, err := w.in.Token()
	if err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return w.object(out, depth)
		}
		return w.array(out, depth)
	case string:
		return w.text(out, token), nil
	case json.Number:
		return append(out, token...), nil
	case bool:
		return strconv.AppendBool(out, token), nil
	}
	return append(out, "null"...), nil
}

func (w *writer) array(out []byte, depth int) ([]byte, error) {
	out = append(out, '[')
	for first := true; w.in.More(); first = false {
		if !first {
			out = append(out, ',')
		}
		var err error
		if out, err = w.value(out, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := w.in.Token() // the bracket
	return append(out, ']'), err
}

func (w *writer) object(out []byte, depth int) ([]byte, error) {
	members := map[string][]byte{}
	for w.in.More() {
		token, err := w.in.Token()
		if err != nil {
			return nil, fmt.Errorf("reading the arguments: %w", err)
		}
		name, _ := token.(string) // names are strings
		if members[name] != nil {
			return nil, fmt.Errorf("the arguments have %q twice in one object; send it once", shorten(name))
		}
		member := append(w.text(nil, name), ':')
		if members[name], err = w.value(member, depth+1); err != nil {
			return nil, err
		}
	}
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, members[name]...)
	}
	_, err := w.in.Token() // the brace
	return append(out, '}'), err
}

// text writes a string with the fewest escapes.
func (w *writer) text(out []byte, s string) []byte {
	if n := strings.Count(s, string(utf8.RuneError)); n > 0 {
		w.replaced += n
		w.suspect = cmp.Or(w.suspect, s)
	}
	return quote(out, s)
}

// replacements counts the replacement characters that were written.
func replacements(raw []byte) int {
	count := bytes.Count(raw, []byte(string(utf8.RuneError)))
	for i := 0; i+6 <= len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if bytes.EqualFold(raw[i+1:i+6], []byte("ufffd")) {
			count++
		}
		i++
	}
	return count
}

// quote writes a string with the escapes that it must have, and no others.
func quote(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// shorten bounds a text that an error repeats.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
