package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Open makes the Model under test for an endpoint. It asks for the model named
// ModelName and sends the key Key.
type Open func(t *testing.T, baseURL string) model.Model

// Values that an Open must use.
const (
	ModelName = "scripted"
	Key       = "sk-conformance-0123456789"
)

// Run tests an adapter to chat completions: for any answer of a provider, an adapter must return all of it or an error
// of package model.
func Run(t *testing.T, open Open) { suite{open: open}.run(t) }

// RunSigned tests an adapter to the Messages API, which signs thinking.
func RunSigned(t *testing.T, open Open) { suite{open: open, sign: Signature}.run(t) }

// RunUnsigned tests an adapter to providers with the Messages API that sign nothing.
func RunUnsigned(t *testing.T, open Open) { suite{open: open, unsigned: true}.run(t) }

// RunResponses tests an adapter to the Responses API, in which each part has provider data.
func RunResponses(t *testing.T, open Open) { suite{open: open, hasData: true}.run(t) }

func (s suite) run(t *testing.T) {
	t.Run("answers are read whole", s.answers)
	t.Run("faults become errors that can be acted upon", s.faults)
	t.Run("finish reasons that break an answer off never end it", s.breaks)
	t.Run("an answer cut anywhere is whole or incomplete", s.cuts)
	t.Run("the pieces in which an answer comes do not matter", s.pieces)
	t.Run("a tool turn is sent back as strict providers want it", s.roundTrip)
	t.Run("an answer is sent back as strict providers want it", s.sentBack)
	t.Run("images and documents are sent as strict providers want them", s.files)
	t.Run("files that a provider refuses are sent as lines from then on", s.refusedFiles)
	t.Run("who stops listening, or cancels, is obeyed", s.cancel)
}

type suite struct {
	open     Open
	sign     func(thinking string) string // nil: thinking is not signed
	unsigned bool
	hasData  bool // parts have provider data, which the expected answers have not
}

// script returns a Script of one turn for the model under test.
func (s suite) script(turns ...Turn) Script {
	return Script{Key: Key, Unsigned: s.unsigned, Models: map[string]Dialogue{ModelName: {Turns: turns}}}
}

// signed returns an answer as it is expected over the tested API.
func (s suite) signed(r model.Response) model.Response {
	if s.sign == nil {
		return r
	}
	r.Parts = slices.Clone(r.Parts)
	for i, p := range r.Parts {
		if p.Kind == step.PartThinking {
			r.Parts[i].Signature = s.sign(p.Text)
		}
	}
	return r
}

// plain returns an answer without provider data.
func (s suite) plain(r model.Response) model.Response {
	if !s.hasData {
		return r
	}
	var parts []step.Part
	for _, p := range r.Parts {
		if p.Kind != step.PartCall {
			p.Provider = nil
			parts = append(parts, p)
		}
	}
	r.Parts = parts
	return r
}

// full is a turn with thinking, a text, calls and usage.
var full = Turn{
	Thinking: "The file first, then the rest: ä ö ü 日本.",
	Text:     "I read both files, one after the other. ✓",
	Calls: []Call{
		{Name: "Read", Args: json.RawMessage(`{"path":"a \"quoted\" <name> & more.txt","limit":10}`)},
		{Name: "Read", Args: json.RawMessage(`{"path":"b.txt"}`)},
	},
	Usage: &Usage{Input: 1200, CacheRead: 1000, Output: 80, Reasoning: 30, CostUSD: "0.001234"},
}

// fullResponse is full as a [model.Response].
var fullResponse = model.Response{
	Parts: []step.Part{
		{Kind: step.PartThinking, Text: full.Thinking},
		{Kind: step.PartText, Text: full.Text},
	},
	Calls: []model.Call{
		{Name: "Read", Args: `{"path":"a \"quoted\" <name> & more.txt","limit":10}`},
		{Name: "Read", Args: `{"path":"b.txt"}`},
	},
	Finish: step.FinishCalls,
	Usage: step.Usage{
		InputTokens: 1200, CacheReadTokens: 1000, OutputTokens: 80, ReasoningTokens: 30, CostMicroUSD: 1234, Priced: true,
	},
}

