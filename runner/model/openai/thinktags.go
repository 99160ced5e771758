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
func (n *thinkTagParser) read(piece string) (thinking, text string) {
	if n.state == thinkTagText || piece == "" {
		return "", piece
	}
	piece = n.held + piece
	n.held = ""
	if n.state == thinkTagLead {
		lead := strings.TrimLeft(piece, " \t\r\n")
		rest, opens := strings.CutPrefix(lead, thinkOpen)
		near := len(piece)-len(lead) <= maxLead
		switch {
		case opens && near:
			n.state, piece = thinkTagInside, rest
		case strings.HasPrefix(thinkOpen, lead) && near:
			n.held = piece
			return "", ""
		default:
			n.state = thinkTagText
			return "", piece
		}
	}
	if n.state == thinkTagInside {
		thinking, piece = n.inside(piece)
	}
	return thinking, n.gap(piece)
}

// inside splits a piece at the closing tag.
func (n *thinkTagParser) inside(piece string) (thinking, rest string) {
	if thinking, rest, closes := strings.Cut(piece, thinkClose); closes {
		n.state = thinkTagGap
		return thinking, rest
	}
	for length := min(len(thinkClose)-1, len(piece)); length > 0; length-- {
		if start := len(piece) - length; strings.HasPrefix(thinkClose, piece[start:]) {
			n.held = piece[start:]
			return piece[:start], ""
		}
	}
	return piece, ""
}

// gap removes the white space between thinking and text.
func (n *thinkTagParser) gap(piece string) string {
	if n.state != thinkTagGap {
		return ""
	}
	piece = strings.TrimLeft(piece, " \t\r\n")
	if piece != "" {
		n.state = thinkTagText
	}
	return piece
}

// end returns the text that was held back.
func (n *thinkTagParser) end() (thinking, text string) {
	held := n.held
	n.held = ""
	if n.state == thinkTagInside {
		return held, ""
	}
	return "", held
}
