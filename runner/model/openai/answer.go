package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// finishes are the reasons that providers give, in our words.
var finishes = map[string]step.Finish{
	"stop": step.FinishStop, "eos": step.FinishStop, "end_turn": step.FinishStop,
	"tool_calls": step.FinishCalls, "function_call": step.FinishCalls,
	"length": step.FinishLength, "max_tokens": step.FinishLength,
	"content_filter": step.FinishRefusal, "refusal": step.FinishRefusal,
}

// The bounds of what an endpoint can make us remember of an answer.
const (
	maxDetails = 1024
	maxTurns   = 10_000 // from thinking to text
)

// An answer turns chunks into deltas and knows at the end whether they were
// the whole.
type answer struct {
	exchange *exchange
	dialect  dialect

	chunks int  // read so far
	begun  bool // the model answered, which costs tokens
	out    []model.Delta
	said   int  // bytes of output, for an estimate
	musing bool // the last of them were thinking
	turns  int  // from thinking to text, so far
	calls  []callState

	details  details
	keepsake keepsake
	inliner  inliner

	finish  step.Finish
	refused bool
	called  bool // some send a call that is none: without a name or arguments
	cut     bool // it has more calls than are kept
	usage   *step.Usage
	cause   error // why reading stopped
}

// Take returns the deltas since the last Take.
func (a *answer) Take() []model.Delta {
	out := a.out
	a.out = a.out[:0]
	return out
}

// Event takes one event of a stream.
func (a *answer) Event(e httpapi.Event) error {
	a.begun = true
	if string(e.Name) == httpapi.EventError {
		return a.failed(e.Data)
	}
	return a.read(e.Data)
}

// Document takes an answer that was not streamed although we asked for it: one
// chunk.
func (a *answer) Document(data []byte) error {
	var whole struct {
		Choices json.RawMessage `json:"choices"`
	}
	if httpapi.Unmarshal(data, &whole) != nil || whole.Choices == nil {
		return a.exchange.answer.Unexpected(data)
	}
	a.begun = true
	return a.read(data)
}

// read takes one chunk. An error ends the answer.
func (a *answer) read(raw []byte) error {
	var c chunk
	if err := httpapi.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("decoding a chunk: %w", err)
	}
	a.chunks++
	a.count(c.Usage)
	if httpapi.IsError(c.Error) {
		return a.failed(c.Error)
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 {
			continue // we ask for one
		}
		a.count(choice.Usage)
		if err := a.choose(choice); err != nil {
			return err
		}
	}
	return nil
}

// failed takes an error of the provider. An answer that the output limit ended is
// kept, whatever fails behind it: the next would end there too.
func (a *answer) failed(raw []byte) error {
	if a.finish == step.FinishLength {
		return httpapi.ErrEnd
	}
	return a.exchange.BodyError(raw)
}

func (a *answer) choose(c *choice) error {
	said := &c.Delta
	if a.exchange.answer.IsDocument { // Perplexity sends both, the delta empty
		said = &c.Message
	}
	a.think(said)
	a.speak(said)
	if len(a.details.open) > maxDetails || a.turns > maxTurns {
		return errTooMany
	}
	a.call(said)
	switch reason := c.FinishReason; reason {
	case "":
	case "error":
		return a.failed([]byte(`"the provider ended the answer with an error"`))
	default:
		a.finish = cmp.Or(finishes[strings.ToLower(reason)], step.FinishOther)
		a.exchange.answer.ExpectEnd()
	}
	return nil
}

func (a *answer) think(s *delta) {
	thinking := cmp.Or(string(s.ReasoningContent), s.Content.thinking)
	if thinking == "" && s.Reasoning != "" {
		thinking = string(s.Reasoning)
		a.keepsake.Field = fieldReasoning
	}
	detailed := a.details.add(s.ReasoningDetails)
	if len(s.ExtraContent) > 0 {
		a.keepsake.Extra = json.RawMessage(s.ExtraContent)
	}
	a.muse(cmp.Or(thinking, detailed))
}

