package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A word is an argument of a program, as far as the line shows it.
type word struct {
	// text is the value without quotes; of a word that is not known, its certain
	// beginning.
	text string
	// known is set if text is the complete value.
	known bool
	// splits is set if the word may become no word, or several.
	splits bool
}

// literal returns a word with a known value.
func literal(text string) word { return word{text: text, known: true} }

// anything stands for words that are only known when the line runs.
var anything = word{splits: true}

// isOption reports whether the word is an option.
func (w word) isOption() bool { return len(w.text) > 1 && w.text[0] == '-' }

// show returns the word for a reason.
func (w word) show() string {
	if w.known && w.text == "" {
		return `""`
	}
	if w.known {
		return excerpt(w.text)
	}
	return excerpt(w.text) + "…"
}

// readWords reads words. A word with braces becomes the pieces between them.
func readWords(all []*syntax.Word) []word {
	var read []word
	for _, w := range all {
		one := readWord(w)
		if braced(w) {
			read = append(read, anything)
			if !one.known {
				continue
			}
			for piece := range strings.FieldsFuncSeq(one.text, func(c rune) bool { return c == '{' || c == '}' || c == ',' }) {
				read = append(read, literal(piece))
			}
			continue
		}
		read = append(read, one)
	}
	return read
}

// braced reports whether bash may make several words of one: {a,b}, {1..9}.
func braced(w *syntax.Word) bool {
	var bare strings.Builder
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			bare.WriteString(lit.Value)
		}
	}
	_, rest, open := strings.Cut(bare.String(), "{")
	return open && strings.Contains(rest, "}") && (strings.Contains(rest, ",") || strings.Contains(rest, ".."))
}

// readWord removes quotes.
func readWord(w *syntax.Word) word {
	if w == nil {
		return literal("")
	}
	v := value{known: true}
	for _, p := range w.Parts {
		v.part(p)
	}
	return word{text: v.text.String(), known: v.known, splits: v.splits}
}

// A value collects the parts of a word.
type value struct {
	text   strings.Builder
	known  bool
	splits bool
}

func (v *value) unknown() { v.known = false }

// add appends text, unless an earlier part is unknown.
func (v *value) add(text string) {
	if v.known {
		v.text.WriteString(text)
	}
}

func (v *value) part(p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		v.bare(p.Value)
	case *syntax.SglQuoted:
		v.single(p)
	case *syntax.DblQuoted:
		v.double(p)
	case *syntax.ParamExp, *syntax.CmdSubst:
		v.unknown()
		v.splits = true
	default: // arithmetic, process substitution, patterns
		v.unknown()
	}
}

// bare reads text outside quotes.
func (v *value) bare(s string) {
	text, pattern := unescape(s, func(byte) bool { return true })
	if pattern {
		before, _, _ := strings.Cut(text, "*")
		before = before[:min(len(before), strings.IndexAny(text, "*?["))]
		v.add(before)
		v.unknown()
		return
	}
	v.add(text)
}

func (v *value) single(p *syntax.SglQuoted) {
	if !p.Dollar {
		v.add(p.Value)
		return
	}
	text, ok := decode(p.Value)
	if !ok {
		v.unknown()
		return
	}
	v.add(text)
}

// double reads double quotes. The content is one word, except for "$@".
func (v *value) double(p *syntax.DblQuoted) {
	for _, part := range p.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			text, _ := unescape(lit.Value, func(c byte) bool { return strings.IndexByte("$`\"\\\n", c) >= 0 })
			v.add(text)
			continue
		}
		v.unknown()
		if exp, ok := part.(*syntax.ParamExp); ok && isAllItems(exp) {
			v.splits = true
		}
	}
}

// isAllItems reports whether an expansion has all items: "$@", "${a[@]}".
func isAllItems(p *syntax.ParamExp) bool {
	if p.Param != nil && p.Param.Value == "@" || p.Names != 0 || p.Excl {
		return true
	}
	index, ok := p.Index.(*syntax.Word)
	return ok && index.Lit() == "@"
}

// unescape removes backslashes that quote a character, and reports whether the
// rest is a pattern for file names.
func unescape(s string, quotes func(byte) bool) (text string, pattern bool) {
	if !strings.ContainsAny(s, "\\*?[") {
		return s, false
	}
	var b strings.Builder
	bracket := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) && quotes(s[i+1]) {
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
			continue
		}
		pattern = pattern || c == '*' || c == '?' || c == ']' && bracket
		bracket = bracket || c == '['
		b.WriteByte(c)
	}
	return b.String(), pattern
}

// plainEscapes are the escapes of $'…' that stand for one character.
var plainEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1b, 'E': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// decode decodes the text between the quotes of $'…'. It fails if shells decode it differently.
func decode(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		if c, ok := plainEscapes[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		text, used, ok := numbered(s[i:])
		if !ok {
			return "", false
		}
		b.WriteString(text)
		i += used - 1
	}
	return b.String(), true
}

// numbered decodes an escape with the number of a character, without its
// backslash, and returns how many bytes it read.
func numbered(s string) (text string, used int, ok bool) {
	base, start, most := 8, 0, 3
	switch s[0] {
	case 'x':
		base, start, most = 16, 1, 2
	case 'u':
		base, start, most = 16, 1, 4
	case 'U':
		base, start, most = 16, 1, 8
	}
	end := start
	for end < len(s) && end-start < most && isDigit(s[end], base) {
		end++
	}
	n, err := strconv.ParseUint(s[start:end], base, 32)
	if err != nil || n == 0 || s[0] != 'x' && base == 16 && !utf8.ValidRune(rune(n)) { //nolint:gosec // at most 32 bits; a NUL ends the string in some shells; bash writes surrogates
		return "", 0, false
	}
	if base == 8 && n == 0o400 {
		return "", 0, false // a byte of 0
	}
	if s[0] == 'u' || s[0] == 'U' {
		return string(rune(n)), end, true //nolint:gosec // at most 32 bits
	}
	return string([]byte{byte(n)}), end, true //nolint:gosec // three octal digits are cut to a byte by shells too
}

// isDigit reports whether c is a digit in a base.
func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(c), base, 8)
	return err == nil
}
