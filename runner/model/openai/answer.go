package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Bounds of an answer in memory.
const (
	maxDetails  = 1024
	maxSwitches = 10_000 // from thinking to text
)

// An answer converts chunks to deltas, and decides at the end whether the answer is complete.
type answer struct {
	exchange *exchange
	dialect  dialect

	chunk      chunk // the last one decoded
	chunks     int   // read so far
	begun      bool  // the model began to answer, which costs tokens
	out        []model.Delta
	output     int  // bytes of output, for an estimate
	inThinking bool // the last output was thinking
	switches   int  // from thinking to text
	calls      []toolCallState

	details        details
	providerState  providerState
	thinkTagParser thinkTagParser

	ending      httpapi.Ending
	isRefusal   bool
	hasText     bool
	hasCalls    bool // calls with a name or arguments; some servers send others
	isTruncated bool // it has more calls than are kept
	usage       *step.Usage
	cause       error // why the stream ended
}

// Take returns the deltas since the last Take.
func (a *answer) Take() []model.Delta {
	out := a.out
	a.out = a.out[:0]
	return out
}

// Event handles one event of a stream.
func (a *answer) Event(e httpapi.Event) error {
	a.begun = true
	if string(e.Name) == httpapi.EventError {
		return a.failed(e.Data)
	}
	return a.read(e.Data)
}

// Document handles an answer that is not streamed although the request asked for it:
// one chunk.
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

// read handles one chunk. An error ends the answer.
func (a *answer) read(raw []byte) error {
	c := &a.chunk
	*c = chunk{}
	if err := httpapi.Unmarshal(raw, c); err != nil {
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
			continue // one is requested
		}
		a.count(choice.Usage)
		if err := a.readChoice(choice); err != nil {
			return err
		}
	}
	return nil
}

// failed handles an error of the provider. An answer that the output limit ended is kept even if an error follows: a
// retry would end at the same limit.
func (a *answer) failed(raw []byte) error {
	if a.ending.Meaning() == httpapi.FinishLength {
		return httpapi.ErrEnd
	}
	return a.exchange.BodyError(raw)
}

func (a *answer) readChoice(c *choice) error {
	before := a.output
	output := &c.Delta
	if a.exchange.answer.IsDocument { // Perplexity sends both, the delta empty
		output = &c.Message
	}
	a.readThinking(output)
	a.readText(output)
	if len(a.details.open) > maxDetails || a.switches > maxSwitches {
		return errTooMany
	}
	a.addCalls(output)
	if httpapi.IsError(c.Error) {
		return a.failed(c.Error)
	}
	a.ending.Add(httpapi.Piece{
		Output: a.output > before, Visible: a.hasText || a.hasCalls,
		Reason: string(c.FinishReason), Native: string(c.NativeReason), Dialect: a.dialect.finishReasons,
	})
	a.exchange.answer.Expect(&a.ending)
	return nil
}

func (a *answer) readThinking(s *delta) {
	thinking := cmp.Or(string(s.ReasoningContent), s.Content.thinking)
	if thinking == "" && s.Reasoning != "" {
		thinking = string(s.Reasoning)
		a.providerState.Field = fieldReasoning
	}
	detailed := a.details.add(s.ReasoningDetails)
	if len(s.ExtraContent) > 0 {
		a.providerState.Extra = json.RawMessage(s.ExtraContent)
	}
	a.emitThinking(cmp.Or(thinking, detailed))
}

func (a *answer) emitThinking(thinking string) {
	if thinking != "" {
		a.inThinking = true
		a.output += len(thinking)
		a.out = append(a.out, model.Delta{Thinking: thinking})
	}
}

func (a *answer) readText(s *delta) {
	text := s.Content.text
	if a.dialect.thinkTags {
		text = a.emitTagged(a.thinkTagParser.read(text))
	}
	if s.Refusal != "" {
		a.isRefusal = true
		text += string(s.Refusal)
	}
	a.emitText(text)
}

// emitTagged emits thinking that was between tags, and returns the text.
func (a *answer) emitTagged(thinking, text string) string {
	if thinking != "" {
		a.providerState.Field = fieldInline
		a.emitThinking(thinking)
	}
	return text
}

func (a *answer) emitText(text string) {
	if text == "" {
		return
	}
	if a.inThinking {
		a.inThinking = false
		a.switches++
	}
	a.output += len(text)
	a.hasText = true
	a.emitProviderState()
	a.out = append(a.out, model.Delta{Text: text})
}

// emitProviderState emits the provider data of the reasoning so far, before a text or a call, which would otherwise
// separate the two.
func (a *answer) emitProviderState() {
	a.providerState.Details = a.details.take()
	if a.dialect.echo != echoNothing && !a.providerState.empty() {
		a.out = append(a.out, model.Delta{Provider: a.providerState.encode()})
	}
	a.providerState = providerState{}
}

