package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

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

// The types of events, blocks and deltas that are handled. All others are ignored, or kept
// unchanged.
const (
	typeMessage      = "message"
	typeStart        = "message_start"
	typeMessageDelta = "message_delta"
	typeStop         = "message_stop"
	typeBlockStart   = "content_block_start"
	typeDelta        = "content_block_delta"
	typeBlockStop    = "content_block_stop"

	typeText     = "text"
	typeThinking = "thinking"
	typeRedacted = "redacted_thinking"
	typeToolUse  = "tool_use"

	typeTextDelta      = "text_delta"
	typeThinkingDelta  = "thinking_delta"
	typeInputDelta     = "input_json_delta"
	typeSignatureDelta = "signature_delta"
	typeCitationsDelta = "citations_delta"
)

// An event is one event of a stream, or a whole answer without streaming. The official client refuses values of other
// types than Anthropic's, which some servers send. Every field is optional, and a value of a wrong type counts as
// absent.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Message *message        `json:"message"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	message
}

// A message is an answer as a whole.
type message struct {
	ID         string             `json:"id"`
	Content    []json.RawMessage  `json:"content"`
	StopReason httpapi.ReasonText `json:"stop_reason"`
	Usage      *usage             `json:"usage"`
}

// A delta is a part of a block, or how a message ends.
type delta struct {
	Type       string             `json:"type"`
	Text       httpapi.Fragment   `json:"text"`
	Thinking   httpapi.Fragment   `json:"thinking"`
	Input      httpapi.Fragment   `json:"partial_json"`
	Signature  string             `json:"signature"`
	Citation   json.RawMessage    `json:"citation"`
	StopReason httpapi.ReasonText `json:"stop_reason"`
}

// decode decodes an event into e, whose memory it reuses.
func (e *event) decode(data []byte) error {
	*e = event{}
	if err := httpapi.Unmarshal(data, e); err != nil {
		return fmt.Errorf("decoding an event: %w", err)
	}
	return nil
}

// paused reports whether the answer ended and another request must continue it.
func (a *answer) paused() bool {
	return errors.Is(a.cause, httpapi.ErrEnd) && a.ending.Meaning() == httpapi.FinishPaused
}

// resume prepares the next request of a paused answer, and reports whether there is one.
func (a *answer) resume() bool {
	if !a.paused() {
		return false
	}
	for _, p := range a.blocks {
		a.done(p)
		if p.kind == typeText && isBlank(p.content.String()) || p.isEmpty() {
			continue
		}
		a.exchange.previous = append(a.exchange.previous, p.raw())
	}
	if len(a.exchange.previous) == 0 {
		a.cause = &model.IncompleteError{} // it paused without content
		return false
	}
	spent, requests := a.requestUsage(nil)
	a.spent, a.requests = a.spent.Plus(spent), append(a.requests, requests...)
	a.pauses++
	a.blocks, a.output, a.begun, a.id, a.usage, a.reported = nil, 0, false, "", usage{}, false
	a.ending, a.stopped, a.cause = httpapi.Ending{}, false, nil
	return true
}

// emitEnd yields the finish reason and the usage, or the error.
func (a *answer) emitEnd(yield func(model.Delta, error) bool) {
	a.complete()
	finish, unclear, err := a.end()
	usage, requests, spent := a.totalUsage(err)
	for _, d := range a.Take() {
		if !yield(d, nil) {
			return
		}
	}
	if spent && !yield(model.Delta{Finish: finish, UnclearReason: unclear, Usage: &usage, Requests: requests}, nil) {
		return
	}
	if err != nil {
		yield(model.Delta{}, err)
	}
}

// complete emits what is known only at the end of an answer.
func (a *answer) complete() {
	for _, p := range a.blocks {
		if a.ending.Came() || a.stopped {
			a.done(p)
		}
	}
	a.endThinking()
}

// totalUsage returns the usage of all requests, the usage of each if the sum is not enough, and whether there is any: a
// refused request has none.
func (a *answer) totalUsage(err error) (step.Usage, []model.RequestUsage, bool) {
	_, incomplete := errors.AsType[*model.IncompleteError](err)
	if !a.begun && !incomplete && err != nil {
		return a.spent, a.requests, a.pauses > 0
	}
	last, requests := a.requestUsage(err)
	all := a.spent.Plus(last)
	if n := len(a.usage.Iterations); n > 1 {
		it := a.usage.Iterations[n-1]
		all.ContextTokens = int64(it.Input + it.CacheRead + it.CacheWrite + it.Output)
	} else if a.pauses > 0 {
		all.ContextTokens = last.InputTokens + last.OutputTokens
	}
	if requests = append(a.requests, requests...); len(requests) == 1 && (!requests[0].Estimated || !requests[0].InputReported) {
		requests = nil
	}
	return all, requests, true
}

