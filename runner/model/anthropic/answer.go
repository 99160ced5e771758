package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxBlocks bounds the blocks of one answer. An answer with more counts as cut by the
// output limit.
const maxBlocks = 4096

// maxCalls bounds the calls in the same way: none is executed then, and the model is
// asked for fewer at once.
const maxCalls = 256

// An answer converts events to deltas, and decides at the end whether the answer is complete.
type answer struct {
	exchange *exchange

	event  event // the last one decoded
	out    []model.Delta
	blocks []*block // of this request
	output int      // bytes of this request's output, for an estimate

	calls int               // seen so far
	run   []json.RawMessage // the blocks of thinking that the open part is made of
	// needsBlocks is whether they are not just one with a text and a signature.
	needsBlocks bool
	visible     bool // it has content that is not thinking

	begun       bool   // this request's answer
	id          string // of its message
	usage       usage
	reported    bool // the final usage arrived
	spent       step.Usage
	requests    []model.RequestUsage // of which spent is the sum
	pauses      int
	ending      httpapi.Ending
	stopped     bool // the answer marked its own end
	isTruncated bool // it exceeds maxBlocks or maxCalls
	cause       error
}

// receive sends the request and yields the deltas of its answer. It returns false if yield did.
func (a *answer) receive(yield func(model.Delta, error) bool) (wanted bool) {
	if wanted, a.cause = a.exchange.send(func(d model.Delta) bool { return yield(d, nil) }); !wanted || a.cause != nil {
		return wanted
	}
	wanted, a.cause = a.exchange.answer.Relay(a, yield)
	return wanted
}

// Take returns the deltas since the last Take.
func (a *answer) Take() []model.Delta {
	out := a.out
	a.out = a.out[:0]
	return out
}

func (a *answer) emit(d model.Delta) { a.out = append(a.out, d) }

// Document handles an answer that is not streamed although the request asked for it.
func (a *answer) Document(data []byte) error {
	var whole event
	if httpapi.Unmarshal(data, &whole) != nil || whole.Type != typeMessage || whole.Content == nil {
		return a.exchange.answer.Unexpected(data)
	}
	a.begun = true
	a.whole(&whole.message)
	a.addUsage(whole.Usage)
	a.stopped = true
	return nil
}

// whole handles a message whose content is not streamed.
func (a *answer) whole(m *message) {
	for i, raw := range m.Content {
		a.beginBlock(i, raw)
		a.close(i)
	}
	a.addPiece(httpapi.Piece{Output: true})
	a.addPiece(httpapi.Piece{Reason: string(m.StopReason)})
}

// Event handles one event of a stream.
func (a *answer) Event(received httpapi.Event) error {
	if string(received.Name) == httpapi.EventError {
		return a.failed(received.Data)
	}
	if a.exchange.dialect.invokes {
		if err := unwrap(&received); err != nil || len(received.Data) == 0 {
			return err
		}
	}
	e := &a.event
	if err := e.decode(received.Data); err != nil {
		return err
	}
	kind := cmp.Or(e.Type, string(received.Name))
	if kind == httpapi.EventError || httpapi.IsError(e.Error) {
		return a.failed(received.Data)
	}
	return a.handle(kind, e, received.Data)
}

// failed handles an error of the provider. An answer that the output limit ended is kept even if an error follows: a
// retry would end at the same limit.
func (a *answer) failed(raw json.RawMessage) error {
	if a.ending.Meaning() == httpapi.FinishLength {
		return httpapi.ErrEnd
	}
	return a.exchange.BodyError(raw)
}

// handle handles an event that is not an error; raw is the whole event.
func (a *answer) handle(kind string, e *event, raw []byte) error {
	switch kind {
	case typeStart:
		return a.start(e.Message)
	case typeBlockStart:
		a.beginBlock(e.Index, e.Block)
		a.addPiece(httpapi.Piece{Output: true})
	case typeDelta:
		a.addDelta(e.Index, e.Delta, raw)
		a.addPiece(httpapi.Piece{Output: true})
	case typeBlockStop:
		a.close(e.Index)
	case typeMessageDelta:
		a.addUsage(e.Usage)
		a.addPiece(httpapi.Piece{Reason: string(e.Delta.StopReason)})
	case typeStop:
		a.stopped = true
		return httpapi.ErrEnd
	}
	return nil
}

// errSecondMessage means that a gateway asked its model again and put both answers
// into one stream. Which of them counts is unknown, and their calls together were
// never meant.
var errSecondMessage = errors.New("a second message began in the stream")

// start handles the start of a message, which is usually empty. Some servers send it
// twice, before any content; any other start is of another message.
func (a *answer) start(m *message) error {
	if m == nil {
		m = &message{}
	}
	another := a.id != "" && m.ID != "" && a.id != m.ID
	if another || len(a.blocks) > 0 || a.ending.Came() {
		return &model.IncompleteError{Cause: errSecondMessage}
	}
	a.begun, a.id = true, cmp.Or(a.id, m.ID)
	if m.Usage != nil {
		a.usage.raise(m.Usage)
	}
	if len(m.Content) > 0 {
		a.whole(m)
	}
	return nil
}

// addPiece records the facts of a piece about the end of the answer.
func (a *answer) addPiece(p httpapi.Piece) {
	p.Visible = a.visible
	a.ending.Add(p)
	a.exchange.answer.Expect(&a.ending)
}

// addUsage records the final usage that the provider reports.
func (a *answer) addUsage(u *usage) {
	if u != nil {
		a.reported = true
		a.usage.raise(u)
	}
}
