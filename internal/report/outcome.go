package report

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A verdict is what an answer of the API server means for us.
type outcome int

const (
	accepted     outcome = iota
	retry                // the same again, a little later
	unauthorized         // 401: the token is not good, or not good yet
	fenced               // this attempt does not count, or does not count yet
	invalid              // the schema refuses what we wrote: a bug of ours
)

// fence is the word with which the admission policy refuses a runner that is
// not the Run's current attempt.
const fence = "fenced:"

// isAlreadyCommitted says that a refusal is only about a result being committed already. To
// whoever sent one and heard nothing, that is the answer which was lost.
func isAlreadyCommitted(body string) bool {
	return strings.Contains(body, "fenced: the result of this attempt is committed")
}

// attemptPath is the path of the test in each patch.
const attemptPath = "/status/attempt/podUID"

// classify reads an answer.
func classify(status int, body string) outcome {
	switch {
	case status >= 200 && status < 300:
		return accepted
	case status == http.StatusUnauthorized:
		return unauthorized
	case status == http.StatusNotFound:
		return fenced // the Run is gone
	case status == http.StatusForbidden && strings.Contains(body, fence):
		return fenced
	case status == http.StatusForbidden:
		return retry // the right to write is on its way
	case status == http.StatusUnprocessableEntity && failedTest(body):
		return fenced
	case status == http.StatusUnprocessableEntity,
		status == http.StatusBadRequest,
		status == http.StatusRequestEntityTooLarge:
		return invalid
	}
	return retry
}

// failedTest tells a patch whose test failed from one that the schema refuses;
// both are 422, but only a schema names causes.
func failedTest(body string) bool {
	var status struct {
		Details struct {
			Causes []json.RawMessage `json:"causes"`
		} `json:"details"`
	}
	return json.Unmarshal([]byte(body), &status) == nil && len(status.Details.Causes) == 0
}

// fencedReason returns, for people, why an attempt does not count any more.
func fencedReason(ans answer) string {
	switch ans.status {
	case http.StatusUnauthorized:
		return fmt.Sprintf("The API server has not accepted the token of this pod for %s (HTTP 401): the pod or its ServiceAccount was deleted, or the token is not renewed", maxUnauthorized)
	case http.StatusNotFound:
		return "The Run was deleted (HTTP 404)"
	case http.StatusForbidden:
		_, why, _ := strings.Cut(ans.message(), fence)
		return "The API server takes no more reports of this pod: " + task.Cut(strings.TrimSpace(why), task.MaxMessage/2)
	}
	return "Another attempt has taken over"
}

// message returns what the API server says in words: the message of a Status or, where
// the answer is none, all of it.
func (a answer) message() string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(a.body), &status) != nil || status.Message == "" {
		return a.body
	}
	return status.Message
}

// maxRetryAfter bounds how long the API server may make us wait.
const maxRetryAfter = 30 * time.Second

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
