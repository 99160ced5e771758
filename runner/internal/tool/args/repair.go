package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// RepairJSON turns a text that is almost JSON into JSON, and reports whether it could. It corrects only notation and
// never guesses content: it removes a code fence, closes everything that is open except strings, whose rest may be
// missing, drops a surplus comma or bracket at an end, and quotes bare names. In strings it converts single quotes,
// Python's constants, raw line ends and unknown escapes into JSON. Valid JSON is returned unchanged except for white
// space between values.
func RepairJSON(raw string) (json.RawMessage, bool) {
	m := repairer{in: unfenced(raw)}
	if !m.value(0) {
		return nil, false
	}
	m.space()
	if rest := strings.TrimLeft(m.in[m.at:], "}] \t\r\n"); rest != "" {
		return nil, false
	}
	return m.out, json.Valid(m.out)
}

// unfenced removes a Markdown fence around a text.
func unfenced(raw string) string {
	text := strings.TrimSpace(raw)
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	body, ok = strings.CutSuffix(body, "```")
	language, rest, found := strings.Cut(body, "\n")
	if !ok || !found || strings.ContainsAny(language, "{[\"") {
		return text
	}
	return strings.TrimSpace(rest)
}

// maxNesting bounds the depth of repaired values, and so the stack.
const maxNesting = 100

// A repairer reads almost-JSON and writes JSON. Each method reports whether it could read what its name says.
type repairer struct {
	in  string
	at  int
	out []byte
}

func (r *repairer) value(depth int) bool {
	r.space()
	switch c := r.peek(); {
	case depth > maxNesting:
		return false
	case c == '{':
		return r.members('}', depth, r.member)
	case c == '[':
		return r.members(']', depth, r.value)
	case c == '"', c == '\'':
		return r.text()
	default:
		return r.word()
	}
}

// members reads members up to the closing bracket, or up to the end of the text.
func (r *repairer) members(closer byte, depth int, one func(depth int) bool) bool {
	r.emit(r.next())
	for first := true; ; first = false {
		r.space()
		switch r.peek() {
		case closer:
			r.at++
			fallthrough
		case 0:
			r.emit(closer)
			return true
		}
		if !first {
			r.emit(',')
		}
		if !one(depth + 1) {
			return false
		}
		if !r.separated(closer) {
			return false
		}
	}
}

// separated reads the comma between two members, or detects that no member follows.
func (r *repairer) separated(closer byte) bool {
	r.space()
	switch r.peek() {
	case ',':
		r.at++
		return true
	case closer, 0:
		return true
	}
	return false
}

func (r *repairer) member(depth int) bool {
	if c := r.peek(); c == '"' || c == '\'' {
		if !r.text() {
			return false
		}
	} else if !r.name() {
		return false
	}
	r.space()
	if r.peek() != ':' {
		return false
	}
	r.emit(r.next())
	return r.value(depth)
}

// name reads a bare name and quotes it.
func (r *repairer) name() bool {
	start := r.at
	for r.at < len(r.in) && (letter(r.in[r.at]) || r.at > start && digit(r.in[r.at])) {
		r.at++
	}
	if r.at == start {
		return false
	}
	r.out = append(r.out, '"')
	r.out = append(r.out, r.in[start:r.at]...)
	r.out = append(r.out, '"')
	return true
}

// text reads a string that ends with its opening quote.
func (r *repairer) text() bool {
	quote := r.next()
	r.emit('"')
	for r.at < len(r.in) {
		c := r.next()
		switch {
		case c == quote:
			r.emit('"')
			return true
		case c == '\\':
			if !r.escape() {
				return false
			}
		case c == '"': // inside single quotes
			r.out = append(r.out, `\"`...)
		case c < ' ':
			r.out = append(r.out, control(c)...)
		default:
			r.emit(c)
		}
	}
	return false // the rest is unknown
}

// escape reads what follows a backslash.
func (r *repairer) escape() bool {
	if r.at == len(r.in) {
		return false
	}
	c := r.next()
	switch {
	case c == '\'':
		r.emit(c)
	case strings.IndexByte(`"\/bfnrt`, c) >= 0, c == 'u' && r.hex():
		r.out = append(r.out, '\\', c)
	case c < ' ': // the end of a line, as a shell would hide it
		r.out = append(r.out, control(c)...)
	default: // as in "\d+", where the backslash was meant
		r.out = append(r.out, '\\', '\\', c)
	}
	return true
}

// hex reports whether four hexadecimal digits follow.
func (r *repairer) hex() bool {
	digits := r.in[r.at:min(r.at+4, len(r.in))]
	return len(digits) == 4 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

func control(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// word reads a number or a constant.
func (r *repairer) word() bool {
	start := r.at
	for r.at < len(r.in) && (letter(r.in[r.at]) || digit(r.in[r.at]) || strings.IndexByte("+-.", r.in[r.at]) >= 0) {
		r.at++
	}
	word := r.in[start:r.at]
	switch word {
	case "True":
		word = "true"
	case "False":
		word = "false"
	case "None":
		word = "null"
	}
	r.out = append(r.out, word...)
	return json.Valid([]byte(word))
}

func (r *repairer) space() {
	for r.at < len(r.in) && strings.IndexByte(" \t\r\n", r.in[r.at]) >= 0 {
		r.at++
	}
}

// peek returns the next byte, or 0 at the end.
func (r *repairer) peek() byte {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

func (r *repairer) next() byte {
	r.at++
	return r.in[r.at-1]
}

func (r *repairer) emit(c byte) { r.out = append(r.out, c) }

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// A Reading is one interpretation of the arguments that a model wrote: an object.
type Reading struct {
	Args json.RawMessage
	// Guessed marks a reading that is used only if it matches the schema, because the model wrote something else.
	Guessed bool
}

// Readings returns the possible readings of the arguments that a model wrote, the most literal first.
func Readings(raw string) []Reading {
	var all []Reading
	add := func(one Reading) {
		if object(one.Args) {
			all = append(all, one)
			if rest, ok := withoutNulls(one.Args); ok {
				all = append(all, Reading{rest, true})
			}
		}
	}
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" || trimmed == "null" {
		add(Reading{Args: json.RawMessage("{}")}) // how some models call a tool without arguments
	}
	add(Reading{Args: json.RawMessage(trimmed)})
	var inner string
	if json.Unmarshal([]byte(trimmed), &inner) == nil { // an object, encoded twice
		add(Reading{Args: json.RawMessage(inner)})
	}
	if len(all) == 0 {
		if repaired, ok := RepairJSON(raw); ok {
			add(Reading{repaired, true})
		}
	}
	return all
}

// object reports whether args is a JSON object.
func object(args []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(args), []byte("{")) && json.Valid(args)
}

// withoutNulls removes arguments that are null: models write null for arguments that they omit.
func withoutNulls(args json.RawMessage) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return nil, false
	}
	before := len(members)
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name)
		}
	}
	if len(members) == before {
		return nil, false
	}
	rest, err := json.Marshal(members)
	return rest, err == nil
}
