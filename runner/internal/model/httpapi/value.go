package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxCount is more tokens than any answer has. Larger values from an endpoint are cut, so that sums do not overflow.
const maxCount = 1_000_000_000

// maxCost, a million dollars, is more than any answer costs.
const maxCost = 1_000_000_000_000

// placesUSD are the decimal places between a dollar and a millionth of it.
const placesUSD = 6

// A Count is a number of tokens. Decoding bounds it, and makes it 0 if it is negative.
type Count int64

// UnmarshalJSON accepts any value. A value that is not a number is 0.
func (c *Count) UnmarshalJSON(data []byte) error {
	if n, ok := Decimal(string(data), 0); ok {
		*c = Count(min(n, maxCount))
	}
	return nil
}

// Decimal returns s × 10^shift, rounded half up, for a number that is not negative; false: s is not such a number, or
// the result is too large. No float is involved: cost is added up exactly.
func Decimal(s string, shift int) (int64, bool) {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -100 || e > 100 {
			return 0, false
		}
		shift += e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	shift -= len(fraction)
	if spare := len(digits) - 18; spare > 0 { // beyond what int64 holds, and beyond any meaning
		digits, shift = digits[:18], shift+spare
	}
	if digits == "" {
		return 0, strings.Contains(mantissa, "0")
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, false
	}
	return scale(int64(n), shift)
}

// scale returns n × 10^shift, rounded half up.
func scale(n int64, shift int) (int64, bool) {
	for ; shift > 0; shift-- {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	for ; shift < -1 && n > 0; shift++ {
		n /= 10
	}
	if shift < 0 {
		n = (n + 5) / 10
	}
	return n, true
}

// A Cost is a price in US dollars: a number, a number as text, or an object with
// a total as Perplexity writes it.
type Cost struct {
	MicroUSD int64 // millionths of a dollar
	Known    bool
}

// NewCost returns the cost of n × 10^places millionths of a dollar.
func NewCost(n string, places int) Cost {
	c := Cost{}
	c.MicroUSD, c.Known = Decimal(n, places)
	c.MicroUSD = min(c.MicroUSD, maxCost)
	return c
}

// UnmarshalJSON accepts any value. A value that is not a price is unknown.
func (c *Cost) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var parts struct {
			Total json.Number `json:"total_cost"`
		}
		_ = json.Unmarshal(data, &parts) // what is no total is no price
		data = []byte(parts.Total)
	}
	*c = NewCost(strings.Trim(string(data), `"`), placesUSD)
	return nil
}

// placesTicks are the decimal places between xAI's unit (ten thousand million per dollar) and a millionth of a dollar.
const placesTicks = -4

// Ticks is a price as xAI writes it.
type Ticks Cost

// UnmarshalJSON accepts any value. A value that is not a number is unknown.
func (t *Ticks) UnmarshalJSON(data []byte) error {
	*t = Ticks(NewCost(string(data), placesTicks))
	return nil
}

// Text is a string. Any other value is read as an empty one.
type Text string

// UnmarshalJSON accepts any value.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = Text(String(data))
	return nil
}

// Unmarshal decodes JSON into v. A value of an unexpected type leaves its field
// empty; only what is not JSON at all is an error.
func Unmarshal(data []byte, v any) error { return IgnoreTypeErrors(jsonv1.Unmarshal(data, v)) }

// IgnoreTypeErrors returns an error of encoding/json unless it is that a value has an
// unexpected type: the decoder continues after it.
func IgnoreTypeErrors(err error) error {
	if _, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// String returns the string that a JSON value is, and "" for any other value.
func String(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	text, _ := jsontext.AppendUnquote(nil, value) // the error is of a half of a surrogate pair, or of bytes that are not UTF-8
	return string(text)
}

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

// A Report is the usage of an answer as the APIs of OpenAI, and others after them, report it.
type Report struct {
	Input, Output, Total  Count
	Reasoning             Count // of Output
	CacheRead, CacheWrite Count // of Input
	Cost                  Cost
	Ticks                 Ticks
}

// Usage returns the usage of a step.
func (r Report) Usage() step.Usage {
	u := step.Usage{
		InputTokens: int64(r.Input), OutputTokens: int64(r.Output), ReasoningTokens: int64(r.Reasoning),
		CacheReadTokens: int64(min(r.CacheRead, r.Input)),
	}
	u.CacheWriteTokens = min(int64(r.CacheWrite), u.InputTokens-u.CacheReadTokens)
	switch {
	case r.Total > r.Input+r.Output: // xAI and Gemini count reasoning only in the total
		u.OutputTokens = int64(r.Total - r.Input)
	case u.ReasoningTokens > u.OutputTokens: // Vercel nowhere but in the details
		u.OutputTokens += u.ReasoningTokens
	}
	price := r.Cost
	if !price.Known {
		price = Cost(r.Ticks)
	}
	u.CostMicroUSD, u.Priced = price.MicroUSD, price.Known
	return u
}
