package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// refusal is an error as Anthropic writes it.
func refusal(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
}

func TestRefusalsAreTyped(t *testing.T) {
	json := func(status int, body string, headers ...string) http.RoundTripper {
		return wiretest.Answering(status, "application/json", body, headers...)
	}
	cases := map[string]struct {
		network http.RoundTripper
		want    error
	}{
		"a wrong key":      {json(401, refusal("authentication_error", "invalid x-api-key")), &model.UnauthorizedError{Status: 401, Message: "invalid x-api-key"}},
		"no right":         {json(403, refusal("permission_error", "no")), &model.UnauthorizedError{Status: 403, Message: "no"}},
		"no money":         {json(402, refusal("billing_error", "no")), &model.BadRequestError{Status: 402, Message: "no", Refusal: model.Refusal{Cause: model.CausePayment}}},
		"an unknown model": {json(404, refusal("not_found_error", "model: m")), &model.BadRequestError{Status: 404, Message: "model: m", Asked: "POST https://api.anthropic.com/v1/messages", Refusal: model.Refusal{Cause: model.CauseModel}}},
		"a bad field":      {json(400, refusal("invalid_request_error", "max_tokens: field required")), &model.BadRequestError{Status: 400, Message: "max_tokens: field required", Refusal: model.Refusal{Cause: model.CauseParameter, Field: "max_tokens", Setting: "inference.maxOutputTokens"}}},
		"a prompt too long": {
			json(400, refusal("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
			&model.ContextTooLongError{Message: "prompt is too long: 210000 tokens > 200000 maximum", Window: 200000},
		},
		"a prompt and an answer too long": {
			json(400, refusal("invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000")),
			&model.ContextTooLongError{Message: "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"},
		},
		"a request too large":   {json(413, refusal("request_too_large", "Request exceeds the maximum size")), &model.ContextTooLongError{Message: "Request exceeds the maximum size"}},
		"a rate limit":          {json(429, refusal("rate_limit_error", "slow down"), "Retry-After", "7"), &model.RateLimitedError{RetryAfter: 7 * time.Second, Message: "slow down"}},
		"one not to be retried": {json(429, refusal("rate_limit_error", "no"), "X-Should-Retry", "false"), &model.RateLimitedError{Final: true, Message: "no"}},
		"a failure":             {json(500, refusal("api_error", "oops")), &model.UnavailableError{Status: 500, Message: "oops"}},
		"a timeout":             {json(504, refusal("timeout_error", "late")), &model.UnavailableError{Status: 504, Message: "late"}},
		"too busy":              {json(529, refusal("overloaded_error", "Overloaded"), "Retry-After-Ms", "1500"), &model.UnavailableError{Status: 529, RetryAfter: 1500 * time.Millisecond, Message: "Overloaded"}},
		"a prompt that a gateway's policy filtered": {json(400, refusal("content_filter", "filtered")), &model.RefusedError{Message: "filtered"}},
		"a call that a gateway rejected":            {json(400, refusal("tool_use_failed", "no")), &model.UnavailableError{Status: 400, Message: "no"}},
		"a prompt too long behind a gateway": {
			json(400, refusal("too_many_prompt_tokens", "User input tokens exceeds 127072 tokens")),
			&model.ContextTooLongError{Message: "User input tokens exceeds 127072 tokens", Window: 127072},
		},
		"a gateway's page":        {wiretest.Answering(502, "text/html", "<html>Bad gateway</html>"), &model.UnavailableError{Status: 502, Message: `a web page that says "Bad gateway"`}},
		"200 with an error":       {json(200, refusal("overloaded_error", "Overloaded")), &model.UnavailableError{Status: 529, Message: "Overloaded"}},
		"200 with something else": {json(200, `{"data":[]}`), &model.NotAModelError{Asked: "POST https://api.anthropic.com/v1/messages", ContentType: "application/json", Message: `{"data":[]}`}},
		"200 from another wire":   {json(200, `{"choices":[]}`), &model.NotAModelError{Asked: "POST https://api.anthropic.com/v1/messages", ContentType: "application/json", Message: `{"choices":[]}`}},
		"a web page":              {wiretest.Answering(200, "text/html", "<!DOCTYPE html>\n<p>Log in"), &model.NotAModelError{Asked: "POST https://api.anthropic.com/v1/messages", ContentType: "text/html", Message: `a web page that says "Log in"`}},
		"a redirect":              {wiretest.Answering(308, "text/html", "", "Location", "https://elsewhere/"), &model.NotAModelError{Asked: "POST https://api.anthropic.com/v1/messages", Final: true, ContentType: "text/html", Message: "it redirects to https://elsewhere/"}},
		"a window that was full":  {streaming(begin, end("model_context_window_exceeded")), &model.ContextTooLongError{Message: "the window was full before the answer ended (finish reason model_context_window_exceeded)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, tc.network)
			if diff := gocmp.Diff(tc.want, err); diff != "" || r.Finish != "" {
				t.Errorf("finish %q, error -want +got:\n%s", r.Finish, diff)
			}
			if r.Usage != (step.Usage{}) && !strings.Contains(name, "window") {
				t.Errorf("a refusal cost %+v", r.Usage)
			}
		})
	}
}

func TestErrorsInTheStream(t *testing.T) {
	cases := map[string]struct {
		event string
		want  error
	}{
		"too busy":              {"event: error\ndata: " + refusal("overloaded_error", "Overloaded") + "\n\n", &model.UnavailableError{Status: 529, Message: "Overloaded"}},
		"a rate limit":          {"event: error\ndata: " + refusal("rate_limit_error", "no") + "\n\n", &model.RateLimitedError{Message: "no"}},
		"without a name":        {"data: " + refusal("api_error", "no") + "\n\n", &model.UnavailableError{Status: 500, Message: "no"}},
		"without a type":        {"event: error\ndata: {\"message\":\"no\"}\n\n", &model.UnavailableError{Status: 500, Message: "no"}},
		"in plain text":         {"event: error\ndata: upstream is gone\n\n", &model.UnavailableError{Status: 500, Message: "upstream is gone"}},
		"an object by itself":   {refusal("timeout_error", "no") + "\n", &model.UnavailableError{Status: 504, Message: "no"}},
		"as a field":            {"error: {\"code\":500,\"message\":\"no\"}\n\n", &model.UnavailableError{Status: 500, Message: "no"}},
		"that the key is wrong": {"event: error\ndata: " + refusal("authentication_error", "no") + "\n\n", &model.UnauthorizedError{Status: 401, Message: "no"}},
		"the window is full":    {"event: error\ndata: " + refusal("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum") + "\n\n", &model.ContextTooLongError{Message: "prompt is too long: 3 tokens > 2 maximum", Window: 2}},
	}
	positions := map[string]func(event string) []string{
		"in the middle": func(event string) []string {
			return []string{begin, text(0, "Hi"), event, text(1, "Ho"), end("end_turn")}
		},
		"last":             func(event string) []string { return []string{begin, text(0, "Hi"), strings.TrimSpace(event)} },
		"after the finish": func(event string) []string { return []string{begin, text(0, "Hi"), finish("end_turn"), event} },
	}
	for name, tc := range cases {
		for where, events := range positions {
			t.Run(name+" "+where, func(t *testing.T) {
				r, err := collect(t, streaming(events(tc.event)...))
				if diff := gocmp.Diff(tc.want, err); diff != "" || r.Finish != "" {
					t.Errorf("finish %q, error -want +got:\n%s", r.Finish, diff)
				}
				if r.Usage.InputTokens != 10 || !r.Usage.Estimated {
					t.Errorf("what was spent is not charged: %+v", r.Usage)
				}
			})
		}
	}
}

// An answer that the output limit ended is kept, whatever fails behind it: the
// next would end there too.
func TestAnErrorBehindTheOutputLimitIsIgnored(t *testing.T) {
	for name, event := range map[string]string{
		"an event":      "event: error\ndata: " + refusal("overloaded_error", "Overloaded") + "\n\n",
		"in plain text": "event: error\ndata: upstream is gone\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(begin, text(0, "And then"), finish("max_tokens"), event))
			if err != nil || r.Finish != step.FinishLength || summarize(r).Text != "And then" {
				t.Errorf("finish %q, error %v", r.Finish, err)
			}
		})
	}
}

