package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Bounds of an answer in memory. An answer with more items or calls counts as ended by the output limit: none of its
// calls is executed.
const (
	maxItems = 4096
	maxCalls = 256
)

// An answer converts events to deltas, and decides at the end whether the answer is complete.
type answer struct {
	exchange *exchange

	event    event // the last one decoded
	out      []model.Delta
	items    []*item
	calls    int   // seen so far
	lastText *item // the message whose text is the last that was emitted; nil: it is something else
	output   int   // bytes of output, for an estimate

	begun       bool // the model began to answer, which costs tokens
	visible     bool // it has text or calls
	isRefusal   bool
	isTruncated bool
	ending      httpapi.Ending
	usage       *step.Usage
	cause       error // why the answer ended
}

// Take returns the deltas since the last Take.
func (a *answer) Take() []model.Delta {
	out := a.out
	a.out = a.out[:0]
	return out
}

// emit emits a delta of anything but text.
func (a *answer) emit(d model.Delta) {
	a.lastText = nil
	a.out = append(a.out, d)
}

// Document handles an answer that is not streamed although the request asked for it.
func (a *answer) Document(data []byte) error {
	var whole response
	if httpapi.Unmarshal(data, &whole) != nil || whole.Output == nil {
		return a.exchange.answer.Unexpected(data)
	}
	a.begun = true
	return a.end("", &whole)
}

// Event handles one event of a stream.
func (a *answer) Event(received httpapi.Event) error {
	if string(received.Name) == httpapi.EventError {
		return a.exchange.BodyError(received.Data)
	}
	e := &a.event
	if err := e.decode(received.Data); err != nil {
		return err
	}
	kind := cmp.Or(e.Type, string(received.Name))
	if kind == httpapi.EventError || httpapi.IsError(e.Error) {
		return a.exchange.BodyError(received.Data)
	}
	a.begun = true
	switch kind {
	case eventCompleted, eventIncomplete, eventFailed:
		return a.end(kind, e.Response)
	}
	a.handle(kind, e)
	return nil
}

// handle handles an event of an item.
func (a *answer) handle(kind string, e *event) {
	switch kind {
	case eventItemAdded:
		a.begin(e.Index, e.Item)
	case eventItemDone:
		a.finish(e.Index, e.Item)
	case eventText:
		a.addText(a.at(e, typeMessage), string(e.Delta))
	case eventRefusal:
		a.isRefusal = true
		a.addText(a.at(e, typeMessage), string(e.Delta))
	case eventSummary:
		a.addThinking(a.at(e, typeReasoning), e.Summary, string(e.Delta))
	case eventReasoning:
		a.addThinking(a.at(e, typeReasoning), e.Content, string(e.Delta))
	case eventArguments:
		a.addArguments(a.at(e, typeCall), string(e.Delta))
	case eventArgumentsIs:
		a.setArguments(a.at(e, typeCall), e.Arguments)
	}
}

// end handles the end of the answer; kind is the event that reports it, or empty.
func (a *answer) end(kind string, r *response) error {
	if r == nil {
		r = &response{}
	}
	if r.Usage != nil {
		converted := r.Usage.convert()
		a.usage = &converted
	}
	if httpapi.IsError(r.Error) {
		return a.exchange.BodyError(r.Error)
	}
	a.readClosing(r.Output)
	a.ending.Add(httpapi.Piece{Visible: a.visible, Reason: r.reason(kind)})
	return httpapi.ErrEnd
}

// reason returns why the answer ended; empty: it did not. Only an incomplete answer has a reason in addition to its
// status.
func (r *response) reason(kind string) string {
	status := string(r.Status)
	switch status {
	case "", "queued", "in_progress": // of a server that does not change it
		status = strings.TrimPrefix(kind, "response.")
	}
	if status == "incomplete" {
		return cmp.Or(string(r.Incomplete.Reason), status)
	}
	return status
}

// addText emits a piece of a message.
func (a *answer) addText(it *item, text string) {
	if it == nil || text == "" {
		return
	}
	if a.lastText != nil && a.lastText != it { // or both messages would be one
		a.emit(model.Delta{Kind: step.PartText, Provider: partData{Type: typeMessage}.encode()})
	}
	it.text.WriteString(text)
	a.output += len(text)
	a.visible = true
	a.out = append(a.out, model.Delta{Text: text})
	a.lastText = it
}

// addThinking emits a piece of reasoning. It has sections, which are titled.
func (a *answer) addThinking(it *item, section int, text string) {
	if it == nil || text == "" {
		return
	}
	if it.emitted > 0 && it.section != section {
		a.emit(model.Delta{Thinking: "\n\n"})
	}
	it.section = section
	it.emitted += len(text)
	a.output += len(text)
	a.emit(model.Delta{Thinking: text})
}

// refusal returns the error of an answer without content: some gateways refuse a request in the
// stream, with HTTP 200.
func (a *answer) refusal() error {
	switch {
	case a.exchange.answer == nil:
		return a.cause
	case a.output > 0:
		return nil
	}
	return a.exchange.Broken(a.cause)
}

