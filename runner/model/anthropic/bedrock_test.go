package anthropic_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/frametest"
	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// haiku is the name of an inference profile.
const haiku = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"

// bedrock makes a Model one of Bedrock.
func bedrock(o *anthropic.Options) {
	o.Provider, o.Model, o.Endpoint = anthropic.ProviderBedrock, haiku, "https://bedrock-runtime.eu-central-1.amazonaws.com"
}

// framed is a stream of lines in frames, as Bedrock writes it: it pads each frame, and sends no pings.
func framed(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && !strings.Contains(data, "ping") {
			payload, _ := json.Marshal(map[string]any{"bytes": []byte(strings.TrimSpace(data)), "p": strings.Repeat("abcdefgh", 3)})
			out.Write(frametest.Event("chunk", payload))
		}
	}
	return out.String()
}

// exception is a frame of an error.
func exception(kind, message string) string {
	payload, _ := json.Marshal(map[string]string{"message": message})
	return string(frametest.Exception(kind, payload))
}

// framing is an endpoint that answers frames.
func framing(parts ...string) wiretest.RoundTrip {
	return wiretest.Answering(http.StatusOK, frametest.ContentType, strings.Join(parts, ""))
}

func TestRequestsToBedrock(t *testing.T) {
	cases := map[string]struct{ model, endpoint, want string }{
		"an inference profile": {haiku, "", "https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream"},
		"an ARN": {
			"arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2", "",
			"https://bedrock-runtime.eu-central-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2/invoke-with-response-stream",
		},
		"a gateway with a path":  {"m", "http://gateway/bedrock/", "http://gateway/bedrock/model/m/invoke-with-response-stream"},
		"a gateway with a query": {"m", "http://gateway?tenant=2", "http://gateway/model/m/invoke-with-response-stream?tenant=2"},
		"any name":               {"a b/../c?d#é", "http://gateway", "http://gateway/model/a%20b%2F..%2Fc%3Fd%23%C3%A9/invoke-with-response-stream"},
	}
	headers := http.Header{
		"Accept": {frametest.ContentType}, "Content-Type": {"application/json"}, "User-Agent": {"deckhand"}, "Authorization": {"Bearer k"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := sent(t, bedrock, wiretest.WithKey("k"), func(o *anthropic.Options) {
				o.Model = tc.model
				if tc.endpoint != "" {
					o.Endpoint = tc.endpoint
				}
			})
			if got.URL.String() != tc.want {
				t.Errorf("asked %s\nwant  %s", got.URL, tc.want)
			}
			if diff := gocmp.Diff(headers, got.Header); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheBodyOfARequestToBedrock(t *testing.T) {
	const want = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":32000,"messages":[{"role":"user","content":[{"type":"text","text":"Hello?","cache_control":{"type":"ephemeral"}}]}]}`
	var got bytes.Buffer
	if _, err := got.ReadFrom(sent(t, bedrock).Body); err != nil || got.String() != want {
		t.Errorf("error %v, sent\n%s, want\n%s", err, &got, want)
	}
}

// A frame has the same answer as a line, with what Bedrock adds to the last event.
func TestFramesAreReadAsLinesAre(t *testing.T) {
	metrics := strings.Replace(end("tool_use"), `{"type":"message_stop"}`, `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":10}}`, 1)
	for name, stream := range map[string]string{
		"a text":      hi,
		"all at once": begin + thinking(0, "Hm.", "sig") + text(1, "I look: ä ✓") + tool(2, "now", `{"a"`, `:1}`) + metrics,
		"a refusal":   begin + text(0, "No.") + end("refusal"),
		"cut short":   begin + text(0, "And then") + end("max_tokens"),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := collect(t, streaming(stream))
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 7, 4096} {
				r := wiretest.Recording{Status: http.StatusOK, Headers: map[string][]string{"Content-Type": {frametest.ContentType}}}
				got, err := collect(t, r.Served(&wiretest.Chopped{Data: []byte(framed(stream)), Size: size}), bedrock)
				if diff := gocmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("in pieces of %d: %v, -want +got:\n%s", size, err, diff)
				}
			}
		})
	}
}

