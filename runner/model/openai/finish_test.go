package openai_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// finishing is a line whose delta is this, with a finish reason: JSON too.
func finishing(delta, reason string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, reason)
}

const (
	someText     = `{"content":"Hi"}`
	someThinking = `{"reasoning_content":"Hm"}`
	someCall     = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}`
	someUsage    = `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":9}}`
)

// A finish reason that breaks an answer off never ends one, whatever came before it. What
// the provider reported of its usage is charged.
func TestAnAnswerThatWasBrokenOff(t *testing.T) {
	windowFull := func(reason string) error {
		return &model.ContextTooLongError{Message: "the window was full before the answer ended (finish reason " + reason + ")"}
	}
	cases := map[string]struct {
		reason string
		want   error
	}{
		"by a server that stops":                       {`"abort"`, &model.BrokenOffError{Reason: "abort"}},
		"by a server that writes an object":            {`{"type":"abort","message":"stopped"}`, &model.BrokenOffError{Reason: "abort"}},
		"by a server that writes another object":       {`{"reason":"abort"}`, &model.BrokenOffError{Reason: "abort"}},
		"by a server that writes a list":               {`["abort"]`, &model.BrokenOffError{Reason: "abort"}},
		"by a server that writes an object in another": {`{"reason":{"type":"abort"}}`, &model.BrokenOffError{Reason: `{"reason":{"type":"abort"}}`}},
		"by a network error":                           {`"network_error"`, &model.BrokenOffError{Reason: "network_error"}},
		"by a server without resources":                {`"insufficient_system_resource"`, &model.BrokenOffError{Reason: "insufficient_system_resource"}},
		"by a pause that cannot be continued":          {`"pause_turn"`, &model.BrokenOffError{Reason: "pause_turn"}},
		"by a call that the server cannot read":        {`"MALFORMED_FUNCTION_CALL"`, &model.BrokenOffError{Reason: "MALFORMED_FUNCTION_CALL", Unusable: true}},
		"by a window that is full":                     {`"model_context_window_exceeded"`, windowFull("model_context_window_exceeded")},
		"by a window that is full, at Mistral":         {`"model_length"`, windowFull("model_length")},
		"by a reason that is long":                     {`"error ` + strings.Repeat("x", 99) + `"`, &model.BrokenOffError{Reason: "error " + strings.Repeat("x", 58) + "…"}},
	}
	for name, tc := range cases {
		for where, content := range map[string]string{"before a word": "{}", "in a text": someText, "in a call": someCall, "in thinking": someThinking} {
			t.Run(name+" "+where, func(t *testing.T) {
				for _, lines := range [][]string{{delta(content), finishing("{}", tc.reason), someUsage, done}, {finishing(content, tc.reason), stop, someUsage}} {
					got, err := collect(t, streaming(lines...))
					if diff := gocmp.Diff(tc.want, err); diff != "" || got.Finish != "" {
						t.Errorf("finish %q, error -want +got:\n%s", got.Finish, diff)
					}
					if got.Usage != (step.Usage{InputTokens: 100, OutputTokens: 9}) {
						t.Errorf("usage %+v", got.Usage)
					}
				}
			})
		}
	}
}

func TestAnAnswerBrokenOffByTheServerBehindAGateway(t *testing.T) {
	line := `data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop","native_finish_reason":"abort"}]}`
	_, err := collect(t, streaming(line, done))
	if diff := gocmp.Diff(&model.BrokenOffError{Reason: "abort"}, err); diff != "" {
		t.Error(diff)
	}
}

