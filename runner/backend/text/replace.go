package text

import (
	"bytes"
	"sort"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// Replace applies an edit to the content of a file and returns the new content.
// Every byte outside the replaced text stays.
//
// Models see and write "\n" for every line end. So in a file that has "\r\n"
// the text is looked for as if all line ends were "\n", and the new text takes
// the line ends of the place where it goes.
func Replace(data []byte, e backend.Edit) ([]byte, backend.Edited, error) {
	if e.Old == e.New {
		return nil, backend.Edited{}, backend.ErrIdentical
	}
	mark, body := cutBOM(data)
	v := view(body)
	old := v.plain(e.Old)
	hits := v.find(old)
	switch {
	case len(hits) == 0:
		return nil, backend.Edited{}, v.nearly(old)
	case len(hits) > 1 && !e.All:
		return nil, backend.Edited{}, &backend.NotUniqueError{Count: len(hits), Lines: v.lines(hits)}
	}
	out := v.replace(hits, len(old), e.New)
	out = append(bytes.Clone(mark), out...)
	return out, backend.Edited{Replaced: len(hits), Line: v.lines(hits)[0], Version: Version(out)}, nil
}

func cutBOM(data []byte) (mark, body []byte) {
	if bytes.HasPrefix(data, bom) {
		return data[:len(bom)], data[len(bom):]
	}
	return nil, data
}

// A sight is the content of a file as a model sees it, beside what it is.
type sight struct {
	raw  []byte
	text []byte // raw with "\n" for "\r\n"
	cuts []int  // offsets in text of the line ends that are "\r\n" in raw
}

func view(raw []byte) sight {
	v := sight{raw: raw, text: raw}
	if !bytes.Contains(raw, []byte("\r\n")) {
		return v
	}
	v.text = make([]byte, 0, len(raw))
	for rest := raw; ; {
		before, after, more := bytes.Cut(rest, []byte("\r\n"))
		v.text = append(v.text, before...)
		if !more {
			return v
		}
		v.cuts = append(v.cuts, len(v.text))
		v.text = append(v.text, '\n')
		rest = after
	}
}

// plain returns s as it would appear in the view.
func (v sight) plain(s string) string {
	if len(v.cuts) == 0 {
		return s
	}
	return strings.ReplaceAll(s, "\r\n", "\n")
}

// at turns an offset in text into the one in raw.
func (v sight) at(offset int) int {
	return offset + sort.SearchInts(v.cuts, offset)
}

// find returns where old is in the text. Only an empty file contains nothing:
// to replace it is to fill the file.
func (v sight) find(old string) []int {
	if old == "" {
		if len(v.text) == 0 {
			return []int{0}
		}
		return nil
	}
	var hits []int
	for from := 0; ; {
		i := bytes.Index(v.text[from:], []byte(old))
		if i < 0 {
			return hits
		}
		hits = append(hits, from+i)
		from += i + len(old)
	}
}

// lines returns the line numbers of the first few hits.
func (v sight) lines(hits []int) []int {
	lines := make([]int, 0, backend.MaxNotUniqueLines)
	line, from := 1, 0
	for _, hit := range hits[:min(len(hits), backend.MaxNotUniqueLines)] {
		line += bytes.Count(v.text[from:hit], []byte("\n"))
		lines = append(lines, line)
		from = hit
	}
	return lines
}

func (v sight) replace(hits []int, length int, fresh string) []byte {
	out := make([]byte, 0, len(v.raw)+len(hits)*max(0, len(fresh)-length))
	from := 0
	for _, hit := range hits {
		start, end := v.at(hit), v.at(hit+length)
		out = append(out, v.raw[from:start]...)
		out = append(out, v.styled(fresh, v.raw[start:end])...)
		from = end
	}
	return append(out, v.raw[from:]...)
}

// styled gives the new text the line ends of the text that it replaces or,
// where that has none, those of most of the file.
func (v sight) styled(fresh string, replaced []byte) string {
	if len(v.cuts) == 0 {
		return fresh
	}
	fresh = strings.ReplaceAll(fresh, "\r\n", "\n")
	crlf := 2*len(v.cuts) >= bytes.Count(v.text, []byte("\n"))
	if bytes.Contains(replaced, []byte("\n")) {
		crlf = bytes.Contains(replaced, []byte("\r\n"))
	}
	if crlf {
		fresh = strings.ReplaceAll(fresh, "\n", "\r\n")
	}
	return fresh
}

// nearly says what is in the text where old is not. It never relaxes the match:
// the model is told, and decides.
func (v sight) nearly(old string) *backend.NoMatchError {
	if stripped, ok := strings.CutSuffix(old, "\n"); ok && stripped != "" && bytes.HasSuffix(v.text, []byte(stripped)) {
		return &backend.NoMatchError{Hint: backend.HintFinalNewline, Count: bytes.Count(v.text, []byte(stripped))}
	}
	want := loose(old)
	if strings.TrimSpace(want) == "" {
		return &backend.NoMatchError{}
	}
	// Surrounding line ends make both sides match whole lines only.
	have := "\n" + loose(string(v.text)) + "\n"
	if i := strings.Index(have, "\n"+strings.Trim(want, "\n")+"\n"); i >= 0 {
		return &backend.NoMatchError{Hint: backend.HintWhitespace, Line: 1 + strings.Count(have[:i], "\n")}
	}
	return &backend.NoMatchError{}
}

// loose returns the lines of s without what HintWhitespace disregards.
func loose(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}
