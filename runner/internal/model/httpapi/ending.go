package httpapi

import (
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxReason bounds a finish reason in messages and in the journal, in bytes.
const maxReason = 64

// An Ending determines how an answer ends. It is the only place that decides whether an answer is complete, for both
// APIs. Some servers write a finish reason into every chunk. So a reason counts as the last one only if it is the only
// one, and no output came with it or after it. Any other reason is accepted when the stream ends.
type Ending struct {
	reason  string
	meaning FinishMeaning
	visible bool // text or a call came
	early   bool // output came with a reason or after one
	last    bool
}

// A Piece has the facts of one chunk or event about the end.
type Piece struct {
	// Output reports whether output of any kind is in it, Visible whether text or a call
	// came so far.
	Output, Visible bool
	// Reason is the finish reason. Native is the reason of the server behind a gateway, which some gateways add.
	Reason, Native string
	// Dialect has the rows of the dialect.
	Dialect []FinishReason
}

// Add takes a piece.
func (e *Ending) Add(p Piece) {
	e.visible = e.visible || p.Visible
	reason, meaning := p.reason()
	if p.Output && (reason != "" || e.Came()) {
		e.early, e.last = true, false
	}
	if reason == "" {
		return
	}
	e.set(reason, meaning)
	isAtEnd := e.visible || !e.meaning.isWhole()
	e.last = e.meaning.isBreak() || !e.early && isAtEnd
}

// reason returns the reason of a piece with its meaning: the native one if it is more specific.
func (p *Piece) reason() (string, FinishMeaning) {
	if p.Reason == "" && p.Native == "" { // all pieces but the last
		return "", FinishUnknown
	}
	meaning := MeaningOf(p.Reason, p.Dialect)
	if p.Native == "" {
		return p.Reason, meaning
	}
	native := MeaningOf(p.Native, p.Dialect)
	if !native.isWhole() && native != FinishPaused || p.Reason != "" && meaning == FinishUnknown && native != FinishUnknown {
		return p.Native, native
	}
	return p.Reason, meaning
}

// set records a reason. A broken-off answer stays one, even if another reason follows. An answer that the output limit
// ended is kept even if an error follows: a retry would end at the same limit.
func (e *Ending) set(reason string, meaning FinishMeaning) {
	if e.meaning.isBreak() || e.meaning == FinishLength && meaning.isBreak() {
		return
	}
	e.reason, e.meaning = reason, meaning
}

// Last reports whether only usage and the end of the stream can follow.
func (e *Ending) Last() bool { return e.last }

// Came reports whether there is a finish reason.
func (e *Ending) Came() bool { return e.reason != "" }

// Meaning returns the meaning of the finish reason.
func (e *Ending) Meaning() FinishMeaning { return e.meaning }

// Content has the facts about an answer that determine what its finish reason means.
type Content struct {
	HasCalls, IsRefusal bool
	// IsTruncated reports whether the answer has more than is kept, or than was requested.
	IsTruncated bool
}

// Finish returns why the model stopped, or an error if the answer does not count. unclear is the finish reason, if that
// does not show whether the answer is complete. cause is why reading ended.
func (c *Call) Finish(e *Ending, content Content, cause error) (finish step.Finish, unclear string, err error) {
	if err := c.Broken(cause); err != nil {
		return "", "", err
	}
	if !e.Came() || !c.isBelieved(e, cause) {
		return "", "", c.Interrupted(cause)
	}
	reason := c.shortReason(e.reason)
	switch {
	case e.meaning == FinishWindowFull:
		return "", "", &model.ContextTooLongError{Message: fmt.Sprintf("the window was full before the answer ended (finish reason %s)", reason)}
	case e.meaning == FinishUnusable:
		return "", "", &model.BrokenOffError{Reason: reason, Unusable: true}
	case e.meaning == FinishBrokenOff, e.meaning == FinishPaused && !content.IsTruncated:
		return "", "", &model.BrokenOffError{Reason: reason}
	}
	finish, isClear := content.finish(e.meaning)
	if !isClear {
		unclear = reason
	}
	return finish, unclear, nil
}

// shortReason returns a finish reason for messages and for the journal.
func (c *Call) shortReason(reason string) string {
	return quote.Clip(c.printable(reason), maxReason)
}

// isBelieved reports whether the answer ended with its finish reason: it was the last one,
// or the stream ended properly after it, or it fell silent.
func (c *Call) isBelieved(e *Ending, cause error) bool {
	if errors.Is(cause, ErrEnd) || e.last && e.meaning != FinishUnknown {
		return true
	}
	return e.visible && c.fellSilent()
}

// finish returns the finish for a meaning with this content, and whether it shows that the answer is complete.
func (c Content) finish(meaning FinishMeaning) (finish step.Finish, isClear bool) {
	switch {
	case meaning == FinishRefusal, c.IsRefusal && meaning.isWhole():
		return step.FinishRefusal, true
	case meaning == FinishLength, c.IsTruncated:
		return step.FinishLength, true
	case meaning == FinishUnknown:
		return step.FinishOther, false
	case c.HasCalls:
		return step.FinishCalls, true
	}
	return step.FinishStop, meaning == FinishStop // else the calls are missing
}

// IsComplete reports whether the reported usage covers the whole answer: there is no error, or only an error about the
// finish reason.
func IsComplete(cause, err error) bool {
	_, brokenOff := errors.AsType[*model.BrokenOffError](err)
	_, windowFull := errors.AsType[*model.ContextTooLongError](err)
	return err == nil || (brokenOff || windowFull) && errors.Is(cause, ErrEnd)
}