func TestOllamaThatOnlyLoadedItsModel(t *testing.T) {
	ollama := func(o *openai.Options) { o.Provider = openai.ProviderOllama }
	for _, reason := range []string{"load", "unload"} {
		_, err := collect(t, streaming(finishing("{}", `"`+reason+`"`), done), ollama)
		if diff := gocmp.Diff(&model.BrokenOffError{Reason: reason}, err); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhyTheModelStopped(t *testing.T) {
	cases := map[string]struct {
		lines []string
		want  step.Finish
		doubt string // the reason, if it is unclear
	}{
		"stop":                               {[]string{delta(someText), stop, done}, step.FinishStop, ""},
		"an end of sequence":                 {[]string{finishing(someText, `"eos_token"`), done}, step.FinishStop, ""},
		"stop in capitals":                   {[]string{finishing(someText, `"STOP"`), done}, step.FinishStop, ""},
		"an empty reason":                    {[]string{finishing(someText, `""`), done}, step.FinishStop, ""},
		"an empty object":                    {[]string{finishing(someText, `{}`), done}, step.FinishStop, ""},
		"an empty list":                      {[]string{finishing(someText, `[]`), done}, step.FinishStop, ``},
		"false":                              {[]string{finishing(someText, `false`), done}, step.FinishStop, ``},
		"an object without a type":           {[]string{finishing(someText, `{"code":7,"reason":"tired"}`), done}, step.FinishOther, `tired`},
		"an object whose type is no text":    {[]string{finishing(someText, `{"type":7,"reason":"tired"}`), done}, step.FinishOther, `tired`},
		"an object without a text":           {[]string{finishing(someText, `{"code": 7}`), done}, step.FinishOther, `{"code": 7}`},
		"a list":                             {[]string{finishing(someText, `["MAX_TOKENS"]`), done}, step.FinishLength, ``},
		"a list without a text":              {[]string{finishing(someText, `[{"reason":"tired"}]`), done}, step.FinishOther, `[{"reason":"tired"}]`},
		"true":                               {[]string{finishing(someText, `true`), done}, step.FinishOther, `true`},
		"a negative number":                  {[]string{finishing(someText, `-1`), done}, step.FinishOther, `-1`},
		"tool_calls":                         {[]string{delta(someCall), calls, done}, step.FinishCalls, ""},
		"tool_calls without a call":          {[]string{delta(someText), calls, done}, step.FinishStop, "tool_calls"},
		"max_tokens in capitals":             {[]string{finishing(someText, `"MAX_TOKENS"`), done}, step.FinishLength, ""},
		"a break after the limit":            {[]string{finishing(someText, `"length"`), finishing("{}", `"abort"`), done}, step.FinishLength, ""},
		"a filter, at Gemini":                {[]string{finishing(someText, `"PROHIBITED_CONTENT"`), done}, step.FinishRefusal, ""},
		"a reason that nobody knows":         {[]string{finishing(someText, `"tired"`), done}, step.FinishOther, "tired"},
		"one that nobody knows, with calls":  {[]string{finishing(someCall, `"tired"`), done}, step.FinishOther, "tired"},
		"a number":                           {[]string{finishing(someText, `7`), done}, step.FinishOther, "7"},
		"one that nobody knows, before stop": {[]string{finishing(someText, `"tired"`), stop, done}, step.FinishStop, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(tc.lines...))
			if err != nil || got.Finish != tc.want || got.UnclearReason != tc.doubt {
				t.Errorf("got %q, unclear reason %q, %v; want %q, %q", got.Finish, got.UnclearReason, err, tc.want, tc.doubt)
			}
		})
	}
}

