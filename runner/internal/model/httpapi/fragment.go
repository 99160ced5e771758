package httpapi

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// Servers that count text in UTF-16 units may end one delta with the first half
// of a surrogate pair and begin the next with the second, each written as an
// escape of JSON (RFC 8259, section 7). Decoded one by one, both halves would be
// lost. ParseFragment keeps such a half in the three bytes that WTF-8 has for it, which
// are no valid UTF-8, until Join or Whole puts the pair together.

const (
	escapeSize = len(`\ud83d`)
	halfSize   = 3 // bytes of a half in WTF-8
)

// Fragment is a part of a text, with the halves of surrogate pairs at its ends.
// Any value but a string is read as an empty one.
type Fragment string

// UnmarshalJSON accepts any value.
func (f *Fragment) UnmarshalJSON(data []byte) error {
	*f = Fragment(ParseFragment(data))
	return nil
}

// UnmarshalJSONFrom does the same without a copy of the value.
func (f *Fragment) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	value, err := in.ReadValue()
	if err == nil {
		*f = Fragment(ParseFragment(value))
	}
	return err
}

// ParseFragment returns the string of a JSON value, as String does, but keeps the half of a surrogate pair at its
// beginning or end.
func ParseFragment(value []byte) string {
	if len(value) < escapeSize+2 || value[0] != '"' || bytes.IndexByte(value, '\\') < 0 {
		return String(value)
	}
	inner := value[1 : len(value)-1]
	var before, after string
	if r, ok := surrogate(inner); ok && isSecond(r) {
		before, inner = encodeHalf(r), inner[escapeSize:]
	}
	if end := len(inner) - escapeSize; end >= 0 && !isEscaped(inner[:end]) {
		if r, ok := surrogate(inner[end:]); ok && !isSecond(r) {
			after, inner = encodeHalf(r), inner[:end]
		}
	}
	if before == "" && after == "" {
		return String(value)
	}
	quoted := append(append([]byte{'"'}, inner...), '"')
	return before + String(quoted) + after
}

// surrogate returns the half of a surrogate pair whose escape is at the beginning of a text.
func surrogate(text []byte) (rune, bool) {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeSize]), 16, 16)
	return rune(n), err == nil && utf16.IsSurrogate(rune(n))
}

// isSecond reports whether a half is the second of its pair.
func isSecond(half rune) bool { return half >= 0xdc00 }

// isEscaped reports whether a backslash behind a text would itself be escaped.
func isEscaped(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}

func encodeHalf(r rune) string {
	return string([]byte{0xe0 | byte(r>>12&0xf), 0x80 | byte(r>>6&0x3f), 0x80 | byte(r&0x3f)})
}

// halfAt returns the half of a surrogate pair at position i.
func halfAt(s string, i int) (rune, bool) {
	if i < 0 || i+halfSize > len(s) || s[i] != 0xed || s[i+1] < 0xa0 {
		return 0, false
	}
	return rune(s[i]&0xf)<<12 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f), true
}

// Whole joins the halves of surrogate pairs in a text that was concatenated from Fragments. A half without the other
// becomes U+FFFD.
func Whole(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		first, isHalf := halfAt(s, i)
		if !isHalf {
			r, size := utf8.DecodeRuneInString(s[i:])
			out.WriteRune(r)
			i += size
			continue
		}
		i += halfSize
		second, _ := halfAt(s, i)
		r := utf16.DecodeRune(first, second)
		if r != utf8.RuneError {
			i += halfSize
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Join returns a stream without split surrogate pairs: a half at the end of a delta is held back until the next delta
// of the same text, of the same reasoning, or of the arguments of the same call.
func Join(stream iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var j joiner
		for d, err := range stream {
			for _, late := range j.release(d, err != nil) {
				if !yield(late, nil) {
					return
				}
			}
			j.take(&d)
			if !yield(d, err) {
				return
			}
		}
	}
}

// A joiner holds the halves that wait for the other.
type joiner struct {
	text, thinking string
	args           map[int]string // by the index of the call
}

// take puts held-back halves before the texts of a delta, and holds back the half at the end of each.
func (j *joiner) take(d *model.Delta) {
	if d.Text != "" {
		d.Text, j.text = hold(j.text, d.Text)
	}
	if d.Thinking != "" {
		d.Thinking, j.thinking = hold(j.thinking, d.Thinking)
	}
	if d.Call == nil {
		return
	}
	held := j.args[d.Call.Index]
	if d.Call.Replace {
		held = ""
	}
	args, half := hold(held, d.Call.Args)
	if half != "" && j.args == nil {
		j.args = map[int]string{}
	}
	if held != "" || half != "" {
		j.args[d.Call.Index] = half
	}
	if args != d.Call.Args {
		call := *d.Call
		call.Args = args
		d.Call = &call
	}
}

// hold joins a piece to the half before it. It returns the first half of a pair at the end separately.
func hold(held, piece string) (text, half string) {
	text = held + piece
	if r, ok := halfAt(text, len(text)-halfSize); ok && !isSecond(r) {
		text, half = text[:len(text)-halfSize], text[len(text)-halfSize:]
	}
	return Whole(text), half
}

// begins reports whether a delta begins a part of an answer that is neither text nor reasoning.
func begins(d model.Delta) bool {
	return d.Signature != "" || d.Provider != nil
}

// release returns the halves whose other half does not follow: a delta begins another part of the answer, or the answer
// ends.
func (j *joiner) release(d model.Delta, failed bool) []model.Delta {
	if j.text == "" && j.thinking == "" && len(j.args) == 0 {
		return nil
	}
	ends := failed || d.Finish != "" || d.Continued
	other := ends || begins(d)
	var late []model.Delta
	if j.text != "" && (other || d.Thinking != "") {
		late, j.text = append(late, model.Delta{Text: Whole(j.text)}), ""
	}
	if j.thinking != "" && (other || d.Text != "") {
		late, j.thinking = append(late, model.Delta{Thinking: Whole(j.thinking)}), ""
	}
	if !ends {
		return late
	}
	return append(late, j.releaseArgs()...)
}

// releaseArgs returns the halves that arguments of calls end with.
func (j *joiner) releaseArgs() []model.Delta {
	var late []model.Delta
	for index, half := range j.args {
		if half != "" {
			late = append(late, model.Delta{Call: &model.CallDelta{Index: index, Args: Whole(half)}})
		}
	}
	j.args = nil
	return late
}
