package openai

import "strings"

// The tags around thinking in a text.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// maxLead bounds the space before <think>, in bytes.
const maxLead = 64

// A thinkTagParser finds the thinking at the start of a text that arrives in pieces. A
// tag further back is part of the text.
type thinkTagParser struct {
	state thinkTagState
	held  string // a part of a tag, or what may become one
}

type thinkTagState int

const (
	thinkTagLead   thinkTagState = iota // only space so far
	thinkTagInside                      // between the tags
	thinkTagGap                         // space between the thinking and the text
	thinkTagText                        // text, to the end
)

// read splits a piece of content into thinking and text.
func (t *thinkTagParser) read(piece string) (thinking, text string) {
	if t.state == thinkTagText || piece == "" {
		return "", piece
	}
	piece = t.held + piece
	t.held = ""
	if t.state == thinkTagLead {
		lead := strings.TrimLeft(piece, " \t\r\n")
		rest, opens := strings.CutPrefix(lead, thinkOpen)
		near := len(piece)-len(lead) <= maxLead
		switch {
		case opens && near:
			t.state, piece = thinkTagInside, rest
		case strings.HasPrefix(thinkOpen, lead) && near:
			t.held = piece
			return "", ""
		default:
			t.state = thinkTagText
			return "", piece
		}
	}
	if t.state == thinkTagInside {
		thinking, piece = t.inside(piece)
	}
	return thinking, t.gap(piece)
}

// inside splits a piece at the closing tag.
func (t *thinkTagParser) inside(piece string) (thinking, rest string) {
	if thinking, rest, closes := strings.Cut(piece, thinkClose); closes {
		t.state = thinkTagGap
		return thinking, rest
	}
	for length := min(len(thinkClose)-1, len(piece)); length > 0; length-- {
		if start := len(piece) - length; strings.HasPrefix(thinkClose, piece[start:]) {
			t.held = piece[start:]
			return piece[:start], ""
		}
	}
	return piece, ""
}

// gap removes the white space between thinking and text.
func (t *thinkTagParser) gap(piece string) string {
	if t.state != thinkTagGap {
		return ""
	}
	piece = strings.TrimLeft(piece, " \t\r\n")
	if piece != "" {
		t.state = thinkTagText
	}
	return piece
}

// end returns the text that was held back.
func (t *thinkTagParser) end() (thinking, text string) {
	held := t.held
	t.held = ""
	if t.state == thinkTagInside {
		return held, ""
	}
	return "", held
}