// Servers that write a finish reason into every chunk are believed when the stream ends, and
// not before.
func TestAFinishReasonInEveryChunk(t *testing.T) {
	const seven = 7 * time.Second
	event := func(delta, reason string) string { return finishing(delta, reason) + "\n\n" }
	const anotherCall = `{"tool_calls":[{"index":1,"id":"b","function":{"name":"x","arguments":"{}"}}]}`
	thinks, speaks, asks := event(someThinking, `"stop"`), event(someText, `"stop"`), event(someCall, `"stop"`)
	end := event("{}", `"stop"`)
	cases := map[string]struct {
		pieces []string
		finish step.Finish // empty: the answer does not count
		calls  int
		after  time.Duration
	}{
		"thinking, then a call":                                        {[]string{thinks, asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"text, then a call":                                            {[]string{speaks, asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"texts, then a call":                                           {[]string{speaks, speaks, asks, done + "\n"}, step.FinishCalls, 1, 4 * seven},
		"a start without output, then a call":                          {[]string{event(`{"role":"assistant","content":""}`, `"stop"`), asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"a reason of calls before the call":                            {[]string{event(someText, `"tool_calls"`), asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"only the first chunk has a reason":                            {[]string{thinks, delta(someText) + "\n\n", delta(someCall) + "\n\n", done + "\n"}, step.FinishCalls, 1, 4 * seven},
		"text right after the end, then a call":                        {[]string{delta(someText) + "\n\n" + end + delta(someText) + "\n\n", asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"a text with the reason, after thinking without, then a call":  {[]string{event(someThinking, "null") + speaks, asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"a call with the reason, after thinking without, then another": {[]string{event(someThinking, "null") + event(someCall, `"tool_calls"`), event(anotherCall, "null"), done + "\n"}, step.FinishCalls, 2, 3 * seven},
		"a text with the reason, after a text without, then a call":    {[]string{event(someText, "null") + speaks, asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"a text with the reason, the reason alone, then a call":        {[]string{speaks + end, asks, done + "\n"}, step.FinishCalls, 1, 3 * seven},
		"a text cut by the limit, then a text":                         {[]string{event(someThinking, "null") + event(someText, `"length"`), event(someText, `"length"`), done + "\n"}, step.FinishLength, 0, 3 * seven},
		"a text with the reason, the reason alone, then silence":       {[]string{speaks + end}, step.FinishStop, 0, seven + 15*time.Minute},
		"a break in a text, then silence":                              {[]string{event(someThinking, "null") + event(someText, `"abort"`)}, "", 0, seven + 5*time.Second},
		"a call, then silence":                                         {[]string{thinks, asks}, step.FinishCalls, 1, 2*seven + 15*time.Minute},
		"thinking, then silence":                                       {[]string{thinks}, "", 0, seven + 15*time.Minute},
		"a true end, then silence":                                     {[]string{delta(someText) + "\n\n", end}, step.FinishStop, 0, 2*seven + 5*time.Second},
		"a true end with the text, and before":                         {[]string{delta(someText) + "\n\n", speaks}, step.FinishStop, 0, 2*seven + 15*time.Minute},
		"a text alone, then silence":                                   {[]string{speaks}, step.FinishStop, 0, seven + 15*time.Minute},
		"a break, then silence":                                        {[]string{delta(someText) + "\n\n", event("{}", `"abort"`)}, "", 0, 2*seven + 5*time.Second},
		"the limit, then silence":                                      {[]string{event(someThinking, `null`), event("{}", `"length"`)}, step.FinishLength, 0, 2*seven + 5*time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got, err := collect(t, wiretest.Dripping(seven, tc.pieces...))
				if got.Finish != tc.finish || (err == nil) != (tc.finish != "") || len(got.Calls) != tc.calls && err == nil {
					t.Errorf("finish %q, %d calls, error %v", got.Finish, len(got.Calls), err)
				}
				if err != nil && !model.Transient(err) {
					t.Errorf("%v is not asked again", err)
				}
				if took := time.Since(start); took != tc.after {
					t.Errorf("took %s, want %s", took, tc.after)
				}
			})
		})
	}
}

// A connection that breaks after a reason that came too early ends nothing.
func TestAReasonInEveryChunkOfABrokenStream(t *testing.T) {
	cases := map[string]struct {
		lines []string
		whole bool
	}{
		"a reason with every text":     {[]string{finishing(someText, `"stop"`), finishing(someText, `"stop"`)}, false},
		"a reason with the first text": {[]string{finishing(someText, `"stop"`), delta(someText)}, false},
		"a reason with the last text":  {[]string{delta(someText), finishing(someText, `"stop"`)}, false},
		"a reason that nobody knows":   {[]string{delta(someText), finishing("{}", `"tired"`)}, false},
		"a reason after all text":      {[]string{delta(someText), stop}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := io.MultiReader(strings.NewReader(strings.Join(tc.lines, "\n\n")+"\n\n"), broken{})
			got, err := collect(t, wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}, nil
			}))
			_, incomplete := errors.AsType[*model.IncompleteError](err)
			if (err == nil) != tc.whole || incomplete == tc.whole {
				t.Errorf("finish %q, error %v", got.Finish, err)
			}
		})
	}
}

// broken is a connection that was reset.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }
