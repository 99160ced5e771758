package report

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A sender sends reports and keeps state between attempts to send.
type sender struct {
	opts              Options
	sequence          int64
	began             time.Time
	since             time.Time // when the first check or report was accepted
	next              time.Time // reports without a waiter are not sent before
	unauthorizedSince time.Time // since when all answers are 401; zero if not
	committing        bool      // a committed result was sent without an answer
	recorded          bool      // the status has an attempt, as far as is known
	reduction         int       // level of shrink, raised when the schema refuses a report
	logged            int       // the status of the last refusal in the log; 0: none since a success
}

// try sends p once. The pause is 0 if it was accepted, otherwise the minimum time before the next try. An error is
// final.
func (s *sender) try(ctx context.Context, p task.Progress) (time.Duration, error) {
	s.sequence = max(s.sequence+1, s.opts.Now().UnixMilli())
	p.Sequence, p.PodUID = s.sequence, s.opts.Target.PodUID
	ans, err := s.send(ctx, shrink(p, s.reduction))
	pause, end := s.handle(ans, err)
	s.committing = end == nil && pause > 0 && p.Result != nil && p.Result.Committed
	return pause, end
}

// send sends p once. The operator may record the first attempt at any time: if the status has an attempt, it must be
// this pod's.
func (s *sender) send(ctx context.Context, p task.Progress) (answer, error) {
	if !s.recorded {
		ans, err := s.opts.Target.patchFirst(ctx, p)
		if err != nil || ans.status != http.StatusUnprocessableEntity || !failedTest(ans.body) {
			return ans, err
		}
		s.recorded = true
	}
	return s.opts.Target.patch(ctx, p)
}

// check asks once whether this pod is the given attempt. It returns the results of try.
func (s *sender) check(ctx context.Context, attempt int) (time.Duration, error) {
	return s.handle(s.opts.Target.check(ctx, attempt))
}

// handle returns the pause before the next request; 0 if this one was accepted. An error is
// final.
func (s *sender) handle(ans answer, err error) (time.Duration, error) {
	pause, end := firstPause, error(nil)
	if err == nil {
		pause, end = s.handleAnswer(ans)
	} else {
		s.opts.Log.Warn("Reporting progress failed; trying again", "error", err)
		s.unauthorizedSince = time.Time{}
	}
	if pause > 0 && s.since.IsZero() && s.opts.Now().Sub(s.began) >= maxFirst {
		return 0, neverAccepted(ans, err)
	}
	return pause, end
}

// handleAnswer returns the pause before the next attempt; 0 if the report was
// accepted. An error is final.
func (s *sender) handleAnswer(ans answer) (time.Duration, error) {
	outcome := classify(ans.status, ans.body)
	if outcome != unauthorized {
		s.unauthorizedSince = time.Time{}
	}
	switch {
	case outcome == accepted, s.committing && isAlreadyCommitted(ans.body):
		s.accepted()
		return 0, nil
	case outcome == fenced, outcome == unauthorized && s.unauthorizedTooLong():
		return s.handleFenced(ans)
	case outcome == invalid:
		return s.sendLess(ans)
	}
	s.logRefusal(ans)
	return max(ans.retryAfter, firstPause), nil
}

// logRefusal logs the first of several refusals with the same status.
func (s *sender) logRefusal(ans answer) {
	if ans.status != s.logged {
		s.opts.Log.Warn("The API server refuses to write the status of the Run; trying again", "status", ans.status, "answer", task.Cut(ans.message(), task.MaxMessage/2))
	}
	s.logged = ans.status
}

// unauthorizedTooLong reports whether all answers were 401 for maxUnauthorized.
func (s *sender) unauthorizedTooLong() bool {
	now := s.opts.Now()
	if s.unauthorizedSince.IsZero() {
		s.unauthorizedSince = now
	}
	return now.Sub(s.unauthorizedSince) >= maxUnauthorized
}

// neverAccepted returns the error if neither a check nor a report was accepted within maxFirst.
func neverAccepted(ans answer, err error) error {
	last := fmt.Sprintf("HTTP %d: %s", ans.status, ans.message())
	if err != nil {
		last = err.Error()
	}
	return task.End(task.ReasonRunnerFailed, "The API server took no report of this runner for %s; its last answer: %s",
		maxFirst, task.Cut(last, task.MaxMessage/2))
}

// accepted schedules the next report that has no waiter.
func (s *sender) accepted() {
	now := s.opts.Now()
	s.reduction, s.logged = 0, 0 // the next report may fit
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < youngFor {
		s.next = now.Add(youngInterval)
		return
	}
	s.next = now.Add(s.opts.Jitter(normalInterval))
}

// handleFenced ends the attempt. Before the first accepted request it retries, because the operator may not have
// recorded the pod yet.
func (s *sender) handleFenced(ans answer) (time.Duration, error) {
	if s.since.IsZero() {
		return firstPause, nil
	}
	return 0, task.End(task.ReasonFenced, "%s", fencedReason(ans))
}

// sendLess raises the reduction for the next attempt, up to maxReduction.
func (s *sender) sendLess(ans answer) (time.Duration, error) {
	s.opts.Log.Error("The API server refuses our report; leaving more out", "status", ans.status, "answer", task.Cut(ans.body, task.MaxMessage))
	if s.reduction == maxReduction {
		return 0, task.End(task.ReasonRunnerFailed, "The API server refuses what the runner reports: %s", task.Cut(ans.message(), task.MaxMessage/2))
	}
	s.reduction++
	return firstPause, nil
}

