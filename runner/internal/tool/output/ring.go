package output

import (
	"bytes"
	"unicode/utf8"
)

// A Ring keeps the last bytes of a growing text.
type Ring struct {
	most  int
	data  []byte
	total int64
}

// NewRing returns a Ring of most bytes.
func NewRing(most int) *Ring { return &Ring{most: most} }

// Write appends to the text.
func (r *Ring) Write(text []byte) {
	r.total += int64(len(text))
	text = text[max(0, len(text)-r.most):]
	if len(r.data)+len(text) > 2*r.most {
		r.data = append(r.data[:0], r.data[len(r.data)-(r.most-len(text)):]...)
	}
	r.data = append(r.data, text...)
}

// Total returns the length of the text in bytes.
func (r *Ring) Total() int64 { return r.total }

// Since returns the text from an offset, as far as it is kept, and how many bytes are
// not kept. The text begins with a complete character.
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

// Shrink reduces the size of the Ring.
func (r *Ring) Shrink(most int) {
	r.most = most
	r.data = bytes.Clone(r.data[max(0, len(r.data)-most):])
}