func (a *answer) muse(thinking string) {
	if thinking != "" {
		a.musing = true
		a.said += len(thinking)
		a.out = append(a.out, model.Delta{Thinking: thinking})
	}
}

func (a *answer) speak(s *delta) {
	text := s.Content.text
	if a.dialect.inline {
		text = a.inline(a.inliner.read(text))
	}
	if s.Refusal != "" {
		a.refused = true
		text += string(s.Refusal)
	}
	a.say(text)
}

// inline passes on the thinking that came in a text, and leaves the text.
func (a *answer) inline(thinking, text string) string {
	if thinking != "" {
		a.keepsake.Field = fieldInline
		a.muse(thinking)
	}
	return text
}

func (a *answer) say(text string) {
	if text == "" {
		return
	}
	if a.musing {
		a.musing = false
		a.turns++
	}
	a.said += len(text)
	a.keep() // before the text, so that it stays with its thinking
	a.out = append(a.out, model.Delta{Text: text})
}

// keep passes on what has to be sent back.
func (a *answer) keep() {
	a.keepsake.Details = a.details.take()
	if a.dialect.echo != echoNothing && !a.keepsake.empty() {
		a.out = append(a.out, model.Delta{Provider: a.keepsake.encode()})
	}
	a.keepsake = keepsake{}
}

// count takes what the provider says that the answer cost so far.
func (a *answer) count(u *usage) {
	if u != nil && *u != (usage{}) {
		converted := u.convert()
		a.usage = &converted
	}
}

// conclude yields the end: how the answer finished and what it cost, or why
// there is none.
func (a *answer) conclude(input int64, yield func(model.Delta, error) bool) {
	a.say(a.inline(a.inliner.end()))
	finish, err := a.end()
	if _, incomplete := errors.AsType[*model.IncompleteError](err); !a.begun && !incomplete {
		yield(model.Delta{}, err)
		return
	}
	usage := a.bill(input, err)
	a.keep()
	for _, d := range a.Take() {
		if !yield(d, nil) {
			return
		}
	}
	if yield(model.Delta{Finish: finish, Usage: &usage}, nil) && err != nil {
		yield(model.Delta{}, err)
	}
}

// bill is what the answer cost: what was told, or an estimate. Of an answer that
// broke off, what was told is how far it had come then; and some tell zeros.
func (a *answer) bill(input int64, err error) step.Usage {
	var u step.Usage
	if a.usage != nil {
		u = *a.usage
	}
	if err == nil && (u.InputTokens > 0 || u.OutputTokens > 0) {
		return u
	}
	if u.InputTokens == 0 {
		u.InputTokens = input
	}
	if said := model.EstimateTokens(a.said); said > u.OutputTokens {
		u.OutputTokens = said
		if err != nil {
			u.CostMicroUSD, u.Priced = 0, false // what was told is the price of less
		}
	}
	u.Estimated = true
	return u
}

// end is how the answer finished, or why it is none.
func (a *answer) end() (step.Finish, error) {
	if a.exchange.answer == nil {
		return "", a.cause
	}
	if err := a.exchange.Broken(a.cause); err != nil {
		return "", err // what was told, or the caller's own end
	}
	if incomplete, ok := errors.AsType[*model.IncompleteError](a.cause); ok {
		return "", incomplete
	}
	finish := a.finish
	if finish == "" && errors.Is(a.cause, httpapi.ErrDone) && a.said > 0 {
		finish = step.FinishStop // some never say why, but mark the end
	}
	switch {
	case finish == "" && errors.Is(a.cause, httpapi.ErrEnd):
		return "", &model.IncompleteError{}
	case finish == "":
		return "", &model.IncompleteError{Cause: a.exchange.Clean(a.cause)}
	case a.refused && finish == step.FinishStop:
		return step.FinishRefusal, nil
	case a.cut && finish != step.FinishRefusal:
		return step.FinishLength, nil
	case a.called && finish == step.FinishStop:
		return step.FinishCalls, nil
	case !a.called && finish == step.FinishCalls:
		return step.FinishStop, nil
	}
	return finish, nil
}
