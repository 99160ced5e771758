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

// An outcome classifies an answer of the API server.
type outcome int

const (
	accepted     outcome = iota
	retry                // send again later
	unauthorized         // 401: the token is not good, or not good yet
	fenced               // this pod is not the current attempt, or not yet
	invalid              // the schema refuses the report: a bug of the runner
)

// fence is in the message with which the admission policy refuses a runner that does not belong to the current attempt
// of the Run.
const fence = "fenced:"

// isAlreadyCommitted reports whether a write was refused because the result is
// already committed. If the runner committed and lost the answer, this is success.
func isAlreadyCommitted(body string) bool {
	return strings.Contains(body, "fenced: the result of this attempt is committed")
}

// attemptPath is the path of the test in each patch, once the attempt is recorded.
const attemptPath = "/status/attempt/podUID"

// classify returns the outcome for a status code and body.
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
		return retry // the permission may not have been granted yet
	case status == http.StatusUnprocessableEntity && failedTest(body):
		return fenced
	case status == http.StatusUnprocessableEntity,
		status == http.StatusBadRequest,
		status == http.StatusRequestEntityTooLarge:
		return invalid
	}
	return retry
}

// failedTest reports whether the test of a patch failed. Both this and a refusal by
// the schema are 422, but only the schema has causes.
func failedTest(body string) bool {
	var status struct {
		Details struct {
			Causes []json.RawMessage `json:"causes"`
		} `json:"details"`
	}
	return json.Unmarshal([]byte(body), &status) == nil && len(status.Details.Causes) == 0
}

// fencedReason returns a message with the reason why this is not the current attempt.
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

// message returns the message of the answer if it is a Status of Kubernetes, otherwise its body.
func (a answer) message() string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(a.body), &status) != nil || status.Message == "" {
		return a.body
	}
	return status.Message
}

// maxRetryAfter bounds the Retry-After of the API server.
const maxRetryAfter = 30 * time.Second

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