func TestAnAnswerThatIsNotWholeIsIncomplete(t *testing.T) {
	cases := map[string]http.RoundTripper{
		"nothing at all":                 streaming(""),
		"only a beginning":               streaming(begin),
		"no reason and no end":           streaming(begin, text(0, "Hi")),
		"an end but not a word":          streaming(begin, event("message_stop", "")),
		"an event cut in the middle":     streaming(begin, text(0, "Hi"), finish("end_turn")[:60]),
		"an event that is no JSON":       streaming(begin, "data: pardon?\n\n", end("end_turn")),
		"a document cut":                 wiretest.Answering(200, "application/json", `{"type":"message","content":[{"type":"te`),
		"a document of nothing":          wiretest.Answering(200, "application/json", `{"type":"message","content":[]}`),
		"only keep-alives, then EOF":     streaming(": a\n\n", ": b\n\n"),
		"a beginning that says it ended": streaming(`data: {"type":"message_start","message":{"content":[],"stop_reason":"end_turn"}}` + "\n\n"),
		"[DONE] without a reason":        streaming(begin, "data: [DONE]\n\n"),
	}
	for name, network := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, network)
			wiretest.CheckIncomplete(t, r, err)
		})
	}
}

// Whatever an endpoint quotes, and wherever it quotes it, the key is in no error.
func TestNoErrorHoldsTheKey(t *testing.T) {
	const key = "sk-ant-0123456789abcdef"
	cases := map[string]http.RoundTripper{
		"an error body":          wiretest.Answering(401, "application/json", refusal("authentication_error", "invalid "+key)),
		"escapes in it":          wiretest.Answering(401, "application/json", refusal("authentication_error", `\u0073k-ant-0123456789abcdef`)),
		"a page cut in the key":  wiretest.Answering(200, "text/html", "<html>"+strings.Repeat(" ", 4<<10-16)+key),
		"a content type":         wiretest.Answering(200, "text/"+key, "<html>"),
		"an error in the stream": streaming("event: error\ndata: " + refusal("api_error", key) + "\n\n"),
		"a broken event":         streaming("data: " + key + "\n\n"),
		"a network error":        wiretest.RoundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New(key) }),
	}
	for name, network := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := collect(t, network, wiretest.WithKey(key))
			wiretest.CheckNoKey(t, err, key)
		})
	}
}

