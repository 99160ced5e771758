package httpapi

import "testing"

func TestMeaningOf(t *testing.T) {
	cases := map[FinishMeaning][]string{
		FinishStop:       {"stop", "STOP", "eos", "eos_token", "EosToken", "end_turn", "stop_sequence", "COMPLETE", "completed", "FINISH_REASON_STOP", "FinishReason.STOP", "finished_stopped", "no_error", "stop_no_error", "STOP_NO_ERROR", "FINISH_REASON_NO_ERROR", "finished_without_error"},
		FinishCalls:      {"tool_calls", "tool-calls", "toolUse", "function_call", "TOOL_CALL", "tool_calls_no_error"},
		FinishLength:     {"length", "MAX_TOKENS", "maxTokens", "max_output_tokens", "max-length", "incomplete", "max_tokens_reached", "output_limit", "length_limit", "length_exceeded", "output-limit-reached", "token_limit_reached", "max_new_tokens_reached", "reached_max_output_tokens", "maxCompletionTokensReached", "response_incomplete", "output_truncated"},
		FinishRefusal:    {"content_filter", "contentFilter", "refusal", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST", "sensitive", "guardrail_intervened", "ERROR_TOXIC", "IMAGE_SAFETY", "policy_violation", "blocked", "response_blocked", "model_refused"},
		FinishPaused:     {"pause_turn", "compaction"},
		FinishWindowFull: {"model_context_window_exceeded", "model_length", "ERROR_LIMIT", "context_length_exceeded", "MAX_CONTEXT", "context_limit"},
		FinishBrokenOff:  {"abort", "ABORT", "network_error", "NetworkError", "insufficient_system_resource", "error", "ERROR", "FINISHED_ABORTED", "cancelled", "upstream-timeout", "internal server error", "terminated", "exception", "evicted", "crashed", "server_shutting_down", "out_of_memory", "connection_lost", "resource_exhausted", "no_capacity", "rate_limit", "engine_dead", "RESOURCE_EXHAUSTED", "RateLimit", "rate_limit_max_tokens", "memory_limit", "bad_gateway", "abort_no_error", "length_error", "time_limit", "TIME_LIMIT_REACHED", "timed_out", "deadline_exceeded", "quota_exceeded", "lease_expired"},
		FinishUnusable:   {"malformed_function_call", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "malformed_tool_use", "MALFORMED_RESPONSE", "invalid_tool_call", "repetition", "bad_tool_call"},
		FinishUnknown:    {"", "other", "OTHER", "FINISH_REASON_UNSPECIFIED", "load", "tired", "stopping", "lengthy", "terror", "日本", "capacitor", "generation_rated"},
	}
	for want, reasons := range cases {
		for _, reason := range reasons {
			if got := MeaningOf(reason, nil); got != want {
				t.Errorf("MeaningOf(%q) = %d, want %d", reason, got, want)
			}
		}
	}
}

func TestRowsOfADialectComeFirst(t *testing.T) {
	rows := []FinishReason{{"load", FinishBrokenOff}, {"stop", FinishLength}}
	for reason, want := range map[string]FinishMeaning{"load": FinishBrokenOff, "STOP": FinishLength, "length": FinishLength, "eos": FinishStop} {
		if got := MeaningOf(reason, rows); got != want {
			t.Errorf("MeaningOf(%q) = %d, want %d", reason, got, want)
		}
	}
}

func TestTheNativeReasonCountsWhereItSaysMore(t *testing.T) {
	cases := map[string]struct {
		reason, native, want string
	}{
		"both are ends":                       {"stop", "end_turn", "stop"},
		"the native one breaks off":           {"stop", "abort", "abort"},
		"the native one names the error":      {"error", "MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"},
		"the native one is cut":               {"stop", "max_output_tokens", "max_output_tokens"},
		"the native one is not known":         {"stop", "tired", "stop"},
		"only the native one is known":        {"tired", "end_turn", "end_turn"},
		"only the native one is there":        {"", "end_turn", ""},
		"only the native one, and it is none": {"", "network_error", "network_error"},
		"calls behind a native stop":          {"tool_calls", "STOP", "tool_calls"},
	}
	for name, tc := range cases {
		p := Piece{Reason: tc.reason, Native: tc.native}
		if got, _ := p.reason(); got != tc.want {
			t.Errorf("%s: reason() = %q, want %q", name, got, tc.want)
		}
	}
}

// A new dialect, or a new row, must keep the table readable: one row for a reason.
func TestReasonsHaveOneRow(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range append(finishReasons[:], finishWords[:]...) {
		if row.Reason != snakeCase(row.Reason) {
			t.Errorf("the row %q is not in lower case with underscores", row.Reason)
		}
	}
	for _, row := range finishReasons {
		if seen[row.Reason] {
			t.Errorf("%q has two rows", row.Reason)
		}
		seen[row.Reason] = true
	}
}