// A gateway may answer with lines, and an event that is not known is nothing.
func TestOtherAnswersOfBedrock(t *testing.T) {
	want, _ := collect(t, streaming(hi))
	metadata := string(frametest.Event("metadata", []byte(`{"type":"message_stop"}`)))
	unknown := string(frametest.Event("initial-response", []byte(`{}`)))
	empty := string(frametest.Event("chunk", []byte(`{"p":"abc"}`)))
	for name, network := range map[string]http.RoundTripper{
		"lines":             streaming(hi),
		"unknown events":    framing(unknown, empty, framed(hi), metadata),
		"an answer at once": wiretest.Answering(http.StatusOK, "application/json", `{"id":"msg_1","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}`),
	} {
		if got, err := collect(t, network, bedrock); err != nil || got.Finish != want.Finish || summarize(got).Text != "Hi" {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}

func TestAFrameWithoutAnEventIsABrokenStream(t *testing.T) {
	for _, payload := range []string{`{"bytes":"!"}`, `{"bytes":1}`, `no`, `{"bytes":"bm8="}`} {
		r, err := collect(t, framing(framed(begin), string(frametest.Event("chunk", []byte(payload))), framed(text(0, "Hi")+end("end_turn"))), bedrock)
		wiretest.CheckIncomplete(t, r, err)
	}
}

// Each frame has a checksum, so that no damage makes another answer.
func TestADamagedFrameIsNeverAnotherAnswer(t *testing.T) {
	whole := []byte(framed(begin + text(0, "Hi") + tool(1, "delete", `{"all":false}`) + end("tool_use")))
	want, err := collect(t, framing(string(whole)), bedrock)
	if err != nil {
		t.Fatal(err)
	}
	want.Usage = step.Usage{}
	damage := map[string]func(at int) []byte{
		"another bit":   func(at int) []byte { b := bytes.Clone(whole); b[at] ^= 1 << (at % 8); return b },
		"a byte less":   func(at int) []byte { return append(bytes.Clone(whole[:at]), whole[at+1:]...) },
		"a byte more":   func(at int) []byte { return append(append(bytes.Clone(whole[:at]), 'x'), whole[at:]...) },
		"a cut":         func(at int) []byte { return whole[:at] },
		"another frame": func(at int) []byte { return append(bytes.Clone(whole[:at]), exception("x", "no")...) },
	}
	for name, broken := range damage {
		for at := range whole {
			got, err := collect(t, framing(string(broken(at))), bedrock)
			got.Usage = step.Usage{}
			_, notAModel := err.(*model.NotAModelError) //nolint:errorlint // that of the adapter
			switch {
			case err == nil && gocmp.Diff(want, got) == "":
			case err == nil || got.Finish != "" || !model.Transient(err) && !notAModel:
				t.Errorf("%s at %d: finish %q, %v", name, at, got.Finish, err)
			}
		}
	}
}

func TestErrorsOfBedrock(t *testing.T) {
	refused := func(status int, kind, body string) http.RoundTripper {
		return wiretest.Answering(status, "application/json", body, "X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	const profile = "Invocation of model ID anthropic.claude-haiku-4-5-20251001-v1:0 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."
	cases := map[string]struct {
		network http.RoundTripper
		want    error
	}{
		"throttling":           {refused(429, "ThrottlingException", `{"message":"Too many requests, please wait before trying again."}`), &model.RateLimitedError{Message: "Too many requests, please wait before trying again."}},
		"throttling of tokens": {refused(429, "ThrottlingException", `{"message":"Too many tokens, please wait before trying again."}`), &model.RateLimitedError{Message: "Too many tokens, please wait before trying again."}},
		"a model that loads":   {refused(429, "ModelNotReadyException", `{"message":"not ready"}`), &model.RateLimitedError{Message: "not ready"}},
		"a model that failed":  {refused(424, "ModelErrorException", `{"message":"failed"}`), &model.UnavailableError{Status: 424, Message: "failed"}},
		"a model that is late": {refused(408, "ModelTimeoutException", `{"message":"late"}`), &model.UnavailableError{Status: 408, Message: "late"}},
		"an outage":            {refused(503, "ServiceUnavailableException", `{"message":"no"}`), &model.UnavailableError{Status: 503, Message: "no"}},
		"a key that expired":   {refused(403, "ExpiredTokenException", `{"Message":"Bearer Token has expired"}`), &model.UnauthorizedError{Status: 403, Message: "Bearer Token has expired"}},
		"a key that is wrong":  {refused(403, "AccessDeniedException", `{"Message":"Authentication failed: Please make sure your API Key is valid."}`), &model.UnauthorizedError{Status: 403, Message: "Authentication failed: Please make sure your API Key is valid."}},
		"a model ID":           {refused(400, "ValidationException", `{"message":"`+profile+`"}`), &model.BadRequestError{Status: 400, Message: profile, Refusal: model.Refusal{Cause: model.CauseInferenceProfile}}},
		"a wrong model ID":     {refused(400, "ValidationException", `{"message":"The provided model identifier is invalid."}`), &model.BadRequestError{Status: 400, Message: "The provided model identifier is invalid.", Refusal: model.Refusal{Cause: model.CauseModel}}},
		"a model for others": {
			refused(403, "AccessDeniedException", `{"message":"`+haiku+` is not available for this account."}`),
			&model.BadRequestError{Status: 403, Message: haiku + " is not available for this account.", Refusal: model.Refusal{Cause: model.CauseModel}},
		},
		"no form":                  {refused(404, "ResourceNotFoundException", `{"message":"Model use case details have not been submitted for this account."}`), &model.BadRequestError{Status: 404, Message: "Model use case details have not been submitted for this account.", Asked: "POST https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream", Refusal: model.Refusal{Cause: model.CauseModel}}},
		"an input too long":        {refused(400, "ValidationException", `{"message":"Input is too long for requested model."}`), &model.ContextTooLongError{Message: "Input is too long for requested model."}},
		"a web page":               {wiretest.Answering(200, "text/html", "<!DOCTYPE html>\n<p>Log in"), &model.NotAModelError{Asked: "POST https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream", ContentType: "text/html", Message: `a web page that says "Log in"`}},
		"words in place of frames": {wiretest.Answering(200, frametest.ContentType, "upstream is gone"), &model.NotAModelError{Asked: "POST https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream", ContentType: frametest.ContentType, Message: "upstream is gone"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, tc.network, bedrock)
			if diff := gocmp.Diff(tc.want, err); diff != "" || r.Finish != "" || r.Usage != (step.Usage{}) {
				t.Errorf("finish %q, usage %+v, error -want +got:\n%s", r.Finish, r.Usage, diff)
			}
		})
	}
}

func TestExceptionsInAStreamOfBedrock(t *testing.T) {
	cases := map[string]error{
		"throttlingException":         &model.RateLimitedError{Message: "no"},
		"modelStreamErrorException":   &model.UnavailableError{Status: 424, Message: "no"},
		"modelTimeoutException":       &model.UnavailableError{Status: 408, Message: "no"},
		"internalServerException":     &model.UnavailableError{Status: 500, Message: "no"},
		"serviceUnavailableException": &model.UnavailableError{Status: 503, Message: "no"},
		"aNewException":               &model.UnavailableError{Status: 500, Message: "no"},
		"validationException":         &model.BadRequestError{Status: 400, Message: "no"},
	}
	for kind, want := range cases {
		for where, parts := range map[string][]string{
			"first":            {exception(kind, "no")},
			"in the middle":    {framed(begin + text(0, "Hi")), exception(kind, "no"), framed(text(1, "Ho") + end("end_turn"))},
			"last":             {framed(begin + text(0, "Hi")), exception(kind, "no")},
			"after the finish": {framed(begin + text(0, "Hi") + finish("end_turn")), exception(kind, "no")},
		} {
			t.Run(kind+" "+where, func(t *testing.T) {
				r, err := collect(t, framing(parts...), bedrock)
				if diff := gocmp.Diff(want, err); diff != "" || r.Finish != "" {
					t.Errorf("finish %q, error -want +got:\n%s", r.Finish, diff)
				}
				if spent := r.Usage.InputTokens > 0 && r.Usage.Estimated; spent != (where != "first") {
					t.Errorf("charged is %+v", r.Usage)
				}
			})
		}
	}
}

// FuzzFramedStream holds the reader of frames to what FuzzStream holds that of lines to, for any
// bytes in frames that are whole, between the start and the end of an answer.
func FuzzFramedStream(f *testing.F) {
	for _, data := range []string{"", blockDelta(0, `{"type":"text_delta","text":"\u00e4"}`), tool(1, "now", `{"a":1}`), end("tool_use"), begin} {
		f.Add("chunk", []byte(strings.TrimSpace(data)), true)
	}
	f.Add("throttlingException", []byte(`{"message":"no"}`), false)
	f.Fuzz(func(t *testing.T, kind string, data []byte, isEvent bool) {
		payload, _ := json.Marshal(map[string]any{"bytes": data})
		odd := frametest.Event("chunk", payload)
		if !isEvent && len(kind) < 1<<16 {
			odd = frametest.Exception(kind, data)
		}
		stream := framed(begin+text(0, "Hi")) + string(odd) + framed(end("end_turn"))
		got, err := collect(t, framing(stream), bedrock)
		r := wiretest.Recording{Status: http.StatusOK, Headers: map[string][]string{"Content-Type": {frametest.ContentType}}}
		again, errAgain := collect(t, r.Served(&wiretest.Chopped{Data: []byte(stream), Size: 3}), bedrock)
		if diff := gocmp.Diff(got, again); diff != "" || (err == nil) != (errAgain == nil) {
			t.Fatalf("in pieces: %v and %v, -whole +pieces:\n%s", err, errAgain, diff)
		}
		if !isEvent && err == nil || err != nil && got.Finish != "" || err == nil && got.Finish == "" {
			t.Fatalf("finish %q beside %v", got.Finish, err)
		}
	})
}

// BenchmarkFrames reads an answer from the bytes of the network to the last delta.
func BenchmarkFrames(b *testing.B) {
	body := framed(stream(2000))
	wiretest.BenchmarkStream(b, at(b, framing(body), bedrock), len(body))
}
