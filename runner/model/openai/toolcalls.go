package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// maxCalls bounds the calls of one answer. An answer with more counts as ended by the output limit: none is executed,
// and the model is asked to make fewer at once.
const maxCalls = 256

// maxName bounds a streamed name, in bytes: many times the maximum length of a tool's name.
const maxName = 1 << 10

// toolCallState has what distinguishes the pieces of one call from those of others.
type toolCallState struct {
	index number // as the provider numbers it
	id    string
	name  string
	chunk int // in which it was seen last
	args  argsState
	extra json.RawMessage // extra_content that is not yet emitted
	begun bool            // a delta was emitted
}

// argsState records how much of the arguments of a call arrived.
type argsState int

const (
	argsNone argsState = iota
	argsBraces
	argsSome
)

// addCalls adds the tool calls of a delta.
func (a *answer) addCalls(s *delta) {
	pieces := s.ToolCalls
	if f := s.FunctionCall; len(pieces) == 0 && (f.Name != "" || f.Arguments != nil) {
		pieces = append(pieces, callDelta{Index: "0", Function: f})
	}
	for _, piece := range pieces {
		i, fits := a.findCall(piece)
		if a.isTruncated = a.isTruncated || !fits; a.isTruncated {
			return // later pieces cannot be assigned to calls
		}
		a.addToCall(i, piece)
	}
}

// findCall returns the position of the call that a piece belongs to. If the piece begins a call, it is added; fits is
// false if there are too many.
func (a *answer) findCall(p callDelta) (i int, fits bool) {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.continuedBy(&a.calls[i], p) {
			return i, true
		}
		if p.Index == "" && p.ID == "" {
			break // without index and id it continues the last
		}
	}
	if len(a.calls) == maxCalls {
		return 0, false
	}
	a.calls = append(a.calls, toolCallState{index: p.Index})
	return len(a.calls) - 1, true
}

// continuedBy reports whether a piece belongs to this call. Providers repeat ids and names in each piece, omit the
// index, or give all calls the same one. A name that is repeated within one chunk, or with another id, begins another
// call.
func (a *answer) continuedBy(c *toolCallState, p callDelta) bool {
	if p.Index == "" && p.ID == "" {
		return p.Function.Name == ""
	}
	if p.Index == "" || c.index == "" {
		return p.ID != "" && p.ID == c.id
	}
	if p.Index != c.index {
		return false
	}
	if p.Function.Name == "" {
		return true
	}
	otherID := p.ID != "" && c.id != "" && p.ID != c.id
	return !otherID && !a.isOtherName(c, p) && c.chunk != a.chunks
}

// isOtherName reports whether a piece begins another call by its name. Before the first arguments it may be the rest of
// the name.
func (a *answer) isOtherName(c *toolCallState, p callDelta) bool {
	name := p.Function.Name
	if c.name == "" || name == c.name || c.args == argsNone && (c.id != "" || p.ID != "") {
		return false
	}
	return c.args != argsNone || a.isTool(c.name) && a.isTool(name) && !a.isTool(c.name+name)
}

// addName adds a piece of a call's name, and reports whether the name changed. Before the arguments, some servers send
// a name in pieces, and some repeat the whole name so far. If both are possible, the names of the tools decide.
func (a *answer) addName(c *toolCallState, piece string) bool {
	joined := c.name + piece
	switch {
	case piece == "", c.name != "" && (c.args != argsNone || len(joined) > maxName):
		return false
	case c.name == "", a.isTool(joined):
	case piece == c.name:
		return false
	case strings.HasPrefix(piece, c.name):
		joined = piece
	}
	c.name = joined
	return true
}

// isTool reports whether the model was offered a tool of this name.
func (a *answer) isTool(name string) bool {
	return slices.ContainsFunc(a.exchange.request.library.Tools, func(t openai.Tool) bool { return t.Function.Name == name })
}

func (a *answer) addToCall(i int, p callDelta) {
	c := &a.calls[i]
	c.chunk = a.chunks
	c.id = cmp.Or(c.id, p.ID)
	d := model.CallDelta{Index: i}
	if a.addName(c, p.Function.Name) {
		d.Name = c.name
	}
	d.Args, d.Replace = c.args.next(p.Function.Arguments)
	if len(p.ExtraContent) > 0 && a.dialect.echo != echoNothing {
		c.extra = json.RawMessage(p.ExtraContent)
	}
	if d.Name == "" && d.Args == "" && (c.extra == nil || !c.begun) {
		return
	}
	if !c.begun {
		a.emitProviderState()
	}
	if c.extra != nil {
		d.Provider, d.Signed, c.extra = callState{Extra: c.extra}.encode(), true, nil
	}
	c.begun = true
	a.output += len(d.Name) + len(d.Args)
	a.hasCalls = true
	a.out = append(a.out, model.Delta{Call: &d})
}

// next returns the text of a piece of arguments, and whether it replaces the earlier pieces: a whole object does, and
// so does text after an initial {}.
func (s *argsState) next(raw json.RawMessage) (args string, replace bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '{' {
		*s = argsSome
		return string(raw), true
	}
	args = httpapi.ParseFragment(raw)
	if args == "" {
		return "", false
	}
	replace = *s == argsBraces
	*s = argsSome
	if strings.TrimSpace(args) == "{}" {
		*s = argsBraces
	}
	return args, replace
}
