package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// maxErrorBody bounds the body of an error response, in bytes.
const maxErrorBody = 64 << 10

// callRejected is the code with which Groq reports that its model wrote a call that does not match its schema. The next
// answer may match. https://console.groq.com/docs/errors
const callRejected = "tool_use_failed"

// statusOfName maps the names of errors in a stream to HTTP statuses.
var statusOfName = map[string]int{
	"invalid_request_error": http.StatusBadRequest, "bad_request": http.StatusBadRequest, "content_filter": http.StatusBadRequest,
	"authentication_error": http.StatusUnauthorized, "invalid_api_key": http.StatusUnauthorized,
	"permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound, "model_not_found": http.StatusNotFound,
	"rate_limit_error": http.StatusTooManyRequests, "rate_limit_exceeded": http.StatusTooManyRequests,
	"insufficient_quota": http.StatusTooManyRequests, "tokens": http.StatusTooManyRequests, "requests": http.StatusTooManyRequests,
	"overloaded_error": model.StatusOverloaded, "timeout_error": http.StatusGatewayTimeout, "billing_error": http.StatusPaymentRequired,
	callRejected: http.StatusBadRequest, policyFlagged: http.StatusBadRequest,

	throttled: http.StatusTooManyRequests, "validationexception": http.StatusBadRequest,
	"modeltimeoutexception": http.StatusRequestTimeout, "serviceunavailableexception": http.StatusServiceUnavailable,
	modelFailed: http.StatusFailedDependency, modelStreamFailed: http.StatusFailedDependency,
}

// throttled is the name of a rate limit in services of Amazon. Its message may be "Too many tokens, please wait before
// trying again.", which is not about the window.
const throttled = "throttlingexception"

// modelFailed and modelStreamFailed are the names with which Bedrock reports, with HTTP 424, that a model failed and
// that the next request may succeed.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html
const (
	modelFailed       = "modelerrorexception"
	modelStreamFailed = "modelstreamerrorexception"
)

// errorTypeHeader is where services of Amazon write the name of an error, before a colon and an address.
const errorTypeHeader = "X-Amzn-Errortype"

// policyFlagged is the code with which OpenAI reports, in a failed answer, that the prompt violates its usage policy.
// https://platform.openai.com/docs/api-reference/responses/object
const policyFlagged = "invalid_prompt"

// tooLong are phrases of servers for a request that exceeds the context window.
var tooLong = []string{
	"context_length_exceeded", "context length", "context window", "context size", "exceed_context_size",
	"prompt is too long", "input is too long", "prompt length", "too many tokens", "input token count",
	"too_many_prompt_tokens", "input tokens exceed", "context limit", "reduce the length of", "request_too_large", "request too large",
}

// An errorReport is the content of an error response of any known format.
type errorReport struct {
	message string
	names   []string // code, type and status, as they are written
	where   []string // the fields that are meant, as they are written
	isJSON  bool
	isPage  bool
}

// BodyError returns the error in a body or an event with HTTP 200.
func (c *Call) BodyError(raw json.RawMessage) error {
	r := read(raw)
	c.failure = c.classify(r.status(), http.Header{}, r)
	return c.failure
}

// statusError returns the error for a response with another status than 2xx.
func (c *Call) statusError(resp *http.Response, from io.Reader) error {
	body, _ := io.ReadAll(io.LimitReader(from, maxErrorBody)) // the status says enough
	if err := c.ctx.Err(); err != nil {
		return c.unreachable(err)
	}
	if to := resp.Header.Get("Location"); resp.StatusCode < 400 && to != "" {
		return c.final("it redirects to " + to)
	}
	r := read(body)
	if name, _, _ := strings.Cut(resp.Header.Get(errorTypeHeader), ":"); name != "" {
		r.names = append(r.names, name)
	}
	r.message = cmp.Or(r.message, http.StatusText(resp.StatusCode))
	if server := resp.Header.Get("Server"); r.isPage && server != "" {
		r.message += ", from the server " + server
	}
	return c.classify(resp.StatusCode, resp.Header, r)
}