// emitEnd yields the finish reason and the usage, or the error.
func (a *answer) emitEnd(yield func(model.Delta, error) bool) {
	finish, unclear, err := a.result()
	if _, incomplete := errors.AsType[*model.IncompleteError](err); !a.begun && !incomplete {
		yield(model.Delta{}, err)
		return
	}
	usage := a.totalUsage()
	if yield(model.Delta{Finish: finish, UnclearReason: unclear, Usage: &usage}, nil) && err != nil {
		yield(model.Delta{}, err)
	}
}

// result returns the finish, and the finish reason if that is unclear, or the error.
func (a *answer) result() (finish step.Finish, unclear string, err error) {
	if a.exchange.answer == nil {
		return "", "", a.cause
	}
	content := httpapi.Content{HasCalls: a.calls > 0, IsRefusal: a.isRefusal, IsTruncated: a.isTruncated}
	return a.exchange.Finish(&a.ending, content, a.cause)
}

// stored returns a reasoning item in the form in which it is sent back, as Part.Provider; nil if it has nothing that a
// model reads again.
func (o *outputItem) stored(raw json.RawMessage) json.RawMessage {
	if o.Encrypted == "" && len(o.Content) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	for name, value := range fields {
		isEmpty := string(value) == "null" || name == "content" && len(o.Content) == 0
		if isEmpty || name == "id" || name == "status" {
			delete(fields, name)
		}
	}
	if fields["summary"] == nil {
		fields["summary"] = json.RawMessage("[]") // required
	}
	data, _ := httpapi.Encode(fields) // decoded before: cannot fail
	return data
}

// The types of items and events that are handled. Items of other types are not sent back; other events repeat the data
// of these.
const (
	typeMessage   = "message"
	typeReasoning = "reasoning"
	typeCall      = "function_call"

	eventItemAdded   = "response.output_item.added"
	eventItemDone    = "response.output_item.done"
	eventText        = "response.output_text.delta"
	eventRefusal     = "response.refusal.delta"
	eventSummary     = "response.reasoning_summary_text.delta"
	eventReasoning   = "response.reasoning_text.delta"
	eventArguments   = "response.function_call_arguments.delta"
	eventArgumentsIs = "response.function_call_arguments.done"
	eventCompleted   = "response.completed"
	eventIncomplete  = "response.incomplete"
	eventFailed      = "response.failed"
)

// An event is one event of a stream. Every field is optional, and a value of a wrong type
// counts as absent.
type event struct {
	Type      string           `json:"type"`
	Index     int              `json:"output_index"` // -1: none
	ItemID    string           `json:"item_id"`
	Summary   int              `json:"summary_index"`
	Content   int              `json:"content_index"`
	Delta     httpapi.Fragment `json:"delta"`
	Arguments string           `json:"arguments"`
	Item      json.RawMessage  `json:"item"`
	Response  *response        `json:"response"`
	Error     json.RawMessage  `json:"error"`
}

// decode decodes an event into e, whose memory it reuses.
func (e *event) decode(data []byte) error {
	*e = event{Index: -1}
	if err := httpapi.Unmarshal(data, e); err != nil {
		return fmt.Errorf("decoding an event: %w", err)
	}
	return nil
}

// A response is an answer as a whole, or its head and its end.
type response struct {
	Status     httpapi.ReasonText `json:"status"`
	Incomplete struct {
		Reason httpapi.ReasonText `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
	Usage  *usage            `json:"usage"`
	Error  json.RawMessage   `json:"error"`
}

// An outputItem is an item of an answer.
type outputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Phase     httpapi.Text    `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   []contentPart   `json:"content"`
	Summary   []contentPart   `json:"summary"`
	Encrypted httpapi.Text    `json:"encrypted_content"`
}

// A contentPart is a part of a message, or of reasoning.
type contentPart struct {
	Text    httpapi.Text `json:"text"`
	Refusal httpapi.Text `json:"refusal"`
}

// usage is the usage of an answer.
type usage struct {
	Input        httpapi.Count `json:"input_tokens"`
	Output       httpapi.Count `json:"output_tokens"`
	Total        httpapi.Count `json:"total_tokens"`
	InputDetails struct {
		Cached     httpapi.Count `json:"cached_tokens"`
		CacheWrite httpapi.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning httpapi.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`

	Cost  httpapi.Cost  `json:"cost"` // gateways: US dollars
	Ticks httpapi.Ticks `json:"cost_in_usd_ticks"`
}

// convert returns the usage of a step.
func (u *usage) convert() step.Usage {
	return httpapi.Report{
		Input: u.Input, Output: u.Output, Total: u.Total,
		Reasoning: u.OutputDetails.Reasoning,
		CacheRead: u.InputDetails.Cached, CacheWrite: u.InputDetails.CacheWrite,
		Cost: u.Cost, Ticks: u.Ticks,
	}.Usage()
}

// totalUsage returns the usage of the answer, reported or estimated. The usage of an answer that broke off is not
// reported, and some servers report zeros.
func (a *answer) totalUsage() step.Usage {
	var u step.Usage
	if a.usage != nil {
		u = *a.usage
	}
	if u.InputTokens > 0 || u.OutputTokens > 0 {
		return u
	}
	return step.Usage{
		InputTokens: model.EstimateInput(a.exchange.req), OutputTokens: model.EstimateTokens(a.output), Estimated: true,
	}
}