func TestAnAnswerOf2GiBIsNotBuffered(t *testing.T) {
	delta := blockDelta(0, `{"type":"text_delta","text":"`+strings.Repeat("a", 4000)+`"}`)
	cases := map[string]struct{ start, piece string }{
		"of one line":            {"data: {\"type\":\"", "aaaaaaaa"},
		"of comments":            {"", ": ping\n\n"},
		"of events":              {begin, delta},
		"of data without an end": {"", "data: \n"},
		"of lines of one event":  {"", "data: [\n"},
		"of blocks":              {begin, whole(0, `{"type":"song"}`)},
		"of thinking":            {begin, thinking(0, "a", "b")},
		"of a block that grows":  {begin + blockStart(0, `{"type":"song"}`), blockDelta(0, `{"type":"x_delta","text":"la"}`)},
		"that is one document":   {`{"type":"message","content":[{"type":"`, "aaaaaaaa"},
		"of spaces":              {"", "        "},
		"of messages that begin": {"", begin},
		"of calls":               {begin, tool(0, "a", "{}")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, writer := io.Pipe()
			go func() { writer.CloseWithError(repeat(writer, tc.start, tc.piece)) }()
			_, err := collect(t, wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader}, nil
			}))
			var notAModel *model.NotAModelError
			if !errors.As(err, &notAModel) || !strings.Contains(err.Error(), "MiB") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// repeat writes start and then 2 GiB of a piece, unless nobody reads.