// classify returns the error for a status and an errorReport.
func (c *Call) classify(status int, header http.Header, r *errorReport) error {
	message := c.printable(r.message)
	wait := retryAfter(header, c.client.Now())
	again := strings.ToLower(header.Get("X-Should-Retry"))
	refused := newRefusal(c.Sent, status, r)
	if early := refused.cause((*refusal).payment, (*refusal).page, (*refusal).outputLimit); early.Cause != "" {
		return c.badRequest(status, message, early)
	}
	switch {
	case r.isTooLong(status):
		return &model.ContextTooLongError{Message: message, Window: window(message)}
	case status == http.StatusBadRequest && r.has("content_filter", "content_policy_violation", "responsibleaipolicyviolation", policyFlagged):
		return &model.RefusedError{Message: message}
	case status == http.StatusBadRequest && r.has(callRejected), status == http.StatusFailedDependency && r.has(modelFailed, modelStreamFailed):
		return &model.UnavailableError{Status: status, RetryAfter: wait, Message: message}
	case status == http.StatusForbidden && refused.isModelNamed():
		return c.badRequest(status, message, model.Refusal{Cause: model.CauseModel})
	case status == http.StatusUnauthorized, status == http.StatusForbidden, r.isKeyRefused(status):
		return &model.UnauthorizedError{Status: status, Message: message}
	case status == http.StatusTooManyRequests:
		usedUp := wait == 0 && r.isUsedUp()
		return &model.RateLimitedError{RetryAfter: wait, Final: usedUp || wait == 0 && again == "false", UsedUp: usedUp, Message: message}
	case again != "true" && refused.serverCause().Cause != "":
		return c.badRequest(status, message, refused.serverCause())
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500, again == "true":
		return &model.UnavailableError{Status: status, RetryAfter: wait, Final: again == "false" && wait == 0, Message: message}
	}
	return c.badRequest(status, message, refused.cause(requestRules...))
}

// badRequest returns a BadRequestError. It names the address of the last request if that may be wrong.
func (c *Call) badRequest(status int, message string, r model.Refusal) *model.BadRequestError {
	err := &model.BadRequestError{Status: status, Message: message, Refusal: r}
	if slices.Contains(unknownPaths, status) {
		err.Asked = c.asked
	}
	return err
}

// maxAsked bounds Asked of a BadRequestError, in bytes.
const maxAsked = 240

// address returns the method and the URL of a request, without what may be secret.
func (c *Call) address(req *http.Request) string {
	u := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path, RawPath: req.URL.RawPath}
	return quote.Clip(c.printable(req.Method+" "+u.String()), maxAsked)
}

// status returns the HTTP status of an errorReport.
func (r *errorReport) status() int {
	for _, name := range r.names {
		if n, err := strconv.Atoi(name); err == nil && n >= 400 && n <= 599 {
			return n
		}
	}
	for _, name := range r.names {
		if n := statusOfName[strings.ToLower(name)]; n != 0 {
			return n
		}
	}
	return http.StatusInternalServerError
}

// usedUp matches messages about an account without money, which providers send with the status of a rate limit.
var usedUp = pattern(`\binsufficient (account )?(balance|credits?|funds)|account.* (suspended|not active|in arrears|overdue)|please recharge`)

// isUsedUp reports whether a rate limit remains until the account is paid.
func (r *errorReport) isUsedUp() bool {
	return r.has("insufficient_quota", "exceeded_current_quota_error", "insufficient_balance", "billing_not_active", "billing_hard_limit_reached") ||
		usedUp().MatchString(strings.ToLower(r.message))
}

// isTooLong reports whether the request did not fit the window. Azure uses status 429 for that, llama.cpp 500, and Groq
// 413 without a message.
func (r *errorReport) isTooLong(status int) bool {
	switch {
	case r.has(throttled):
		return false
	case status == http.StatusRequestEntityTooLarge:
		return true
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError:
	default:
		return false
	}
	said := strings.ToLower(r.message + " " + strings.Join(r.names, " "))
	for _, words := range tooLong {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// window returns the context window in a message of Anthropic or Perplexity; 0: there is none.
func window(message string) int64 {
	_, after, found := strings.Cut(message, " tokens > ")
	if !found {
		_, after, found = strings.Cut(message, " tokens exceeds ")
	}
	size, _, _ := strings.Cut(after, " ")
	n, err := strconv.ParseInt(size, 10, 64)
	if !found || err != nil {
		return 0
	}
	return max(n, 0)
}

// has reports whether the error has one of the names.
func (r *errorReport) has(names ...string) bool {
	return slices.ContainsFunc(r.names, func(name string) bool { return slices.Contains(names, strings.ToLower(name)) })
}

// isKeyRefused reports whether status 400 means that the key was refused. xAI and Gemini answer so.
func (r *errorReport) isKeyRefused(status int) bool {
	said := strings.ToLower(r.message)
	return status == http.StatusBadRequest && strings.Contains(said, "api key") &&
		(strings.Contains(said, "incorrect") || strings.Contains(said, "valid"))
}

// read parses the body of an error response.
func read(body []byte) *errorReport {
	var value any
	if json.Unmarshal(body, &value) != nil {
		if page, ok := pageText(string(body)); ok {
			return &errorReport{message: page, isPage: true}
		}
		return &errorReport{message: string(body)}
	}
	r := &errorReport{isJSON: true}
	r.find(value, 4)
	if r.message == "" {
		r.message = string(body)
	}
	return r
}

// find collects the message and the names in a value and the values nested in it.
func (r *errorReport) find(value any, depth int) {
	if depth == 0 {
		return
	}
	switch v := value.(type) {
	case string:
		r.message = cmp.Or(r.message, v)
	case []any:
		if len(v) > 0 {
			r.find(v[0], depth-1)
		}
	case map[string]any:
		r.unwrap(v, depth)
	}
}

func (r *errorReport) unwrap(v map[string]any, depth int) {
	for _, key := range []string{"code", "type", "status"} {
		r.name(v[key])
	}
	r.locate(v)
	for _, key := range []string{"error", "message", "Message", "detail", "msg", "errors"} {
		r.find(v[key], depth-1)
	}
	inner, _ := v["innererror"].(map[string]any) // Azure
	r.name(inner["code"])
	upstream, _ := v["metadata"].(map[string]any) // OpenRouter
	if raw, ok := upstream["raw"].(string); ok {
		r.message += ": " + raw
	}
}

func (r *errorReport) name(value any) {
	switch v := value.(type) {
	case string:
		r.names = append(r.names, v)
	case float64:
		r.names = append(r.names, strconv.FormatFloat(v, 'f', -1, 64))
	}
}

// IsError reports whether a field named error holds one.
func IsError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "{}", `""`, "false":
		return false
	}
	return true
}

