package journal

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Most of a journal are long texts, and encoding/json reads each of them several
// times. So the long texts of a record are taken out before the rest is decoded, and
// read here, once. Anything that is not just as this package writes it is left to
// encoding/json, so that what is read, and what is refused, is the same.
//
// Without this, 1,000 steps of 20 KB take 243 ms of CPU from the start to the next
// model call instead of 151 ms, which on the machine of docs/performance.md is 340 ms
// instead of 210 ms, beyond the bar of 300 ms. If encoding/json reads the texts by
// themselves, it is 240 ms of CPU too.

// decodeRecord reads the record of a line.
func decodeRecord(body []byte) (Record, error) {
	var r Record
	l := lifter{in: body}
	if l.record() && len(l.texts) > 0 && l.decode(&r) {
		return r, nil
	}
	r = Record{}
	err := json.Unmarshal(body, &r)
	return r, err
}

// longText is from how many bytes on a text is worth taking out.
const longText = 512

// A lifter takes the long texts out of a record. Its methods read what they are
// named for and report whether it is as expected; none of them checks what they
// pass over, which encoding/json does afterwards.
type lifter struct {
	in    []byte
	at    int
	rest  []byte // the record without the texts
	from  int    // where in what is not yet in rest begins
	part  int    // the one that is being read
	texts []lifted
}

// A lifted is the text of a part, as it is written between its quotes.
type lifted struct {
	part int
	raw  []byte
}

// decode reads the record from what is left and puts the texts back.
func (l *lifter) decode(r *Record) bool {
	l.rest = append(l.rest, l.in[l.from:]...)
	if json.Unmarshal(l.rest, r) != nil || r.Step == nil || len(r.Step.Parts) != l.part {
		return false
	}
	for _, t := range l.texts {
		text, ok := unquote(t.raw)
		if !ok {
			return false
		}
		r.Step.Parts[t.part].Text = text
	}
	return true
}

func (l *lifter) record() bool { return l.members("step", l.step) }
func (l *lifter) step() bool   { return l.members("parts", l.parts) }

func (l *lifter) parts() bool {
	if !l.accept('[') {
		return false
	}
	for l.members("text", l.text) {
		l.part++
		if !l.accept(',') {
			return l.accept(']')
		}
	}
	return false
}

// text takes a string out, if it is long.
func (l *lifter) text() bool {
	start := l.at + 1
	if !l.quoted() {
		return false
	}
	if end := l.at - 1; end-start >= longText {
		l.rest = append(l.rest, l.in[l.from:start]...)
		l.from = end
		l.texts = append(l.texts, lifted{part: l.part, raw: l.in[start:end]})
	}
	return true
}

// members reads an object that has the name wanted once at most, and in no
// other spelling: encoding/json takes any case.
func (l *lifter) members(want string, value func() bool) bool {
	if !l.accept('{') {
		return false
	}
	for seen := false; ; {
		name, ok := l.name()
		read := l.skip
		if bytes.EqualFold(name, []byte(want)) {
			ok = ok && !seen && string(name) == want
			seen, read = true, value
		}
		if !ok || !read() {
			return false
		}
		if !l.accept(',') {
			return l.accept('}')
		}
	}
}

// name reads the name of a member, one without escapes.
func (l *lifter) name() ([]byte, bool) {
	start := l.at + 1
	if !l.quoted() {
		return nil, false
	}
	name := l.in[start : l.at-1]
	return name, bytes.IndexByte(name, '\\') < 0 && l.accept(':')
}

// skip passes over a value.
func (l *lifter) skip() bool {
	depth := 0
	for l.at < len(l.in) {
		switch l.in[l.at] {
		case '"':
			if !l.quoted() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return true
			}
			if l.in[l.at] != ',' {
				depth--
			}
		}
		l.at++
	}
	return false
}

// quoted passes over a string.
func (l *lifter) quoted() bool {
	if !l.accept('"') {
		return false
	}
	for {
		i := bytes.IndexByte(l.in[l.at:], '"')
		if i < 0 {
			return false
		}
		quote := l.at + i
		l.at = quote + 1
		escapes := 0
		for l.in[quote-1-escapes] == '\\' { // ends at the opening quote at the latest
			escapes++
		}
		if escapes%2 == 0 {
			return true
		}
	}
}

// accept passes over a byte, if it is there.
func (l *lifter) accept(c byte) bool {
	if l.at == len(l.in) || l.in[l.at] != c {
		return false
	}
	l.at++
	return true
}

// unquote is the string that is written so between its quotes. It leaves what
// is no string, or not one that this package writes, to encoding/json.
func unquote(raw []byte) (string, bool) {
	if !plain(raw) {
		return "", false
	}
	var out strings.Builder
	out.Grow(len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			out.Write(raw)
			return tight(&out), true
		}
		out.Write(raw[:i])
		n, ok := unescape(&out, raw[i+1:])
		if !ok {
			return "", false
		}
		raw = raw[i+1+n:]
	}
}

// tight is what was built, without much more memory than it takes.
func tight(b *strings.Builder) string {
	if b.Len() < b.Cap()/4*3 {
		return strings.Clone(b.String())
	}
	return b.String()
}
