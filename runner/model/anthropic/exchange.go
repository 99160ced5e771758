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
func (e *exchange) send(report func(model.Delta) bool) (wanted bool, err error) {
	return e.files.Send(e.Call, e.req, func() (bool, error) { return e.sendThinking(report) }, report)
}

// sendThinking sends the request, without thinking if that is refused.
func (e *exchange) sendThinking(report func(model.Delta) bool) (wanted bool, err error) {
	wanted, err = e.repairs.Send(e.Call, e.post, report)
	if !wanted || !isThinkingRefused(err) || e.endpoint.NoRepair || !e.refused.Add(e.req) {
		return wanted, err
	}
	repair := &model.Repair{Kind: model.RepairReasoning, Change: "thinking of earlier answers is not sent"}
	if !report(model.Delta{Repair: repair, Because: err.Error()}) {
		return false, nil
	}
	return e.repairs.Send(e.Call, e.post, report)
}

func (e *exchange) post() error {
	fields, err := e.body(e.req, e.previous)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	e.describe(fields)
	body, err := encode(fields)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.base+e.path(), bytes.NewReader(body))
	if err != nil {
		return &model.BadRequestError{Message: e.Clean(err).Error()}
	}
	req.URL.RawQuery = e.query
	req.Header.Set("Content-Type", "application/json")
	if e.dialect.invokes {
		req.Header.Set("Accept", httpapi.ContentFrames)
	} else {
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Anthropic-Version", version)
	}
	e.answer, err = e.Send(req)
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
func (e *exchange) describe(body map[string]any) {
	repairs := e.repairs.Now()
	_, limit := repairs.Apply(body, fieldMaxTokens)
	e.Sent = httpapi.NewSent(e.req, body, map[string]string{
		fieldMaxTokens: httpapi.SettingOutput, "temperature": httpapi.SettingTemperature, "top_p": httpapi.SettingTopP,
		"thinking": httpapi.SettingReasoning, "output_config": httpapi.SettingReasoning,
	})
	e.Sent.Model = e.model
	e.Sent.OutputField, e.Sent.MaxOutput = fieldMaxTokens, limit
	e.Sent.EchoesReasoning = e.dialect.echo == echoReceived
	if e.dialect.cachesPrompt && !repairs.Dropped(fieldCacheControl) {
		e.Sent.MessageFields = []string{fieldCacheControl}
	}
}
