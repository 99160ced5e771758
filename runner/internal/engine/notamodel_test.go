package engine

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A canned is a server that answers all requests alike.
type canned struct {
	contentType, body string
	asked             int
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked++
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {c.contentType}}, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)),
	}, nil
}

// What a proxy sends in place of an answer may pass: it is asked twice more. If it stays, a
// user has to correct the endpoint.
func TestAServerThatIsNoModelIsAskedThreeTimes(t *testing.T) {
	wires := map[string]func(provider.Options) (model.Model, error){"OpenAICompatible": openai.New, "AnthropicCompatible": anthropic.New}
	answers := map[string]*canned{
		"a web page":                {contentType: "text/html", body: "<!DOCTYPE html>\n<p>Log in"},
		"a web page without a type": {contentType: "", body: "<html><title>502 Bad Gateway</title></html>"},
		"broken JSON":               {contentType: "application/json", body: `{"choices":[{"message":{"content":oops}}]}`},
		"JSON of another kind":      {contentType: "application/json", body: `{"status":"ok"}`},
		"a plain text":              {contentType: "text/plain", body: "It works!"},
	}
	for wire, build := range wires {
		for name, answer := range answers {
			t.Run(wire+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &canned{contentType: answer.contentType, body: answer.body}
					m, err := build(provider.Options{Provider: wire, Name: "m", Model: "x", Endpoint: "http://model.example/v1", Transport: server})
					if err != nil {
						t.Fatal(err)
					}
					s := newTestRun(nil)
					s.Actor.Model = Model{Model: retry.New(m, retry.Options{}), Name: "m"}
					out := s.run(t)
					if out.Reason != task.ReasonMisconfigured || !strings.Contains(out.Message, "Model m: ") || !strings.Contains(out.Message, "endpoint") || server.asked != 3 {
						t.Errorf("asked %d times, ended %s: %s", server.asked, out.Reason, out.Message)
					}
				})
			})
		}
	}
}
