package digest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep arguments are nested.
const maxDepth = 500

// Canonical writes arguments in the one form that those of the same meaning
// have: without space, members sorted by the bytes of their names, characters
// escaped only where they must be, numbers as they were written. No arguments
// are {}.
//
// It refuses what two programs may read differently: a name that is twice in one
// object, and text that is no Unicode.
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
	w := writer{in: args}
	if err := w.value(0); err != nil {
		return nil, err
	}
	return w.out, nil
}

// A writer reads JSON that is known to be valid and writes the canonical form.
type writer struct {
	in  []byte
	at  int
	out []byte
}

// next is the next byte that is not space.
func (w *writer) next() byte {
	for w.at < len(w.in) && strings.IndexByte(" \t\r\n", w.in[w.at]) >= 0 {
		w.at++
	}
	return w.in[w.at]
}

func (w *writer) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the arguments are nested more than %d deep", maxDepth)
	}
	switch w.next() {
	case '{':
		return w.object(depth)
	case '[':
		return w.array(depth)
	case '"':
		_, err := w.text()
		return err
	}
	start := w.at
	for w.at < len(w.in) && strings.IndexByte(" \t\r\n,]}", w.in[w.at]) < 0 {
		w.at++
	}
	w.out = append(w.out, w.in[start:w.at]...)
	return nil
}

func (w *writer) array(depth int) error {
	w.take('[')
	for first := true; w.next() != ']'; first = false {
		if !first {
			w.take(',')
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	w.take(']')
	return nil
}

// A member is one member of an object; where says where it was written.
type member struct {
	name       string
	start, end int
}

func (w *writer) object(depth int) error {
	w.take('{')
	begin := len(w.out)
	var members []member
	for first := true; w.next() != '}'; first = false {
		if !first {
			w.at++ // the comma, which is put back below
		}
		start := len(w.out)
		w.next()
		name, err := w.text()
		if err != nil {
			return err
		}
		w.take(':')
		if err := w.value(depth + 1); err != nil {
			return err
		}
		members = append(members, member{name, start, len(w.out)})
	}
	if err := w.sort(begin, members); err != nil {
		return err
	}
	w.take('}')
	return nil
}

// sort puts members that were written one after the other in order.
func (w *writer) sort(begin int, members []member) error {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	sorted := make([]byte, 0, len(w.out)-begin+len(members))
	for i, m := range members {
		if i > 0 {
			if m.name == members[i-1].name {
				return fmt.Errorf("the arguments have %q twice in one object; send it once", shorten(m.name))
			}
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, w.out[m.start:m.end]...)
	}
	w.out = append(w.out[:begin], sorted...)
	return nil
}

// take copies a byte that is known to come next.
func (w *writer) take(c byte) {
	w.next()
	w.at++
	w.out = append(w.out, c)
}

// text copies a string with the fewest escapes.
func (w *writer) text() (string, error) {
	start := w.at
	for w.at++; w.in[w.at] != '"'; w.at++ {
		if w.in[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	raw := w.in[start:w.at]
	if bytes.IndexByte(raw, '\\') < 0 {
		w.out = append(w.out, raw...)
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("reading a string of the arguments: %w", err)
	}
	if strings.Count(s, string(utf8.RuneError)) != replacements(raw) {
		return "", fmt.Errorf("the arguments have half of a surrogate pair in %q; send whole characters", shorten(s))
	}
	w.out = quote(w.out, s)
	return s, nil
}

// replacements counts the replacement characters that a string was given.
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

// shorten bounds what an error repeats.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
