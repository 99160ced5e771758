package redact

import "strings"

// A Stream redacts text that arrives in pieces. It holds back a possible beginning of a secret, so that a secret that
// is split over two pieces is found.
type Stream struct {
	redactor *Redactor
	held     string
}

// Stream returns a Stream of this Redactor.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r} }

// Write adds a piece and returns the text that is safe to show.
func (s *Stream) Write(piece string) string {
	known := s.redactor.knows()
	if known == nil {
		return piece
	}
	out, rest := known.replace(s.held+piece, part)
	s.held = rest
	return out
}

// Flush returns the text that was held back, at the end.
func (s *Stream) Flush() string {
	held := s.held
	s.held = ""
	return s.redactor.String(held)
}

// dropped makes strings.Map leave a character out.
const dropped = -1

// Printable returns s for a terminal: without control characters except newline and tab, and without characters that
// change the direction of text.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
			return dropped
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional overrides
			return dropped
		}
		return r
	}, s)
}