// count records the usage that the provider reports.
func (a *answer) count(u *usage) {
	if u != nil && *u != (usage{}) {
		converted := u.convert()
		a.usage = &converted
	}
}

// emitEnd yields the finish reason and the usage, or the error.
func (a *answer) emitEnd(input int64, yield func(model.Delta, error) bool) {
	a.emitText(a.emitTagged(a.thinkTagParser.end()))
	finish, unclear, err := a.end()
	if _, incomplete := errors.AsType[*model.IncompleteError](err); !a.begun && !incomplete {
		yield(model.Delta{}, err)
		return
	}
	usage, requests := a.totalUsage(input, err)
	a.emitProviderState()
	for _, d := range a.Take() {
		if !yield(d, nil) {
			return
		}
	}
	if yield(model.Delta{Finish: finish, UnclearReason: unclear, Usage: &usage, Requests: requests}, nil) && err != nil {
		yield(model.Delta{}, err)
	}
}

// totalUsage returns the usage of the answer, reported or estimated. The report of an answer that broke off may be
// incomplete, and some servers report zeros. Its number of input tokens counts in any case.
func (a *answer) totalUsage(input int64, err error) (step.Usage, []model.RequestUsage) {
	var u step.Usage
	if a.usage != nil {
		u = *a.usage
	}
	if httpapi.IsComplete(a.cause, err) && (u.InputTokens > 0 || u.OutputTokens > 0) {
		return u, nil
	}
	isReported := u.InputTokens > 0
	if !isReported {
		u.InputTokens = input
	}
	if output := model.EstimateTokens(a.output); output > u.OutputTokens {
		u.OutputTokens = output
		if err != nil {
			u.CostMicroUSD, u.Priced = 0, false // what was reported is the price of less
		}
	}
	u.Estimated = true
	if !isReported {
		return u, nil
	}
	return u, []model.RequestUsage{{Usage: u, InputReported: true}}
}

// refusal returns the error of an answer without content: some gateways refuse a request in the
// stream, with HTTP 200.
func (a *answer) refusal() error {
	switch {
	case a.exchange.answer == nil:
		return a.cause
	case a.output > 0 || a.hasCalls:
		return nil
	}
	return a.exchange.Broken(a.cause)
}

// end returns the finish, and the finish reason if that is unclear, or the error.
func (a *answer) end() (finish step.Finish, unclear string, err error) {
	if a.exchange.answer == nil {
		return "", "", a.cause
	}
	if !a.ending.Came() && errors.Is(a.cause, httpapi.ErrDone) && a.output > 0 {
		a.ending.Add(httpapi.Piece{Reason: "stop"}) // some servers send [DONE] without a reason
	}
	content := httpapi.Content{HasCalls: a.hasCalls, IsRefusal: a.isRefusal, IsTruncated: a.isTruncated}
	return a.exchange.Finish(&a.ending, content, a.cause)
}

// A small chunk may have very many elements. A chunk beyond these bounds is an error.
const (
	maxChoices = 2 // one is requested
	maxItems   = 4 * maxCalls
)

var errTooMany = errors.New("it holds more than any answer does")

// A chunk is a part of an answer, or a whole answer without streaming. The client library's type drops fields that
// providers add, and fails on unexpected types. Here every field is optional, and a value of a wrong type counts as
// absent.
type chunk struct {
	Choices [maxChoices]choice `json:"choices"`
	Usage   *usage             `json:"usage"`
	Error   json.RawMessage    `json:"error"`
}

type choice struct {
	Index        int                `json:"index"`
	Delta        delta              `json:"delta"`
	Message      delta              `json:"message"` // not streamed
	FinishReason httpapi.ReasonText `json:"finish_reason"`
	NativeReason httpapi.ReasonText `json:"native_finish_reason"` // OpenRouter
	Usage        *usage             `json:"usage"`                // Moonshot
	Error        json.RawMessage    `json:"error"`                // OpenRouter
}

type delta struct {
	Content          content               `json:"content"`
	Refusal          httpapi.Fragment      `json:"refusal"`
	Reasoning        httpapi.Fragment      `json:"reasoning"`
	ReasoningContent httpapi.Fragment      `json:"reasoning_content"`
	ReasoningDetails list[json.RawMessage] `json:"reasoning_details"`
	ToolCalls        list[callDelta]       `json:"tool_calls"`
	FunctionCall     functionDelta         `json:"function_call"` // the API before tools
	ExtraContent     optional              `json:"extra_content"`
}

type callDelta struct {
	Index        number        `json:"index"` // empty: none
	ID           string        `json:"id"`
	Function     functionDelta `json:"function"`
	ExtraContent optional      `json:"extra_content"`
}