// maxReduction is the highest level of shrink.
const maxReduction = 3

// shrink removes optional fields of p, more with each level. A schema that is older than the runner, as after a
// rollback, has an older name for a wait for a model.
func shrink(p task.Progress, level int) task.Progress {
	if level >= 1 {
		p.Recent, p.Step = nil, nil
		if p.State == "WaitingForModel" {
			p.State = "RateLimited"
		}
	}
	if level >= 2 && p.Result != nil {
		result := *p.Result
		result.Files = nil
		if level >= maxReduction {
			result.Text, result.Message = "", task.Cut(result.Message, task.MaxSummary)
		}
		p.Result = &result
	}
	if level >= maxReduction {
		p.Model = ""
	}
	return p
}

func asEnd(err error) (*task.EndError, bool) {
	return errors.AsType[*task.EndError](err)
}

// A Target is a Run at an API server, and the pod that writes its status.
type Target struct {
	URL    string // of the API server
	Run    task.Run
	PodUID string
	// Token is called before each request, because tokens rotate.
	Token  func() (string, error)
	Client *http.Client
}

// requestTimeout bounds one request; the timeout of the API server is a minute.
const requestTimeout = 10 * time.Second

// maxAnswer bounds how much of a response is read, in bytes.
const maxAnswer = 64 << 10

// InCluster returns the Target of a runner in its pod. The directory, task.TokenDir,
// holds the token and the certificate of the API server.
func InCluster(run task.Run, dir string) (Target, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	uid := os.Getenv(task.EnvPodUID)
	if host == "" || port == "" || uid == "" {
		return Target{}, fmt.Errorf("finding the API server: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and %s must be set", task.EnvPodUID)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return Target{}, fmt.Errorf("reading the certificate of the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return Target{}, fmt.Errorf("reading the certificate of the API server: no certificate in %s/ca.crt", dir)
	}
	return Target{
		URL: "https://" + net.JoinHostPort(host, port), Run: run, PodUID: uid,
		Token: tokenFile(filepath.Join(dir, "token")),
		// No proxy: the API server is in the cluster.
		Client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			IdleConnTimeout: 90 * time.Second,
		}},
	}, nil
}

func tokenFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path)
		return strings.TrimSpace(string(data)), err
	}
}

// An answer is a response of the API server.
type answer struct {
	status     int
	body       string
	retryAfter time.Duration
}

// An operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch sends p once, if the status has the attempt of this pod.
func (t Target) patch(ctx context.Context, p task.Progress) (answer, error) {
	return t.send(ctx,
		operation{Op: "test", Path: attemptPath, Value: t.PodUID},
		operation{Op: "add", Path: "/status/progress", Value: p},
	)
}

// patchFirst sends p once, if the status has no attempt yet.
func (t Target) patchFirst(ctx context.Context, p task.Progress) (answer, error) {
	return t.send(ctx,
		operation{Op: "test", Path: "/metadata/uid", Value: t.Run.UID},
		operation{Op: "test", Path: "/status/attempt", Value: nil},
		operation{Op: "add", Path: "/status/progress", Value: p},
	)
}

// otherVersion is a resource version that no Run has.
const otherVersion = "1"

// check asks once whether this pod is the given attempt of a Run that has not ended. It writes nothing: if only the
// resource version of its patch is wrong, the answer is yes. A runner may not read Runs, because it could then read all
// of them.
func (t Target) check(ctx context.Context, attempt int) (answer, error) {
	ans, err := t.send(ctx,
		operation{Op: "test", Path: attemptPath, Value: t.PodUID},
		operation{Op: "test", Path: "/status/attempt/number", Value: attempt},
		operation{Op: "test", Path: "/status/completionTime", Value: nil},
		operation{Op: "replace", Path: "/metadata/resourceVersion", Value: otherVersion},
	)
	if ans.status == http.StatusConflict { // which is checked after the tests of the patch
		ans.status = http.StatusOK
	}
	return ans, err
}

// send sends a patch of the Run's status once.
func (t Target) send(ctx context.Context, patch ...operation) (answer, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return answer{}, fmt.Errorf("encoding progress: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := t.request(ctx, body)
	if err != nil {
		return answer{}, err
	}
	resp, err := t.Client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("patching the Run's status: %w", err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && classify(resp.StatusCode, "") != accepted {
		return answer{}, fmt.Errorf("reading the answer of the API server: %w", err)
	}
	return answer{status: resp.StatusCode, body: string(said), retryAfter: retryAfter(resp.Header)}, nil
}

func (t Target) request(ctx context.Context, body []byte) (*http.Request, error) {
	path := fmt.Sprintf("%s/apis/deckhand.dev/v1alpha1/namespaces/%s/runs/%s/status",
		t.URL, url.PathEscape(t.Run.Namespace), url.PathEscape(t.Run.Name))
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request of the API server: %w", err)
	}
	token, err := t.Token()
	if err != nil {
		return nil, fmt.Errorf("reading the runner's token: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json-patch+json")
	// The Run itself is not needed: its metadata is the smallest answer.
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
	req.Header.Set("User-Agent", "deckhand-runner")
	return req, nil
}

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
