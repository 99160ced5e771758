package openai_test

import (
	"net/http"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// noon is when the tests below happen.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func atNoon(o *openai.Options) { o.Now = func() time.Time { return noon } }

func TestRefusalsAreTyped(t *testing.T) {
	json := func(status int, body string, headers ...string) http.RoundTripper {
		return wiretest.Answering(status, "application/json", body, headers...)
	}
	cases := map[string]struct {
		network http.RoundTripper
		want    error
	}{
		"a wrong key": {
			json(401, `{"error":{"message":"Incorrect API key","type":"invalid_request_error"}}`),
			&model.UnauthorizedError{Status: 401, Message: "Incorrect API key"},
		},
		"a wrong key at Mistral": {json(401, `{"detail":"Invalid API Key"}`), &model.UnauthorizedError{Status: 401, Message: "Invalid API Key"}},
		"a wrong key at xAI": {
			json(400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: x***y."}`),
			&model.UnauthorizedError{Status: 400, Message: "Incorrect API key provided: x***y."},
		},
		"a wrong key at Gemini": {
			json(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`),
			&model.UnauthorizedError{Status: 400, Message: "API key not valid. Please pass a valid API key."},
		},
		"no right":         {json(403, `{"error":"no access"}`), &model.UnauthorizedError{Status: 403, Message: "no access"}},
		"an unknown model": {json(404, `{"error":{"message":"no such model","code":"model_not_found"}}`), &model.BadRequestError{Status: 404, Message: "no such model", Asked: "POST http://endpoint/v1/chat/completions", Refusal: model.Refusal{Cause: model.CauseModel}}},
		"a bad field":      {json(422, `{"detail":[{"loc":["body","messages"],"msg":"field required"}]}`), &model.BadRequestError{Status: 422, Message: "messages: field required"}},
		"too long, by its code": {
			json(400, `{"error":{"message":"Too much.","code":"context_length_exceeded"}}`),
			&model.ContextTooLongError{Message: "Too much."},
		},
		"too long, at llama.cpp": {
			json(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`),
			&model.ContextTooLongError{Message: "the request exceeds the available context size"},
		},
		"too long, as Azure says it": {
			json(429, `{"error":{"message":"Input exceeds the context length of the model."}}`, "Retry-After", "1", "Retry-After-Ms", "0"),
			&model.ContextTooLongError{Message: "Input exceeds the context length of the model."},
		},
		"too long, as OpenRouter passes it on": {
			json(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long: 3 > 2"}}}`),
			&model.ContextTooLongError{Message: "Provider returned error: prompt is too long: 3 > 2"},
		},
		"too long, at Perplexity": {
			json(400, `{"error":{"message":"User input tokens exceeds 127072 tokens","type":"too_many_prompt_tokens","code":400}}`),
			&model.ContextTooLongError{Message: "User input tokens exceeds 127072 tokens", Window: 127072},
		},
		"a call Groq rejected": {
			json(400, `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x>"}}`),
			&model.UnavailableError{Status: 400, Message: "Failed to call a function."},
		},
		"a prompt that Azure filtered": {
			json(400, `{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"}}}}}`),
			&model.RefusedError{Message: "The response was filtered"},
		},
		"a prompt that Azure filtered, behind a gateway": {
			json(400, `{"error":{"message":"filtered","code":"400","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`),
			&model.RefusedError{Message: "filtered"},
		},
		"no money left": {
			json(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`),
			&model.RateLimitedError{Final: true, UsedUp: true, Message: "You exceeded your current quota"},
		},
		"an account that is suspended": {
			json(429, `{"error":{"message":"Your account org-1 is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`),
			&model.RateLimitedError{Final: true, UsedUp: true, Message: "Your account org-1 is suspended, please check your plan and billing details"},
		},
		"a balance that is used up": {
			json(429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`),
			&model.RateLimitedError{Final: true, UsedUp: true, Message: "Insufficient balance or no resource package. Please recharge."},
		},
		"a limit that money would raise": {
			json(429, `{"error":{"message":"Rate limit reached. You can increase it by adding a payment method, or buy credits, in your balance","type":"requests"}}`),
			&model.RateLimitedError{Message: "Rate limit reached. You can increase it by adding a payment method, or buy credits, in your balance"},
		},
		"a quota that a provider promises to renew": {
			json(429, `{"error":{"message":"Insufficient credits","type":"exceeded_current_quota_error"}}`, "Retry-After", "7"),
			&model.RateLimitedError{RetryAfter: 7 * time.Second, Message: "Insufficient credits"},
		},
		"a deployment that Azure lacks": {
			json(404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`),
			&model.BadRequestError{Status: 404, Message: "The API deployment for this resource does not exist.", Asked: "POST http://endpoint/v1/chat/completions", Refusal: model.Refusal{Cause: model.CauseDeployment}},
		},
		"too large":                   {json(413, `{"error":{"message":"Request too large"}}`), &model.ContextTooLongError{Message: "Request too large"}},
		"a rate limit in seconds":     {json(429, `{}`, "Retry-After", "7"), &model.RateLimitedError{RetryAfter: 7 * time.Second, Message: "{}"}},
		"a rate limit in fractions":   {json(429, `{}`, "Retry-After", "0.5"), &model.RateLimitedError{RetryAfter: 500 * time.Millisecond, Message: "{}"}},
		"milliseconds before seconds": {json(429, `{}`, "Retry-After", "7", "Retry-After-Ms", "1500"), &model.RateLimitedError{RetryAfter: 1500 * time.Millisecond, Message: "{}"}},
		"a rate limit until a date":   {json(429, `{}`, "Retry-After", noon.Add(time.Minute).Format(http.TimeFormat)), &model.RateLimitedError{RetryAfter: time.Minute, Message: "{}"}},
		"a date that has passed":      {json(429, `{}`, "Retry-After", noon.Add(-time.Minute).Format(http.TimeFormat)), &model.RateLimitedError{Message: "{}"}},
		"a wait beyond all time":      {json(429, `{}`, "Retry-After", "1e300"), &model.RateLimitedError{RetryAfter: 365 * 24 * time.Hour, Message: "{}"}},
		"a wait that is no number":    {json(429, `{}`, "Retry-After", "NaN"), &model.RateLimitedError{Message: "{}"}},
		"a limit not to be retried":   {json(429, `{}`, "X-Should-Retry", "false"), &model.RateLimitedError{Final: true, Message: "{}"}},
		"a timeout":                   {json(408, ``), &model.UnavailableError{Status: 408, Message: "Request Timeout"}},
		"a conflict":                  {json(409, ``), &model.UnavailableError{Status: 409, Message: "Conflict"}},
		"a failure":                   {wiretest.Answering(502, "text/html", "<html>Bad gateway</html>"), &model.UnavailableError{Status: 502, Message: `a web page that says "Bad gateway"`}},
		"too busy":                    {json(529, `{"error":{"message":"Overloaded"}}`, "Retry-After", "3"), &model.UnavailableError{Status: 529, RetryAfter: 3 * time.Second, Message: "Overloaded"}},
		"a limit with a time":         {json(429, `{}`, "X-Should-Retry", "false", "Retry-After", "7200"), &model.RateLimitedError{RetryAfter: 2 * time.Hour, Message: "{}"}},
		"a failure not to be retried": {json(500, `{"message":"no"}`, "X-Should-Retry", "false"), &model.UnavailableError{Status: 500, Final: true, Message: "no"}},
		"a refusal to be retried":     {json(400, `{"message":"again"}`, "X-Should-Retry", "true"), &model.UnavailableError{Status: 400, Message: "again"}},
		"200 with an error": {
			json(200, `{"error":{"code":"content_filter","message":"filtered","status":400}}`),
			&model.RefusedError{Message: "filtered"},
		},
		"200 with something else": {json(200, `{"models":[]}`), &model.NotAModelError{Asked: "POST http://endpoint/v1/chat/completions", ContentType: "application/json", Message: `{"models":[]}`}},
		"a web page":              {wiretest.Answering(200, "text/html", "<!DOCTYPE html>\n<p>Log in"), &model.NotAModelError{Asked: "POST http://endpoint/v1/chat/completions", ContentType: "text/html", Message: `a web page that says "Log in"`}},
		"a plain text":            {wiretest.Answering(200, "text/plain", "It works!\x1b[31m"), &model.NotAModelError{Asked: "POST http://endpoint/v1/chat/completions", ContentType: "text/plain", Message: "It works! [31m"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := collect(t, tc.network, atNoon)
			if diff := gocmp.Diff(tc.want, err); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestErrorsInTheStream(t *testing.T) {
	cases := map[string]struct {
		line string
		want error
	}{
		"a bare error":         {`data: {"error":{"message":"no","code":429}}`, &model.RateLimitedError{Message: "no"}},
		"an error in a chunk":  {`data: {"id":"x","error":{"code":502,"message":"no"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`, &model.UnavailableError{Status: 502, Message: "no"}},
		"an event named error": {"event: error\n" + `data: {"error":{"message":"no","type":"invalid_request_error"}}`, &model.BadRequestError{Status: 400, Message: "no"}},
		"one without the word": {"event: error\n" + `data: {"message":"no","type":"overloaded_error"}`, &model.UnavailableError{Status: 529, Message: "no"}},
		"one in plain text":    {"event: error\ndata: upstream is gone", &model.UnavailableError{Status: 500, Message: "upstream is gone"}},
		"a field named error":  {`error: {"code":500,"message":"no","type":"server_error"}`, &model.UnavailableError{Status: 500, Message: "no"}},
		"an object by itself":  {`{"error":{"message":"no","code":"503"}}`, &model.UnavailableError{Status: 503, Message: "no"}},
		"an error in words":    {`data: {"error":"no"}`, &model.UnavailableError{Status: 500, Message: "no"}},
		"a finish of error":    {`data: {"choices":[{"delta":{},"finish_reason":"error"}]}`, &model.BrokenOffError{Reason: "error"}},
		"a call Groq rejected": {`data: {"error":{"message":"no","type":"invalid_request_error","code":"tool_use_failed"}}`, &model.UnavailableError{Status: 400, Message: "no"}},
		"an error of a choice": {`data: {"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"no"}}]}`, &model.UnavailableError{Status: 502, Message: "no"}},
		"the window is full":   {`data: {"error":{"message":"maximum context length is 5","code":400}}`, &model.ContextTooLongError{Message: "maximum context length is 5"}},
	}
	positions := map[string]func(line string) []string{
		"first": func(line string) []string { return []string{line, "", done} },
		"in the middle": func(line string) []string {
			return []string{delta(`{"content":"Hi"}`), "", line, "", delta(`{"content":"Ho"}`), stop, done}
		},
		"last":             func(line string) []string { return []string{delta(`{"content":"Hi"}`), "", line} },
		"after the finish": func(line string) []string { return []string{delta(`{"content":"Hi"}`), stop, "", line, ""} },
	}
	for name, tc := range cases {
		for where, lines := range positions {
			t.Run(name+" "+where, func(t *testing.T) {
				r, err := collect(t, streaming(lines(tc.line)...))
				if diff := gocmp.Diff(tc.want, err); diff != "" || r.Finish != "" {
					t.Errorf("finish %q, error -want +got:\n%s", r.Finish, diff)
				}
			})
		}
	}
}

// An answer that the output limit ended is kept, whatever fails behind it: the
// next would end there too.
func TestAnErrorBehindTheOutputLimitIsIgnored(t *testing.T) {
	length := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`
	for name, line := range map[string]string{
		"a bare error":      `data: {"error":{"message":"no","code":502}}`,
		"an event":          "event: error\n" + `data: {"message":"no","type":"server_error"}`,
		"a finish of error": `data: {"choices":[{"delta":{},"finish_reason":"error"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(delta(`{"content":"And then"}`), length, "", line, ""))
			if err != nil || r.Finish != step.FinishLength || text(r, step.PartText) != "And then" {
				t.Errorf("finish %q, parts %+v, error %v", r.Finish, r.Parts, err)
			}
		})
	}
}

func TestAnAnswerThatIsNotWholeIsIncomplete(t *testing.T) {
	cases := map[string]http.RoundTripper{
		"nothing at all":             streaming(""),
		"no finish":                  streaming(delta(`{"content":"Hi"}`), ""),
		"a chunk cut in the middle":  streaming(delta(`{"content":"Hi"}`), delta(`{"content":"Hi"}`)[:30]),
		"an end but not a word":      streaming(done),
		"a document cut":             wiretest.Answering(200, "application/json", `{"choices":[{"message":{"content":"Hi`),
		"a document of nothing":      wiretest.Answering(200, "application/json", `{"choices":[]}`),
		"a chunk that is no JSON":    streaming("data: pardon?", stop, done),
		"only keep-alives, then EOF": streaming(": a", ": b", ""),
	}
	for name, network := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, network)
			wiretest.CheckIncomplete(t, r, err)
		})
	}
}
