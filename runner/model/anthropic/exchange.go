package anthropic

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// version is the version of the API.
const version = "2023-06-01"

// An exchange is a request and its answer, and the further requests after an answer
// that pauses.
type exchange struct {
	*client
	*httpapi.Call
	req      *model.Request
	previous []json.RawMessage // the content before a pause

	answer *httpapi.Answer // nil if there is none
}

// send sends the request. If the provider refuses thinking of earlier answers, the request is sent once more without
// it, and likewise for files and for the changes of RepairLog. report is called before each further request; wanted is
// false if it returns false.
func (x *exchange) send(report func(model.Delta) bool) (wanted bool, err error) {
	return x.files.Send(x.Call, x.req, func() (bool, error) { return x.sendThinking(report) }, report)
}

// sendThinking sends the request, without thinking if that is refused.
func (x *exchange) sendThinking(report func(model.Delta) bool) (wanted bool, err error) {
	wanted, err = x.repairs.Send(x.Call, x.post, report)
	if !wanted || !isThinkingRefused(err) || x.endpoint.NoRepair || !x.refused.Add(x.req) {
		return wanted, err
	}
	repair := &model.Repair{Kind: model.RepairReasoning, Change: "thinking of earlier answers is not sent"}
	if !report(model.Delta{Repair: repair, Because: err.Error()}) {
		return false, nil
	}
	return x.repairs.Send(x.Call, x.post, report)
}

func (x *exchange) post() error {
	fields, err := x.body(x.req, x.previous)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	x.describe(fields)
	body, err := encode(fields)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req, err := http.NewRequestWithContext(x.Context(), http.MethodPost, x.base+x.path(), bytes.NewReader(body))
	if err != nil {
		return &model.BadRequestError{Message: x.Clean(err).Error()}
	}
	req.URL.RawQuery = x.query
	req.Header.Set("Content-Type", "application/json")
	if x.dialect.invokes {
		req.Header.Set("Accept", httpapi.ContentFrames)
	} else {
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Anthropic-Version", version)
	}
	x.answer, err = x.Send(req)
	return err
}

// path returns the path of requests below the base.
func (c *client) path() string {
	if c.dialect.invokes {
		return invokePath(c.model)
	}
	return "/v1/messages"
}

// describe applies the repairs to a body and keeps a description of the request.
func (x *exchange) describe(body map[string]any) {
	repairs := x.repairs.Now()
	_, limit := repairs.Apply(body, fieldMaxTokens)
	x.Sent = httpapi.NewSent(x.req, body, map[string]string{
		fieldMaxTokens: httpapi.SettingOutput, "temperature": httpapi.SettingTemperature, "top_p": httpapi.SettingTopP,
		"thinking": httpapi.SettingReasoning, "output_config": httpapi.SettingReasoning,
	})
	x.Sent.Model = x.model
	x.Sent.OutputField, x.Sent.MaxOutput = fieldMaxTokens, limit
	x.Sent.EchoesReasoning = x.dialect.echo == echoReceived
	if x.dialect.cachesPrompt && !repairs.Dropped(fieldCacheControl) {
		x.Sent.MessageFields = []string{fieldCacheControl}
	}
}