func repeat(w io.Writer, start, piece string) error {
	if _, err := io.WriteString(w, start); err != nil {
		return err
	}
	block := bytes.Repeat([]byte(piece), 64<<10/len(piece)+1)
	for range 2 << 30 / len(block) {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

func TestAnAnswerOfTooManyCallsCountsAsCut(t *testing.T) {
	got, err := collect(t, streaming(begin, strings.Repeat(tool(0, "a"), 300), end("tool_use")))
	if err != nil || len(got.Calls) != 256 || got.Finish != step.FinishLength {
		t.Errorf("%d calls, finished with %q, error %v; want it cut", len(got.Calls), got.Finish, err)
	}
	got, err = collect(t, streaming(begin, strings.Repeat(text(0, "a"), 5000), end("end_turn")))
	if err != nil || got.Finish != step.FinishLength {
		t.Errorf("finished with %q, error %v; want it cut", got.Finish, err)
	}
}

// in is a network that answers each request with the next of these, and what it
// was asked.
func in(t *testing.T, answers ...wiretest.RoundTrip) (wiretest.RoundTrip, *[]string) {
	t.Helper()
	var asked []string
	return func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		asked = append(asked, string(body))
		if len(asked) > len(answers) {
			return wiretest.Answering(400, "application/json", refusal("invalid_request_error", "asked too often"))(r)
		}
		return answers[len(asked)-1](r)
	}, &asked
}

const search = `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}`

func TestAnAnswerThatPausesIsAskedToGoOn(t *testing.T) {
	network, asked := in(t,
		streaming(begin, thinking(0, "Hm.", "sig"), text(1, "I look."), whole(2, search), text(3, " \n"), end("pause_turn")),
		streaming(begin, whole(0, `{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}`), text(1, "Found."), tool(2, "now"), end("tool_use")),
	)
	got, err := collect(t, network)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"kind":"thinking","text":"Hm.","signature":"sig"},{"kind":"text","text":"I look."},` +
		`{"kind":"opaque","provider":{"id":"srv_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}},{"kind":"text","text":" \n"},` +
		`{"kind":"opaque","provider":{"content":[],"tool_use_id":"srv_1","type":"web_search_tool_result"}},{"kind":"text","text":"Found."}]`
	if diff := gocmp.Diff(want, parts(t, got.Parts)); diff != "" {
		t.Errorf("parts -want +got:\n%s", diff)
	}
	if got.Finish != step.FinishCalls || len(got.Calls) != 1 || got.Usage != (step.Usage{InputTokens: 20, OutputTokens: 10, ContextTokens: 15}) {
		t.Errorf("finish %q, calls %v, usage %+v", got.Finish, got.Calls, got.Usage)
	}
	again := messages(t, (*asked)[1])
	if want := strings.TrimSuffix(messages(t, (*asked)[0]), "]") + `,{"role":"assistant","content":[{"signature":"sig","thinking":"Hm.","type":"thinking"},{"text":"I look.","type":"text"},` +
		`{"id":"srv_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}]}]`; again != want {
		t.Errorf("asked again -want +got:\n%s", gocmp.Diff(want, again))
	}
}

func TestAnAnswerPausesEightTimesAtMost(t *testing.T) {
	pause := streaming(begin, text(0, "Wait. "), end("pause_turn"))
	network, asked := in(t, pause, pause, pause, pause, pause, pause, pause, pause, pause, pause)
	got, err := collect(t, network)
	if err != nil || len(*asked) != 9 || got.Finish != step.FinishLength || got.Usage.OutputTokens != 45 || summarize(got).Text != strings.Repeat("Wait. ", 9) {
		t.Errorf("asked %d times, finish %q, usage %+v, error %v", len(*asked), got.Finish, got.Usage, err)
	}
}

// Each further request is reported to the caller, with what was spent before it, and the
// caller can prevent it.
func TestAPauseIsReportedBeforeTheNextRequest(t *testing.T) {
	network, asked := in(t,
		streaming(begin, text(0, "Wait."), end("pause_turn")), streaming(begin, text(0, "Wait."), end("pause_turn")), streaming(hi),
	)
	var spent []step.Usage
	for d, err := range at(t, network).Stream(t.Context(), wiretest.Ask) {
		if err != nil {
			t.Fatal(err)
		}
		if !d.Continued {
			continue
		}
		if spent = append(spent, *d.Usage); len(*asked) != len(spent) {
			t.Errorf("told after %d requests", len(*asked))
		}
		if len(spent) == 2 {
			break
		}
	}
	want := []step.Usage{{InputTokens: 10, OutputTokens: 5}, {InputTokens: 20, OutputTokens: 10}}
	if diff := gocmp.Diff(want, spent); diff != "" || len(*asked) != 2 {
		t.Errorf("asked %d times, -want +got:\n%s", len(*asked), diff)
	}
}

func TestAPauseThatEndsBadly(t *testing.T) {
	first := streaming(begin, text(0, "Wait."), end("pause_turn"))
	cases := map[string]struct {
		second wiretest.RoundTrip
		want   func(error) bool
		usage  step.Usage
	}{
		"the provider is too busy then": {wiretest.Answering(529, "application/json", refusal("overloaded_error", "Overloaded")), model.Transient, step.Usage{InputTokens: 10, OutputTokens: 5}},
		"the rest is cut":               {streaming(begin, text(0, "Hi")), model.Transient, step.Usage{InputTokens: 20, OutputTokens: 6, ContextTokens: 11, Estimated: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, _ := in(t, first, tc.second)
			got, err := collect(t, network)
			if !tc.want(err) || got.Finish != "" || got.Usage != tc.usage {
				t.Errorf("finish %q, usage %+v, error %v", got.Finish, got.Usage, err)
			}
		})
	}
	if _, err := collect(t, streaming(begin, end("pause_turn"))); !model.Transient(err) {
		t.Errorf("a pause before a word: %v", err)
	}
}

// Some providers bind thinking to all that was said before it: where something
// of that is hidden they refuse it, and it is not sent again.
func TestThinkingThatIsRefusedIsNotSentAgain(t *testing.T) {
	bound := wiretest.Answering(400, "application/json", refusal("invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."))
	fine := streaming(hi)
	network, asked := in(t, bound, fine, fine, fine)
	m := at(t, network)
	session := func(extra ...step.Step) *model.Request {
		own := byMain([]step.Part{thought("Hm.", "sig"), textPart("Hi.")})
		own.Seq = 2
		return &model.Request{CacheKey: "run-1", Steps: append([]step.Step{wiretest.Says(step.RoleUser, "Hello?"), own, wiretest.Says(step.RoleUser, "And?")}, extra...)}
	}
	for _, req := range []*model.Request{
		session(),
		session(step.Step{Seq: 4, Role: step.RoleAssistant, Model: "main", Parts: []step.Part{thought("New.", "sig"), textPart("Ha.")}}, wiretest.Says(step.RoleUser, "So?")),
		{CacheKey: "run-2", Steps: session().Steps},
	} {
		if _, err := model.Collect(m.Stream(t.Context(), req), nil); err != nil {
			t.Fatal(err)
		}
	}
	var hasThinking []bool
	for _, body := range *asked {
		hasThinking = append(hasThinking, strings.Contains(body, `"Hm."`))
	}
	if diff := gocmp.Diff([]bool{true, false, false, true}, hasThinking); diff != "" {
		t.Errorf("sent the old thinking -want +got:\n%s", diff)
	}
	if !strings.Contains((*asked)[2], `"New."`) {
		t.Error("thinking that came after is not sent")
	}
	network, asked = in(t, bound, bound, bound)
	if _, err := model.Collect(at(t, network).Stream(t.Context(), session()), nil); len(*asked) != 2 {
		t.Errorf("asked %d times, error %v", len(*asked), err)
	}
}

func TestAKeyThatCannotBeUsed(t *testing.T) {
	_, err := collect(t, nil, wiretest.WithKey("sk-secret\x00value"))
	var unauthorized *model.UnauthorizedError
	if !errors.As(err, &unauthorized) || unauthorized.Status != 0 || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("a key that holds a control character: %v", err)
	}
	_, err = collect(t, nil, func(o *anthropic.Options) { o.Key = func() (string, error) { return "", errors.New("gone") } })
	if _, unreadable := errors.AsType[*model.NoCredentialError](err); !unreadable {
		t.Errorf("a key that is not there: %v", err)
	}
}