// requestUsage returns the usage of this request, reported or estimated, and of its parts.
func (a *answer) requestUsage(err error) (step.Usage, []model.RequestUsage) {
	u, parts := a.usage.convert(), a.usage.requests()
	if a.reported && httpapi.IsComplete(a.cause, err) && (u.InputTokens > 0 || u.OutputTokens > 0) {
		return u, parts
	}
	if u.InputTokens == 0 {
		u.InputTokens = model.EstimateInput(a.exchange.req)
		parts = []model.RequestUsage{{Usage: u}}
	}
	more := max(model.EstimateTokens(a.output)-u.OutputTokens, 0)
	u.OutputTokens += more
	u.Estimated = true
	for i := range parts {
		parts[i].Estimated = true
	}
	parts[len(parts)-1].OutputTokens += more
	return u, parts
}

// end returns the finish, and the finish reason if that is unclear, or the error.
func (a *answer) end() (finish step.Finish, unclear string, err error) {
	if a.exchange.answer == nil {
		return "", "", a.cause
	}
	if !a.ending.Came() && a.stopped && a.visible {
		a.ending.Add(httpapi.Piece{Reason: "end_turn"}) // some servers send message_stop without a reason
	}
	content := httpapi.Content{HasCalls: a.calls > 0, IsTruncated: a.isTruncated || a.paused()}
	return a.exchange.Finish(&a.ending, content, a.cause)
}

// maxIterations bounds the iterations that are read of an answer.
const maxIterations = 1024

// usage is the usage of an answer as the API reports it: tokens read from the cache or
// written to it are not part of the input.
type usage struct {
	Input      httpapi.Count `json:"input_tokens"`
	CacheRead  httpapi.Count `json:"cache_read_input_tokens"`
	CacheWrite httpapi.Count `json:"cache_creation_input_tokens"`
	Output     httpapi.Count `json:"output_tokens"`
	Details    struct {
		Thinking httpapi.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	// Iterations are the steps of an answer if the provider compacted the session or
	// called another model; the usage is their sum.
	Iterations []usage      `json:"iterations"`
	Cost       httpapi.Cost `json:"cost"` // gateways: US dollars
}

// raise merges a later report. Each count is cumulative; a missing count or 0 changes nothing.
func (u *usage) raise(later *usage) {
	u.Input, u.Output = max(u.Input, later.Input), max(u.Output, later.Output)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, later.CacheRead), max(u.CacheWrite, later.CacheWrite)
	u.Details.Thinking = max(u.Details.Thinking, later.Details.Thinking)
	if len(later.Iterations) > 0 {
		u.Iterations = later.Iterations
	}
	if later.Cost.Known {
		u.Cost = later.Cost
	}
}

// requests returns the usage of each step of an answer. The provider's own cost covers all steps.
func (u *usage) requests() []model.RequestUsage {
	if n := len(u.Iterations); n == 0 || n > maxIterations || u.Cost.Known {
		v := u.convert()
		return []model.RequestUsage{{Usage: v, InputReported: v.InputTokens > 0}}
	}
	var out []model.RequestUsage
	for _, it := range u.Iterations {
		it.Iterations = nil
		out = append(out, model.RequestUsage{Usage: it.convert(), InputReported: true})
	}
	return out
}

// convert returns the usage of a step.
func (u *usage) convert() step.Usage {
	v := step.Usage{ReasoningTokens: int64(u.Details.Thinking)}
	parts := u.Iterations
	if len(parts) == 0 || len(parts) > maxIterations {
		parts = []usage{*u}
	}
	for _, p := range parts {
		v.InputTokens += int64(p.Input + p.CacheRead + p.CacheWrite)
		v.CacheReadTokens += int64(p.CacheRead)
		v.CacheWriteTokens += int64(p.CacheWrite)
		v.OutputTokens += int64(p.Output)
	}
	v.ReasoningTokens = min(v.ReasoningTokens, v.OutputTokens)
	v.CostMicroUSD, v.Priced = u.Cost.MicroUSD, u.Cost.Known
	return v
}
