package httpapi

import (
	"strings"
	"unicode"
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
