package args

import (
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

func (m *repairer) value(depth int) bool {
	m.space()
	switch c := m.peek(); {
	case depth > maxNesting:
		return false
	case c == '{':
		return m.members('}', depth, m.member)
	case c == '[':
		return m.members(']', depth, m.value)
	case c == '"', c == '\'':
		return m.text()
	default:
		return m.word()
	}
}

// members reads members up to the closing bracket, or up to the end of the text.
func (m *repairer) members(closer byte, depth int, one func(depth int) bool) bool {
	m.emit(m.next())
	for first := true; ; first = false {
		m.space()
		switch m.peek() {
		case closer:
			m.at++
			fallthrough
		case 0:
			m.emit(closer)
			return true
		}
		if !first {
			m.emit(',')
		}
		if !one(depth + 1) {
			return false
		}
		if !m.separated(closer) {
			return false
		}
	}
}

// separated reads the comma between two members, or detects that no member follows.
func (m *repairer) separated(closer byte) bool {
	m.space()
	switch m.peek() {
	case ',':
		m.at++
		return true
	case closer, 0:
		return true
	}
	return false
}

func (m *repairer) member(depth int) bool {
	if c := m.peek(); c == '"' || c == '\'' {
		if !m.text() {
			return false
		}
	} else if !m.name() {
		return false
	}
	m.space()
	if m.peek() != ':' {
		return false
	}
	m.emit(m.next())
	return m.value(depth)
}

// name reads a bare name and quotes it.
func (m *repairer) name() bool {
	start := m.at
	for m.at < len(m.in) && (letter(m.in[m.at]) || m.at > start && digit(m.in[m.at])) {
		m.at++
	}
	if m.at == start {
		return false
	}
	m.out = append(m.out, '"')
	m.out = append(m.out, m.in[start:m.at]...)
	m.out = append(m.out, '"')
	return true
}

// text reads a string that ends with its opening quote.
func (m *repairer) text() bool {
	quote := m.next()
	m.emit('"')
	for m.at < len(m.in) {
		c := m.next()
		switch {
		case c == quote:
			m.emit('"')
			return true
		case c == '\\':
			if !m.escape() {
				return false
			}
		case c == '"': // inside single quotes
			m.out = append(m.out, `\"`...)
		case c < ' ':
			m.out = append(m.out, control(c)...)
		default:
			m.emit(c)
		}
	}
	return false // the rest is unknown
}

// escape reads what follows a backslash.
func (m *repairer) escape() bool {
	if m.at == len(m.in) {
		return false
	}
	c := m.next()
	switch {
	case c == '\'':
		m.emit(c)
	case strings.IndexByte(`"\/bfnrt`, c) >= 0, c == 'u' && m.hex():
		m.out = append(m.out, '\\', c)
	case c < ' ': // the end of a line, as a shell would hide it
		m.out = append(m.out, control(c)...)
	default: // as in "\d+", where the backslash was meant
		m.out = append(m.out, '\\', '\\', c)
	}
	return true
}

// hex reports whether four hexadecimal digits follow.
func (m *repairer) hex() bool {
	digits := m.in[m.at:min(m.at+4, len(m.in))]
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
func (m *repairer) word() bool {
	start := m.at
	for m.at < len(m.in) && (letter(m.in[m.at]) || digit(m.in[m.at]) || strings.IndexByte("+-.", m.in[m.at]) >= 0) {
		m.at++
	}
	word := m.in[start:m.at]
	switch word {
	case "True":
		word = "true"
	case "False":
		word = "false"
	case "None":
		word = "null"
	}
	m.out = append(m.out, word...)
	return json.Valid([]byte(word))
}

func (m *repairer) space() {
	for m.at < len(m.in) && strings.IndexByte(" \t\r\n", m.in[m.at]) >= 0 {
		m.at++
	}
}

// peek returns the next byte, or 0 at the end.
func (m *repairer) peek() byte {
	if m.at < len(m.in) {
		return m.in[m.at]
	}
	return 0
}

func (m *repairer) next() byte {
	m.at++
	return m.in[m.at-1]
}

func (m *repairer) emit(c byte) { m.out = append(m.out, c) }

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
