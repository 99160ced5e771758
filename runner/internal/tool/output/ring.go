package output

import (
	"bytes"
	"unicode/utf8"
)

// A Ring keeps the last bytes of a text that grows.
type Ring struct {
	most  int
	data  []byte
	total int64
}

// NewRing makes a Ring of so many bytes.
func NewRing(most int) *Ring { return &Ring{most: most} }

// Write adds to the text.
func (r *Ring) Write(text []byte) {
	r.total += int64(len(text))
	text = text[max(0, len(text)-r.most):]
	if len(r.data)+len(text) > 2*r.most {
		r.data = append(r.data[:0], r.data[len(r.data)-(r.most-len(text)):]...)
	}
	r.data = append(r.data, text...)
}

// Total is how long the text is, in bytes.
func (r *Ring) Total() int64 { return r.total }

// Since is what was added after so many bytes, as far as it is kept, and how
// many bytes are not. It begins with a whole character.
func (r *Ring) Since(offset int64) (text []byte, lost int64) {
	kept := r.data[max(0, len(r.data)-r.most):]
	first := r.total - int64(len(kept))
	if offset >= first {
		return kept[min(offset-first, int64(len(kept))):], 0
	}
	n := 0
	for n < len(kept) && n < utf8.UTFMax && !utf8.RuneStart(kept[n]) {
		n++
	}
	return kept[n:], first - offset + int64(n)
}

// Shrink keeps less from now on.
func (r *Ring) Shrink(most int) {
	r.most = most
	r.data = bytes.Clone(r.data[max(0, len(r.data)-most):])
}
