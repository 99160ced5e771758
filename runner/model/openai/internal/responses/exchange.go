package responses

import (
	"bytes"
	"errors"
	"net/http"
	"regexp"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// An exchange is one request and its answer.
type exchange struct {
	*client
	*httpapi.Call
	req *model.Request

	answer *httpapi.Answer // nil if there is none
}

// repeat receives an answer. If the provider refuses the reasoning of earlier answers, the request is sent once more
// without it, and likewise for files and for the changes of RepairLog. report is called before each further request;
// wanted is false if it returns false.
func (e *exchange) repeat(receive func() error, report func(model.Delta) bool) (wanted bool) {
	wanted, _ = e.files.Send(e.Call, e.req, func() (bool, error) { // the answer has the error
		wanted, err := e.repairs.Send(e.Call, receive, report)
		if !wanted || !isReasoningRefused(err) || e.NoRepair || !e.refused.Add(e.req) {
			return wanted, err
		}
		repair := &model.Repair{Kind: model.RepairReasoning, Change: "reasoning of earlier answers is not sent"}
		if !report(model.Delta{Repair: repair, Because: err.Error()}) {
			return false, nil
		}
		return e.repairs.Send(e.Call, receive, report)
	}, report)
	return wanted
}

// aboutReasoningItem matches messages about a reasoning item of the input that cannot be decrypted, because the key or
// the Model behind it changed, or that is at a wrong position.
var aboutReasoningItem = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)encrypted[ _]content|of type ['"\x60]?reasoning|reasoning['"\x60]? item|item.* not persisted`)
})

// isReasoningRefused reports whether an error means that the provider refused reasoning of an
// earlier answer.
func isReasoningRefused(err error) bool {
	bad, ok := errors.AsType[*model.BadRequestError](err)
	refused := ok && (bad.Status == http.StatusBadRequest || bad.Status == http.StatusNotFound)
	return refused && aboutReasoningItem().MatchString(bad.Message)
}

// send sends the request.
func (e *exchange) send() error {
	body, err := e.body()
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.Base+"/responses", bytes.NewReader(body))
	if err != nil {
		return &model.BadRequestError{Message: e.Clean(err).Error()}
	}
	req.URL.RawQuery = e.Query
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	e.answer, err = e.Send(req)
	return err
}
