package backend

import (
	"bytes"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// replaceText applies an edit to the content of a text file and returns the new content, of at most [MaxEdit] bytes.
// All bytes outside the replaced text are unchanged.
//
// Models see and write "\n" for every line end. So the text is searched as if all line ends were "\n", and the new
// text gets the line ends of its place. In a file without a line end, it keeps its own.
func replaceText(data []byte, e Edit) ([]byte, Edited, error) {
	if e.Old == e.New {
		return nil, Edited{}, ErrIdentical
	}
	if err := notText(data); err != nil {
		return nil, Edited{}, err
	}
	mark, body := cutBOM(data)
	v := newTextView(body)
	old := plain(e.Old)
	if old == plain(e.New) {
		return nil, Edited{}, ErrLineEnds
	}
	hits := v.count(old)
	if hits == 1 && !e.All {
		hits += v.overlaps(old)
	}
	switch {
	case hits == 0:
		return nil, Edited{}, v.noMatch(old)
	case hits > 1 && !e.All:
		return nil, Edited{}, &NotUniqueError{Count: hits, Lines: v.lines(v.findOverlapping(old))}
	}
	s := v.style(e.New)
	// Replacing a short text everywhere in a large file by a long one can exceed any memory, so the size is checked
	// before the result is built.
	if size := int64(len(data)) + int64(hits)*int64(s.longest()-len(old)); size > MaxEdit {
		return nil, Edited{}, &TooLargeError{Size: size, Limit: MaxEdit}
	}
	out := v.replace(old, s, bytes.Clone(mark))
	return out, Edited{Replaced: hits, Line: v.lines(v.find(old))[0], Version: versionOf(out)}, nil
}

// editMemory returns the maximum memory that [replaceText] takes, in bytes, including the file of that size.
func editMemory(size int64, e Edit) int64 {
	// The file, and its text as a model sees it; four bytes for each "\r
	// "; and either the new file or, to find similar texts, twice the old one.
	memory := 6*size + 2*int64(len(e.New))
	if e.All {
		memory += MaxEdit
	}
	return memory
}

func cutBOM(data []byte) (mark, body []byte) {
	if bytes.HasPrefix(data, bom) {
		return data[:len(bom)], data[len(bom):]
	}
	return nil, data
}

// A textView is the content of a file as a model sees it, and its bytes.
type textView struct {
	raw   []byte
	text  []byte  // raw with "\n" for "\r\n"
	crlfs []int32 // offsets in text of the line ends that are "\r\n" in raw
}

func newTextView(raw []byte) textView {
	v := textView{raw: raw, text: raw}
	n := bytes.Count(raw, []byte("\r\n"))
	if n == 0 {
		return v
	}
	v.text, v.crlfs = make([]byte, 0, len(raw)-n), make([]int32, 0, n)
	for rest := raw; ; {
		before, after, more := bytes.Cut(rest, []byte("\r\n"))
		v.text = append(v.text, before...)
		if !more {
			return v
		}
		v.crlfs = append(v.crlfs, int32(len(v.text))) //nolint:gosec // a file in memory is smaller
		v.text = append(v.text, '\n')
		rest = after
	}
}

// plain returns s as it would appear in the view.
func plain(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// at returns the offset in raw for an offset in text.
func (v textView) at(offset int) int {
	before, _ := slices.BinarySearch(v.crlfs, int32(offset)) //nolint:gosec // a file in memory is smaller
	return offset + before
}

// find yields the positions of old in the text, without overlaps. Only an empty file contains an empty text: replacing
// it fills the file.
func (v textView) find(old string) iter.Seq[int] { return v.findEvery(old, len(old)) }

// findOverlapping yields where old is in the text, also where two places overlap: "aa" is
// twice in "aaa".
func (v textView) findOverlapping(old string) iter.Seq[int] { return v.findEvery(old, 1) }

// findEvery yields where old is in the text, each place at least step bytes behind the one
// before.
func (v textView) findEvery(old string, step int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if old == "" {
			if len(v.text) == 0 {
				yield(0)
			}
			return
		}
		for from := 0; ; {
			i := bytes.Index(v.text[from:], []byte(old))
			if i < 0 || !yield(from+i) {
				return
			}
			from += i + step
		}
	}
}

// overlaps returns how many further occurrences overlap the only position of find, at most [MaxNotUniqueLines]. Finding
// each takes time proportional to the length of old.
func (v textView) overlaps(old string) int {
	more := -1 // for the place itself
	for range v.findOverlapping(old) {
		if more++; more == MaxNotUniqueLines {
			break
		}
	}
	return max(more, 0)
}

// count returns how many positions find yields.
func (v textView) count(old string) int {
	switch {
	case old != "":
		return bytes.Count(v.text, []byte(old))
	case len(v.text) == 0:
		return 1
	}
	return 0
}

// lines returns the line numbers of the first few places.
func (v textView) lines(places iter.Seq[int]) []int {
	lines := make([]int, 0, MaxNotUniqueLines)
	line, from := 1, 0
	for hit := range places {
		line += bytes.Count(v.text[from:hit], []byte("\n"))
		lines = append(lines, line)
		if from = hit; len(lines) == MaxNotUniqueLines {
			break
		}
	}
	return lines
}

// replace appends the content to out, with the new text instead of old.
func (v textView) replace(old string, s style, out []byte) []byte {
	from := 0
	for hit := range v.find(old) {
		start, end := v.at(hit), v.at(hit+len(old))
		out = append(out, v.raw[from:start]...)
		out = append(out, s.at(v.raw[start:end])...)
		from = end
	}
	return append(out, v.raw[from:]...)
}

// A style is a new text, with the forms of line ends in which it can be written.
type style struct {
	unix, windows string
	// usual is the most frequent line end of the file, for replaced texts without one.
	usual string
}

func (v textView) style(fresh string) style {
	if !bytes.Contains(v.text, []byte("\n")) { // as it was given
		return style{unix: fresh, windows: fresh, usual: fresh}
	}
	s := style{unix: plain(fresh)}
	s.windows = strings.ReplaceAll(s.unix, "\n", "\r\n")
	s.usual = s.unix
	if len(v.crlfs) > 0 && 2*len(v.crlfs) >= bytes.Count(v.text, []byte("\n")) {
		s.usual = s.windows
	}
	return s
}

// longest returns the maximum size of the new text.
func (s style) longest() int { return max(len(s.unix), len(s.windows)) }

// at returns the new text with the line ends of the replaced text.
func (s style) at(replaced []byte) string {
	switch {
	case bytes.Contains(replaced, []byte("\r\n")):
		return s.windows
	case bytes.Contains(replaced, []byte("\n")):
		return s.unix
	}
	return s.usual
}

// noMatch returns the error for a text that does not occur, with a hint at similar text. The match itself is never
// relaxed: the model reads the hint and decides.
func (v textView) noMatch(old string) *NoMatchError {
	if stripped, ok := strings.CutSuffix(old, "\n"); ok && stripped != "" && bytes.HasSuffix(v.text, []byte(stripped)) {
		return &NoMatchError{Hint: HintFinalNewline, Count: bytes.Count(v.text, []byte(stripped))}
	}
	// A large file is compared at most twice.
	have := normalizeSpace(v.text)
	if line := lineOf(have, old); line > 0 {
		return &NoMatchError{Hint: HintWhitespace, Line: line}
	}
	if line := lineOf(have, withoutNumbers(old)); line > 0 {
		return &NoMatchError{Hint: HintLineNumbers, Line: line}
	}
	return &NoMatchError{}
}

// lineOf returns the line of a normalized content at which whole lines of a text are,
// counted from 1; 0: nowhere.
func lineOf(have []byte, text string) int {
	want := bytes.Trim(normalizeSpace([]byte(text)), "\n")
	if len(want) == 0 {
		return 0
	}
	// Surrounding line ends make both sides match whole lines only.
	i := bytes.Index(have, slices.Concat(newline, want, newline))
	if i < 0 {
		return 0
	}
	return 1 + bytes.Count(have[:i], newline)
}

// lineNumber matches the number that a tool shows before a line, after the name of the file if there is one, and the
// separator. Text can begin like this too: only the content of the file decides.
var lineNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[ \t]*(?:\S+:)?\d+(?:\.\d+)?(?:[ \t]*[→|:]|[ \t]|$)`)
})

// withoutNumbers returns a text without the numbers at the beginning of its lines; empty: it has none.
func withoutNumbers(text string) string {
	lines, found := strings.Split(text, "\n"), false
	for i, line := range lines {
		if label := lineNumber().FindString(line); label != "" {
			lines[i], found = line[len(label):], true
		}
	}
	if !found {
		return ""
	}
	return strings.Join(lines, "\n")
}

// normalizeSpace returns text without the differences that HintWhitespace is about,
// between two line ends.
func normalizeSpace(text []byte) []byte {
	out := make([]byte, 0, len(text)+2*len(newline))
	for line := range bytes.SplitSeq(text, newline) {
		out = append(out, '\n')
		first := true
		for field := range bytes.FieldsSeq(line) {
			if !first {
				out = append(out, ' ')
			}
			first = false
			out = append(out, field...)
		}
	}
	return append(out, '\n')
}