// retryAfter parses Retry-After and Retry-After-Ms; 0 if there is none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return bounded(ms / 1000)
	}
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return bounded(seconds)
	}
	if at, err := http.ParseTime(value); err == nil {
		return bounded(at.Sub(now).Seconds())
	}
	return 0
}

// bounded returns a duration between 0 and a year.
func bounded(seconds float64) time.Duration {
	const year = 365 * 24 * 3600
	if !(seconds > 0) { // not a number, too
		return 0
	}
	return time.Duration(min(seconds, year) * float64(time.Second))
}

// maxMessage bounds messages of an endpoint, in bytes.
const maxMessage = 1 << 10

// minPart is the shortest piece of a key that is worth hiding.
const minPart = 4

// printable returns text of the endpoint for messages: without secrets, which endpoints may quote, without control
// characters, and bounded.
func (c *Call) printable(text string) string {
	text = strings.ToValidUTF8(text, "�")
	for _, secret := range c.secrets {
		text = redact(text, secret)
	}
	return quote.Clip(strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " "), maxMessage)
}

// redact removes a key from a text, and the beginning of one at the end of a cut text.
func redact(text, key string) string {
	const hidden = "‹key›"
	if key == "" {
		return text
	}
	text = strings.ReplaceAll(text, key, hidden)
	for n := len(key) - 1; n >= minPart; n-- {
		if strings.HasSuffix(text, key[:n]) {
			return text[:len(text)-n] + hidden
		}
	}
	return text
}

// maxPageText bounds how much of a web page is quoted, in bytes.
const maxPageText = 200

var (
	isHTML = pattern(`(?is)^\s*<(!doctype html|html|head|body)|<(html|head|body|title|h1|p|div)[\s>]`)
	// heading matches the title or the heading of a page.
	heading = []func() *regexp.Regexp{pattern(`(?is)<title[^>]*>(.*?)</title>`), pattern(`(?is)<h1[^>]*>(.*?)</h1>`)}
	unseen  = pattern(`(?is)<(script|style)\b.*?(</(script|style)>|$)|<!--.*?-->`)
	tag     = pattern(`(?s)<[^>]*>?`)
)

// pageText returns a web page as one line: its title, its heading, or its text. ok is false if the body is not a web
// page.
func pageText(body string) (text string, ok bool) {
	if !strings.HasPrefix(strings.TrimSpace(body), "<") || !isHTML().MatchString(body) {
		return "", false
	}
	for _, h := range heading {
		if m := h().FindStringSubmatch(body); m != nil && plainText(m[1]) != "" {
			return fmt.Sprintf("a web page that says %q", plainText(m[1])), true
		}
	}
	return fmt.Sprintf("a web page that says %q", plainText(unseen().ReplaceAllString(body, " "))), true
}

// plainText returns the text of a piece of HTML in one line.
func plainText(piece string) string {
	return quote.Clip(strings.Join(strings.Fields(html.UnescapeString(tag().ReplaceAllString(piece, " "))), " "), maxPageText)
}

// locate finds the field that a report is about. FastAPI and similar servers name it separately, and not in the
// message.
func (r *errorReport) locate(v map[string]any) {
	if param, ok := v["param"].(string); ok && param != "" {
		r.where = append(r.where, param)
	}
	list, _ := v["loc"].([]any)
	var path []string
	for _, token := range list {
		path = append(path, fmt.Sprint(token))
	}
	if len(path) == 0 {
		return
	}
	where := strings.TrimPrefix(strings.Join(path, "."), "body.")
	r.where = append(r.where, where)
	if text, ok := v["msg"].(string); ok && r.message == "" {
		r.message = where + ": " + text
	}
}