// ask returns an ordinary request.
func ask() *model.Request {
	return &model.Request{
		System: "You read files.",
		Steps:  []step.Step{{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Read a and b."}}}},
		Tools:  []step.Tool{{Name: "Read", Description: "Reads a file.", Input: json.RawMessage(`{"type":"object"}`)}},
	}
}

// play serves one turn, through the handler of around if it is not nil, and returns the answer that the model under
// test reads.
func (s suite) play(t *testing.T, turn Turn, around func(http.Handler) http.Handler) (model.Response, error) {
	t.Helper()
	var handler http.Handler = NewServer(s.script(turn))
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	got, err := model.Collect(s.open(t, server.URL+"/v1").Stream(t.Context(), ask()), nil)
	return s.plain(got), err
}

func (s suite) answers(t *testing.T) {
	usage := step.Usage{InputTokens: 10, OutputTokens: 5}
	said := func(kind step.PartKind, text string) []step.Part { return []step.Part{{Kind: kind, Text: text}} }
	cases := map[string]struct {
		turn Turn
		want model.Response
	}{
		"a text": {
			Turn{Text: "Hello."},
			model.Response{Parts: said(step.PartText, "Hello."), Finish: step.FinishStop, Usage: usage},
		},
		"thinking, a text and parallel calls, with all that they cost": {full, fullResponse},
		"a call without a word": {
			Turn{Calls: []Call{{Name: "Ls", Args: json.RawMessage(`{"path":"."}`)}}},
			model.Response{Calls: []model.Call{{Name: "Ls", Args: `{"path":"."}`}}, Finish: step.FinishCalls, Usage: usage},
		},
		"a call without arguments has an empty object": {
			Turn{Calls: []Call{{Name: "Ls"}}},
			model.Response{Calls: []model.Call{{Name: "Ls", Args: "{}"}}, Finish: step.FinishCalls, Usage: usage},
		},
		"broken arguments reach the engine as they were written": {
			Turn{Calls: []Call{{Name: "Ls", Args: json.RawMessage(`"{\"path\": "`)}}},
			model.Response{Calls: []model.Call{{Name: "Ls", Args: `{"path":`}}, Finish: step.FinishCalls, Usage: usage},
		},
		"an answer that the output limit cut says so": {
			Turn{Text: "And then", Finish: step.FinishLength},
			model.Response{Parts: said(step.PartText, "And then"), Finish: step.FinishLength, Usage: usage},
		},
		"a refusal": {
			Turn{Text: "I will not.", Finish: step.FinishRefusal},
			model.Response{Parts: said(step.PartText, "I will not."), Finish: step.FinishRefusal, Usage: usage},
		},
		"a finish reason that is not known": {
			Turn{Text: "Hello.", FinishReason: "tired"},
			model.Response{Parts: said(step.PartText, "Hello."), Finish: step.FinishOther, UnclearReason: "tired", Usage: usage},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.turn.Usage == nil {
				tc.turn.Usage = &Usage{Input: 10, Output: 5}
			}
			got, err := s.play(t, tc.turn, nil)
			if diff := cmp.Diff(s.signed(tc.want), got); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// breaks checks the finish reasons that never end an answer.
func (s suite) breaks(t *testing.T) {
	cases := map[string]func(error) bool{
		"abort":                         is[*model.BrokenOffError],
		"network_error":                 is[*model.BrokenOffError],
		"insufficient_system_resource":  is[*model.BrokenOffError],
		"MALFORMED_FUNCTION_CALL":       is[*model.BrokenOffError],
		"model_context_window_exceeded": is[*model.ContextTooLongError],
	}
	for reason, want := range cases {
		t.Run(reason, func(t *testing.T) {
			turn := full
			turn.FinishReason = reason
			r, err := s.play(t, turn, nil)
			if !want(err) || !strings.Contains(err.Error(), reason) || r.Finish != "" {
				t.Errorf("finish %q, error %v (%T)", r.Finish, err, err)
			}
			if r.Usage.InputTokens != fullResponse.Usage.InputTokens || r.Usage.Estimated {
				t.Errorf("the usage that was reported is not charged: %+v", r.Usage)
			}
		})
	}
}

func (s suite) faults(t *testing.T) {
	cases := map[string]struct {
		fault Fault
		want  func(error) bool
	}{
		"401": {Fault{Kind: FaultStatus, Status: 401}, is[*model.UnauthorizedError]},
		"400": {Fault{Kind: FaultStatus, Status: 400}, is[*model.BadRequestError]},
		"400 about the window": {
			Fault{Kind: FaultStatus, Status: 400, Message: "This model's maximum context length is 8192 tokens."},
			is[*model.ContextTooLongError],
		},
		"400 about the tokens, at Perplexity": {
			Fault{Kind: FaultStatus, Status: 400, Message: "User input tokens exceeds 127072 tokens"},
			is[*model.ContextTooLongError],
		},
		"404":                {Fault{Kind: FaultStatus, Status: 404}, isUnknownPath},
		"422":                {Fault{Kind: FaultStatus, Status: 422}, is[*model.BadRequestError]},
		"429 with a wait":    {Fault{Kind: FaultStatus, Status: 429, RetryAfter: "7"}, waits(7 * time.Second)},
		"429 without a wait": {Fault{Kind: FaultStatus, Status: 429}, waits(0)},
		"500":                {Fault{Kind: FaultStatus, Status: 500}, is[*model.UnavailableError]},
		"503":                {Fault{Kind: FaultStatus, Status: 503}, is[*model.UnavailableError]},
		"529":                {Fault{Kind: FaultStatus, Status: 529}, is[*model.UnavailableError]},
		"a web page":         {Fault{Kind: FaultHTML}, isNotAModel},
		"an error with 200":  {Fault{Kind: FaultErrorBody, Status: 429}, waits(0)},
		"garbage":            {Fault{Kind: FaultGarbage}, is[*model.IncompleteError]},
		"a reset":            {Fault{Kind: FaultReset}, is[*model.UnavailableError]},
		"a reset during a stream": {
			Fault{Kind: FaultReset, After: 200}, model.Transient,
		},
		"an error during a stream": {Fault{Kind: FaultStreamError, After: 400, Status: 503}, is[*model.UnavailableError]},
		"an empty answer":          {Fault{Kind: FaultCut}, is[*model.IncompleteError]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			turn := full
			turn.Faults = []Fault{tc.fault}
			r, err := s.play(t, turn, nil)
			if !tc.want(err) {
				t.Errorf("got %v (%T)", err, err)
			}
			if r.Finish != "" {
				t.Errorf("a failed answer has the finish %q", r.Finish)
			}
		})
	}
}

// is reports whether an error is of a type.
func is[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// isUnknownPath reports whether an error describes that the server does not know the address, and names the address.
func isUnknownPath(err error) bool {
	var badRequest *model.BadRequestError
	return errors.As(err, &badRequest) && names(err, badRequest.Asked)
}

// isNotAModel reports whether an error describes that no model is at the address, and names the address.
func isNotAModel(err error) bool {
	var notAModel *model.NotAModelError
	return errors.As(err, &notAModel) && names(err, notAModel.Asked)
}

// names reports whether an error names the address that was asked.
func names(err error, asked string) bool {
	address, ok := strings.CutPrefix(asked, "POST http://")
	_, path, _ := strings.Cut(address, "/")
	return ok && path != "" && strings.Contains(err.Error(), asked)
}

// waits returns a function that reports whether an error is a rate limit with this wait.
func waits(want time.Duration) func(error) bool {
	return func(err error) bool {
		var limited *model.RateLimitedError
		return errors.As(err, &limited) && limited.RetryAfter == want
	}
}

func (s suite) cancel(t *testing.T) {
	turn := full
	turn.Faults = []Fault{{Kind: FaultIdle, After: 1200, Times: -1}}
	server := httptest.NewServer(NewServer(s.script(turn)))
	t.Cleanup(server.Close) // waits for the handlers: they end only when the client hangs up
	m := s.open(t, server.URL+"/v1")

	t.Run("a break ends the call", func(*testing.T) {
		for range m.Stream(t.Context(), ask()) {
			break
		}
	})
	t.Run("a cancelled context is the error, after what was spent", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := model.Collect(m.Stream(ctx, ask()), func(model.Delta) { cancel() })
		if !errors.Is(err, context.Canceled) || model.Transient(err) {
			t.Errorf("got %v", err)
		}
		if r.Usage.InputTokens == 0 || !r.Usage.Estimated {
			t.Errorf("the cut answer cost %+v, want an estimate", r.Usage)
		}
	})
}
