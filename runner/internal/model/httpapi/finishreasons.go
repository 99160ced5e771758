package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A FinishMeaning is the meaning of a finish reason for the answer.
type FinishMeaning int

// The meanings of finish reasons.
const (
	FinishUnknown    FinishMeaning = iota // no table has the reason
	FinishStop                            // the model said all
	FinishCalls                           // the model waits for the results of its calls
	FinishLength                          // the output limit cut the answer
	FinishRefusal                         // the provider or the model declined
	FinishPaused                          // another request asks for the rest
	FinishWindowFull                      // the context window was full before the answer ended
	FinishBrokenOff                       // the server ended the answer, not the model
	FinishUnusable                        // the model wrote something that the server cannot use
)

// A FinishReason is a row of a table: a reason in lower case with underscores, and its
// meaning.
type FinishReason struct {
	Reason  string
	Meaning FinishMeaning
}

// finishReasons are the reasons of all servers of both APIs. Gateways pass on the reasons of other servers, so a
// dialect has its own rows only for reasons with another meaning.
//
// vLLM ends an answer with abort when it is stopped or put to sleep, and then ends the stream normally:
// https://github.com/vllm-project/vllm/issues/57082
//
//	GLM      https://docs.z.ai/api-reference/llm/chat-completion
//	Gemini   https://ai.google.dev/api/generate-content#FinishReason
//	Bedrock  https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
//	Cohere   https://docs.cohere.com/reference/chat
var finishReasons = [...]FinishReason{
	{"stop", FinishStop},
	{"stopped", FinishStop},
	{"stop_sequence", FinishStop},
	{"stop_token", FinishStop},
	{"stop_word", FinishStop},
	{"stop_str", FinishStop},
	{"end", FinishStop},
	{"end_turn", FinishStop},
	{"end_of_turn", FinishStop},
	{"end_of_text", FinishStop},
	{"end_of_sequence", FinishStop},
	{"eos", FinishStop},
	{"eos_token", FinishStop},
	{"eot", FinishStop},
	{"complete", FinishStop},
	{"completed", FinishStop},
	{"finish", FinishStop},
	{"finished", FinishStop},
	{"done", FinishStop},

	{"tool_calls", FinishCalls},
	{"tool_call", FinishCalls},
	{"tool_use", FinishCalls},
	{"function_call", FinishCalls},
	{"function_calls", FinishCalls},

	{"length", FinishLength},
	{"limit", FinishLength},
	{"max_length", FinishLength},
	{"max_tokens", FinishLength},
	{"max_new_tokens", FinishLength},
	{"max_output_tokens", FinishLength},
	{"max_completion_tokens", FinishLength},
	{"token_limit", FinishLength},
	{"incomplete", FinishLength},
	{"truncated", FinishLength},

	{"refusal", FinishRefusal},
	{"content_filter", FinishRefusal},
	{"content_filtered", FinishRefusal},
	{"safety", FinishRefusal},
	{"sensitive", FinishRefusal},
	{"recitation", FinishRefusal},
	{"language", FinishRefusal},
	{"blocklist", FinishRefusal},
	{"prohibited_content", FinishRefusal},
	{"spii", FinishRefusal},
	{"model_armor", FinishRefusal},
	{"guardrail_intervened", FinishRefusal},
	{"error_toxic", FinishRefusal},

	{"pause_turn", FinishPaused},
	{"compaction", FinishPaused}, // the provider compacted the session and paused

	{"model_context_window_exceeded", FinishWindowFull},
	{"model_length", FinishWindowFull}, // Mistral
	{"error_limit", FinishWindowFull},  // Cohere

	{"abort", FinishBrokenOff},
	{"error", FinishBrokenOff},
	{"network_error", FinishBrokenOff},
	{"insufficient_system_resource", FinishBrokenOff}, // DeepSeek
	{"user_cancel", FinishBrokenOff},

	{"malformed_function_call", FinishUnusable},
	{"malformed_tool_use", FinishUnusable},
	{"malformed_model_output", FinishUnusable},
	{"malformed_response", FinishUnusable},
	{"missing_thought_signature", FinishUnusable},
	{"unexpected_tool_call", FinishUnusable},
	{"too_many_tool_calls", FinishUnusable},
	{"tool_call_error", FinishUnusable},
	{"tool_use_failed", FinishUnusable},
	{"repetition", FinishUnusable}, // vLLM stopped a model that repeats itself
}

// finishWords give a meaning to reasons without a row: the first row counts whose words occur in the reason. None of
// them means a complete answer, so an unknown reason never means a complete answer. Limits of other things than the
// output come before the limit of the output.
var finishWords = [...]FinishReason{
	{"context", FinishWindowFull},
	{"malformed", FinishUnusable},
	{"invalid", FinishUnusable},
	{"bad_gateway", FinishBrokenOff},
	{"bad", FinishUnusable},
	{"safety", FinishRefusal},
	{"filter", FinishRefusal},
	{"filtered", FinishRefusal},
	{"moderation", FinishRefusal},
	{"policy", FinishRefusal},
	{"prohibited", FinishRefusal},
	{"guardrail", FinishRefusal},
	{"blocked", FinishRefusal},
	{"refusal", FinishRefusal},
	{"refused", FinishRefusal},
	{"abort", FinishBrokenOff},
	{"aborted", FinishBrokenOff},
	{"cancel", FinishBrokenOff},
	{"canceled", FinishBrokenOff},
	{"cancelled", FinishBrokenOff},
	{"capacity", FinishBrokenOff},
	{"connection", FinishBrokenOff},
	{"crash", FinishBrokenOff},
	{"crashed", FinishBrokenOff},
	{"deadline", FinishBrokenOff},
	{"dead", FinishBrokenOff},
	{"died", FinishBrokenOff},
	{"disconnect", FinishBrokenOff},
	{"disconnected", FinishBrokenOff},
	{"error", FinishBrokenOff},
	{"evicted", FinishBrokenOff},
	{"eviction", FinishBrokenOff},
	{"exception", FinishBrokenOff},
	{"expired", FinishBrokenOff},
	{"fail", FinishBrokenOff},
	{"failed", FinishBrokenOff},
	{"failure", FinishBrokenOff},
	{"insufficient", FinishBrokenOff},
	{"interrupted", FinishBrokenOff},
	{"killed", FinishBrokenOff},
	{"lost", FinishBrokenOff},
	{"memory", FinishBrokenOff},
	{"oom", FinishBrokenOff},
	{"overloaded", FinishBrokenOff},
	{"preempted", FinishBrokenOff},
	{"quota", FinishBrokenOff},
	{"rate", FinishBrokenOff},
	{"resource", FinishBrokenOff},
	{"resources", FinishBrokenOff},
	{"shutdown", FinishBrokenOff},
	{"shutting", FinishBrokenOff},
	{"terminated", FinishBrokenOff},
	{"throttled", FinishBrokenOff},
	{"time_limit", FinishBrokenOff},
	{"timed_out", FinishBrokenOff},
	{"timeout", FinishBrokenOff},
	{"unavailable", FinishBrokenOff},
	{"length", FinishLength},
	{"max_tokens", FinishLength},
	{"max_new_tokens", FinishLength},
	{"max_output_tokens", FinishLength},
	{"max_completion_tokens", FinishLength},
	{"output_limit", FinishLength},
	{"token_limit", FinishLength},
	{"incomplete", FinishLength},
	{"truncated", FinishLength},
	{"exhausted", FinishBrokenOff},
}

// noErrors removes words that only mean that there was no error.
var noErrors = strings.NewReplacer("_no_error_", "_", "_no_errors_", "_", "_without_error_", "_", "_without_errors_", "_")

// MeaningOf returns the meaning of a finish reason. The rows of a dialect come before those
// of all servers.
func MeaningOf(reason string, dialect []FinishReason) FinishMeaning {
	name := snakeCase(reason)
	for _, prefix := range []string{"finish_reason_", "stop_reason_", "finished_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	words := noErrors.Replace("_" + name + "_")
	if words == "_" {
		return FinishStop
	}
	name = strings.Trim(words, "_")
	for _, table := range [][]FinishReason{dialect, finishReasons[:]} {
		for _, row := range table {
			if row.Reason == name {
				return row.Meaning
			}
		}
	}
	for _, row := range finishWords {
		if strings.Contains(words, "_"+row.Reason+"_") {
			return row.Meaning
		}
	}
	return FinishUnknown
}

// snakeCase returns the words of a name in lower case, with an underscore between two:
// servers write MAX_TOKENS, max-tokens, maxTokens and FinishReason.MAX_TOKENS.
func snakeCase(name string) string {
	var out strings.Builder
	wasLower, pending := false, false
	for _, r := range name {
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r)
		pending = pending || !isWord || wasLower && unicode.IsUpper(r)
		wasLower = isWord && !unicode.IsUpper(r)
		if !isWord {
			continue
		}
		if pending && out.Len() > 0 {
			out.WriteByte('_')
		}
		pending = false
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// isWhole reports whether an answer with this meaning may be complete. Other meanings end an answer wherever they
// occur.
func (m FinishMeaning) isWhole() bool {
	return m == FinishUnknown || m == FinishStop || m == FinishCalls
}

// isBreak reports whether a reason with this meaning never ends an answer.
func (m FinishMeaning) isBreak() bool {
	return m == FinishPaused || m == FinishWindowFull || m == FinishBrokenOff || m == FinishUnusable
}

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

// A ReasonText is a finish reason in JSON: a text, or the type of an object, as SGLang writes it. For any other value
// it is the first text inside, or otherwise the JSON, so that it never counts as absent.
type ReasonText string

// UnmarshalJSON accepts any value.
func (r *ReasonText) UnmarshalJSON(data []byte) error {
	switch value := string(data); {
	case data[0] == '"':
		*r = ReasonText(String(data))
	case data[0] == '{', data[0] == '[':
		*r = ReasonText(reasonInside(data))
	case value != "null" && value != "false" && value != "0":
		*r = ReasonText(value)
	}
	return nil
}

// reasonInside returns the reason in an object or a list. An empty one has none.
func reasonInside(data []byte) string {
	var object struct {
		Type Text `json:"type"`
	}
	_ = Unmarshal(data, &object) // a list has no type
	reason, isEmpty := string(object.Type), true
	decoder := json.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // the bracket
	for reason == "" && decoder.More() {
		if data[0] == '{' {
			_, _ = decoder.Token() // the key
		}
		var text Text
		_ = decoder.Decode(&text) // JSON: cannot fail
		reason, isEmpty = string(text), false
	}
	if reason == "" && !isEmpty {
		return string(data)
	}
	return reason
}