type functionDelta struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A number is a JSON number as text; any other value is empty.
type number string

// UnmarshalJSON accepts any value.
func (n *number) UnmarshalJSON(data []byte) error {
	if '0' <= data[0] && data[0] <= '9' {
		*n = number(data)
	}
	return nil
}

// optional is any JSON value but null.
type optional json.RawMessage

// UnmarshalJSON accepts any value.
func (o *optional) UnmarshalJSON(data []byte) error {
	if string(data) != "null" {
		*o = bytes.Clone(data)
	}
	return nil
}

// A list is a JSON array of at most maxItems.
type list[T any] []T

// UnmarshalJSON accepts any value; anything but an array is empty.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return nil
	}
	decoder := jsonv1.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // the bracket
	for decoder.More() {
		if len(*l) == maxItems {
			return errTooMany
		}
		var item T
		if err := httpapi.IgnoreTypeErrors(decoder.Decode(&item)); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// content is a text, or a list of parts as Mistral writes it.
type content struct {
	text     string
	thinking string
}

// UnmarshalJSON accepts any value.
func (c *content) UnmarshalJSON(data []byte) error {
	*c = content{text: httpapi.ParseFragment(data)}
	if data[0] != '[' {
		return nil
	}
	var parts list[struct {
		Text     httpapi.Fragment `json:"text"`
		Thinking texts            `json:"thinking"`
	}]
	err := json.Unmarshal(data, &parts)
	for _, part := range parts {
		c.text += string(part.Text)
		c.thinking += string(part.Thinking)
	}
	return err
}

// texts is a text, or the texts of a list.
type texts string

// UnmarshalJSON accepts any value.
func (t *texts) UnmarshalJSON(data []byte) error {
	*t = texts(httpapi.ParseFragment(data))
	if data[0] != '[' {
		return nil
	}
	var parts list[struct {
		Text httpapi.Fragment `json:"text"`
	}]
	err := json.Unmarshal(data, &parts)
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(string(part.Text))
	}
	*t = texts(all.String())
	return err
}

// usage is the usage of an answer, in all fields that providers report it in.
type usage struct {
	Prompt     httpapi.Count `json:"prompt_tokens"`
	Completion httpapi.Count `json:"completion_tokens"`
	Total      httpapi.Count `json:"total_tokens"`

	PromptDetails struct {
		Cached     httpapi.Count `json:"cached_tokens"`
		CacheWrite httpapi.Count `json:"cache_write_tokens"`
		Text       httpapi.Count `json:"text_tokens"`
		Audio      httpapi.Count `json:"audio_tokens"`
		Image      httpapi.Count `json:"image_tokens"`
		Video      httpapi.Count `json:"video_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning httpapi.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	Cached        httpapi.Count `json:"cached_tokens"`               // Moonshot
	NumCached     httpapi.Count `json:"num_cached_tokens"`           // Mistral
	CacheHit      httpapi.Count `json:"prompt_cache_hit_tokens"`     // DeepSeek
	CacheCreation httpapi.Count `json:"cache_creation_input_tokens"` // Vercel

	Audio        httpapi.Count `json:"audio_tokens"`         // Mistral
	AudioSeconds httpapi.Count `json:"prompt_audio_seconds"` // Mistral

	Cost  httpapi.Cost  `json:"cost"` // OpenRouter, Vercel, Perplexity: US dollars
	Ticks httpapi.Ticks `json:"cost_in_usd_ticks"`
}

// mediaApart returns the tokens of audio, images and videos in the prompt that the reported prompt tokens leave out.
// Mistral counts them only in the total, as other servers count thinking.
func (u *usage) mediaApart() httpapi.Count {
	details := &u.PromptDetails
	media := max(details.Audio+details.Image+details.Video, u.Audio)
	rest := u.Total - u.Prompt - u.Completion
	isCounted := details.Text > 0 && details.Text+media == u.Prompt
	switch {
	case rest <= 0, rest == u.CompletionDetails.Reasoning, isCounted, media > rest:
		return 0
	case media == 0 && u.AudioSeconds > 0: // how long the audio is, and not how many tokens
		return rest
	}
	return media
}

// convert returns the usage of a step.
func (u *usage) convert() step.Usage {
	return httpapi.Report{
		Input: u.Prompt + u.mediaApart(), Output: u.Completion, Total: u.Total,
		Reasoning:  u.CompletionDetails.Reasoning,
		CacheRead:  max(u.PromptDetails.Cached, u.Cached, u.NumCached, u.CacheHit),
		CacheWrite: max(u.PromptDetails.CacheWrite, u.CacheCreation),
		Cost:       u.Cost, Ticks: u.Ticks,
	}.Usage()
}
