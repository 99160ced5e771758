package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Most of a journal are long texts, and encoding/json reads each of them several times. So the long texts of a record
// are removed before the rest is decoded, and are read here, once. Anything that is not exactly in the form that this
// package writes is left to encoding/json, so that the same records are read and refused.
//
// Without this, 1,000 steps of 20 KB take 243 ms of CPU from the start to the next model call instead of 151 ms, which
// on the machine of docs/performance.md is 340 ms instead of 210 ms, beyond the bar of 300 ms. If encoding/json reads
// the texts by themselves, it is 240 ms of CPU too.

// decodeRecord reads the record of a line.
func decodeRecord(body []byte) (Record, error) {
	var r Record
	e := textExtractor{in: body}
	if e.record() && len(e.texts) > 0 && e.decode(&r) {
		return r, nil
	}
	r = Record{}
	err := json.Unmarshal(body, &r)
	return r, err
}

// longText is the size in bytes from which a text is removed before decoding.
const longText = 512

// A textExtractor removes the long texts from a record. Each method reads what it is named for and reports whether that
// has the expected form. None checks the bytes that it skips, which encoding/json does afterwards.
type textExtractor struct {
	in    []byte
	at    int
	rest  []byte // the record without the texts
	from  int    // where in what is not yet in rest begins
	part  int    // the one that is being read
	texts []extractedText
}

// An extractedText is the text of a part, in the form between its quotes.
type extractedText struct {
	part int
	raw  []byte
}

// decode decodes the rest of the record and inserts the texts again.
func (e *textExtractor) decode(r *Record) bool {
	e.rest = append(e.rest, e.in[e.from:]...)
	if json.Unmarshal(e.rest, r) != nil || r.Step == nil || len(r.Step.Parts) != e.part {
		return false
	}
	for _, t := range e.texts {
		text, ok := unquote(t.raw)
		if !ok {
			return false
		}
		r.Step.Parts[t.part].Text = text
	}
	return true
}

func (e *textExtractor) record() bool { return e.members("step", e.step) }
func (e *textExtractor) step() bool   { return e.members("parts", e.parts) }

func (e *textExtractor) parts() bool {
	if !e.accept('[') {
		return false
	}
	for e.members("text", e.text) {
		e.part++
		if !e.accept(',') {
			return e.accept(']')
		}
	}
	return false
}

// text removes a string if it is long.
func (e *textExtractor) text() bool {
	start := e.at + 1
	if !e.quoted() {
		return false
	}
	if end := e.at - 1; end-start >= longText {
		e.rest = append(e.rest, e.in[e.from:start]...)
		e.from = end
		e.texts = append(e.texts, extractedText{part: e.part, raw: e.in[start:end]})
	}
	return true
}

// members reads the members of an object. The wanted one may occur once, and in no other case of letters, since
// encoding/json ignores case.
func (e *textExtractor) members(want string, value func() bool) bool {
	if !e.accept('{') {
		return false
	}
	for seen := false; ; {
		name, ok := e.name()
		read := e.skip
		if bytes.EqualFold(name, []byte(want)) {
			ok = ok && !seen && string(name) == want
			seen, read = true, value
		}
		if !ok || !read() {
			return false
		}
		if !e.accept(',') {
			return e.accept('}')
		}
	}
}

// name reads the name of a member. It must have no escapes.
func (e *textExtractor) name() ([]byte, bool) {
	start := e.at + 1
	if !e.quoted() {
		return nil, false
	}
	name := e.in[start : e.at-1]
	return name, !bytes.ContainsRune(name, '\\') && e.accept(':')
}

// skip skips a value.
func (e *textExtractor) skip() bool {
	depth := 0
	for e.at < len(e.in) {
		switch e.in[e.at] {
		case '"':
			if !e.quoted() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return true
			}
			if e.in[e.at] != ',' {
				depth--
			}
		}
		e.at++
	}
	return false
}

// quoted skips a string.
func (e *textExtractor) quoted() bool {
	if !e.accept('"') {
		return false
	}
	for {
		i := bytes.IndexByte(e.in[e.at:], '"')
		if i < 0 {
			return false
		}
		quote := e.at + i
		e.at = quote + 1
		escapes := 0
		for e.in[quote-1-escapes] == '\\' { // ends at the opening quote at the latest
			escapes++
		}
		if escapes%2 == 0 {
			return true
		}
	}
}

// accept skips a byte if it is next.
func (e *textExtractor) accept(c byte) bool {
	if e.at == len(e.in) || e.in[e.at] != c {
		return false
	}
	e.at++
	return true
}

// unquote decodes a string from the form between its quotes. It returns false for any form that this package does not
// write, which is left to encoding/json.
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
			return clipped(&out), true
		}
		out.Write(raw[:i])
		n, ok := unescape(&out, raw[i+1:])
		if !ok {
			return "", false
		}
		raw = raw[i+1+n:]
	}
}

// clipped returns the built string in memory of about its own size.
func clipped(b *strings.Builder) string {
	if b.Len() < b.Cap()/4*3 {
		return strings.Clone(b.String())
	}
	return b.String()
}

// plain reports whether a string, as it is written, is UTF-8 without control
// characters.
func plain(raw []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	rest := raw
	for len(rest) >= 8 {
		// The lowest byte below 0x20 gets a high bit, and so do bytes above it at most.
		x := binary.LittleEndian.Uint64(rest)
		if (x-ones*0x20)&^x&highs != 0 {
			return false
		}
		rest = rest[8:]
	}
	return printable(rest) && utf8.Valid(raw)
}

func printable(raw []byte) bool {
	for _, c := range raw {
		if c < 0x20 {
			return false
		}
	}
	return true
}

// escapes are the characters that follow a backslash, with what they stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape writes the character of the escape after a backslash and returns the length of the escape.
func unescape(out *strings.Builder, raw []byte) (int, bool) {
	switch {
	case len(raw) == 0:
		return 0, false
	case escapes[raw[0]] != 0:
		out.WriteByte(escapes[raw[0]])
		return 1, true
	}
	const width = len("u0000")
	c, ok := unit(raw)
	if !ok {
		return 0, false
	}
	if !utf16.IsSurrogate(c) {
		out.WriteRune(c)
		return width, true
	}
	// A half alone stands for nothing.
	if len(raw) > width && raw[width] == '\\' {
		if low, ok := unit(raw[width+1:]); ok && utf16.DecodeRune(c, low) != utf8.RuneError {
			out.WriteRune(utf16.DecodeRune(c, low))
			return 2*width + 1, true
		}
	}
	out.WriteRune(utf8.RuneError)
	return width, true
}

// unit reads "u" and four digits.
func unit(raw []byte) (rune, bool) {
	if len(raw) < len("u0000") || raw[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	return rune(n), err == nil
}

// What runners of before wrote under other names is read by what is in this file alone.

// formerNotice is the former name of [MarkNotice].
const formerNotice = "owed"

// UnmarshalText reads the type of a mark, also by a former name.
func (t *MarkType) UnmarshalText(text []byte) error {
	*t = MarkType(text)
	if *t == formerNotice {
		*t = MarkNotice
	}
	return nil
}

// Folders of the state directory for the output of commands.
const (
	commandsFolder = "commands"
	formerCommands = "hands"
)

// CommandsDir returns the folder of a state directory for the output of commands. A folder with the former name is
// renamed; if that fails, it is used with its former name.
func CommandsDir(state string) string {
	dir, former := filepath.Join(state, commandsFolder), filepath.Join(state, formerCommands)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir
	}
	if err := os.Rename(former, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return former
	}
	return dir
}
