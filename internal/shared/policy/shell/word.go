package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is an argument of a program, as far as the line shows it.
type word struct {
	// text is the value without quotes. If the word is not known, it is the beginning that is certain.
	text string
	// known is set if text is the complete value.
	known bool
	// splits is set if the word may become no word, or several.
	splits bool
}

// literal returns a word with a known value.
func literal(text string) word { return word{text: text, known: true} }

// anything is any number of words that are known only at run time.
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

// readWords reads words. A word with braces is split at them.
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

// decode decodes the text between the quotes of $'…'. It fails if an escape is not of the form that
// Go and all shells read alike.
func decode(s string) (string, bool) {
	var b strings.Builder
	for s != "" {
		c, multibyte, rest, err := strconv.UnquoteChar(s, '\'')
		switch {
		case err != nil || c == 0: // a NUL ends the string in some shells
			return "", false
		case multibyte:
			b.WriteRune(c)
		default:
			b.WriteByte(byte(c)) //nolint:gosec // of one byte, as it is not multibyte
		}
		s = rest
	}
	return b.String(), true
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
