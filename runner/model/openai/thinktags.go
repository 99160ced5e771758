package openai

import "strings"

// The marks between which a model thinks in its text.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// maxLead is how much space before <think> is waited through.
const maxLead = 64

// An inliner finds the thinking at the start of a text that comes in pieces. A
// mark that comes later is a part of the text: somebody writes about it.
type inliner struct {
	state inlineState
	held  string // a piece of a mark, or what may become one
}

type inlineState int

const (
	inlineLead   inlineState = iota // nothing but space came
	inlineInside                    // between the marks
	inlineGap                       // space between the thinking and the text
	inlineText                      // text, to the end
)

// read is what a piece of content amounts to.
func (n *inliner) read(piece string) (thinking, text string) {
	if n.state == inlineText || piece == "" {
		return "", piece
	}
	piece = n.held + piece
	n.held = ""
	if n.state == inlineLead {
		lead := strings.TrimLeft(piece, " \t\r\n")
		rest, opens := strings.CutPrefix(lead, thinkOpen)
		near := len(piece)-len(lead) <= maxLead
		switch {
		case opens && near:
			n.state, piece = inlineInside, rest
		case strings.HasPrefix(thinkOpen, lead) && near:
			n.held = piece
			return "", ""
		default:
			n.state = inlineText
			return "", piece
		}
	}
	if n.state == inlineInside {
		thinking, piece = n.inside(piece)
	}
	return thinking, n.gap(piece)
}

// inside splits a piece at the mark that closes the thinking.
func (n *inliner) inside(piece string) (thinking, rest string) {
	if thinking, rest, closes := strings.Cut(piece, thinkClose); closes {
		n.state = inlineGap
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

// gap drops the space before the text.
func (n *inliner) gap(piece string) string {
	if n.state != inlineGap {
		return ""
	}
	piece = strings.TrimLeft(piece, " \t\r\n")
	if piece != "" {
		n.state = inlineText
	}
	return piece
}

// end is what was held back when no more comes.
func (n *inliner) end() (thinking, text string) {
	held := n.held
	n.held = ""
	if n.state == inlineInside {
		return held, ""
	}
	return "", held
}
