package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Errors are values for which the loop has actions. Each has the message of the provider, which the adapter has
// truncated.

// An UnauthorizedError means that the provider refused the credential, or that
// it cannot be sent.
type UnauthorizedError struct {
	Status  int // 0: nothing was sent
	Message string
}

func (e *UnauthorizedError) Error() string {
	if e.Status == 0 {
		return "the model's credential cannot be used: " + e.Message
	}
	return fmt.Sprintf("the model provider refused the credential (HTTP %d): %s", e.Status, e.Message)
}

// A NoCredentialError means that the credential cannot be read just now. A controller that
// manages Secrets may delete a Secret and create it again.
type NoCredentialError struct {
	Message string
}

func (e *NoCredentialError) Error() string {
	return "the model's credential cannot be read: " + e.Message
}

// A BadRequestError means that the request itself is wrong: sending it again fails again.
type BadRequestError struct {
	Status  int
	Message string
	// Asked is the method and the URL of a request whose path, or the name of a model in it, the
	// server does not know (HTTP 404 or 405), without credentials and query; empty: another status.
	Asked string
	Refusal
}

// A Refusal describes which part of a request a provider refused, as far as request and message show that.
type Refusal struct {
	Cause Cause
	// Tool is the name of the refused tool in the request; empty: not known.
	Tool string
	// Field is the refused field of the request, as the API names it. Setting is the setting
	// of a Model or an Agent that it comes from, such as inference.temperature; empty: none.
	Field, Setting string
	// Instead is the field that the message names as a replacement for Field.
	Instead string
	// Limit is the largest accepted value; 0: not known.
	Limit int64
}

// Cause is the kind of part that a provider refused.
type Cause string

// The causes; empty: not known.
const (
	CauseTool               Cause = "Tool"               // the name, the description or the schema of a tool
	CauseTooManyTools       Cause = "TooManyTools"       // the number of tools
	CauseNoTools            Cause = "NoTools"            // tools at all
	CauseToolsWithReasoning Cause = "ToolsWithReasoning" // tools while the model reasons
	CauseOtherAPI           Cause = "OtherAPI"           // the API: the model has another one
	CauseRoles              Cause = "Roles"              // the order of the messages
	CauseReasoningMissing   Cause = "ReasoningMissing"   // an earlier answer without its reasoning
	CauseParameter          Cause = "Parameter"          // a field of the request
	CauseOutputLimit        Cause = "OutputLimit"        // the largest answer that is asked for
	CausePayment            Cause = "Payment"            // the account has no credit
	CauseModel              Cause = "Model"              // the name of the model, or the path of the endpoint
	CauseDeployment         Cause = "Deployment"         // the name of the deployment at Azure
	CauseInferenceProfile   Cause = "InferenceProfile"   // the name of the model: that of an inference profile is asked for
	CausePage               Cause = "Page"               // a proxy refused the request, with a web page
	CauseServer             Cause = "Server"             // the configuration of the server
)

func (e *BadRequestError) Error() string {
	request := "the request"
	if e.Asked != "" {
		request += " " + e.Asked
	}
	return fmt.Sprintf("the model provider refused %s (HTTP %d): %s", request, e.Status, e.Message)
}

// A ContextTooLongError means that the request does not fit the model's window.
type ContextTooLongError struct {
	Message string
	// Window is the size of the context window, in tokens; 0: not known.
	Window int64
}

func (e *ContextTooLongError) Error() string {
	return "the request does not fit the context window: " + e.Message
}

// A RateLimitedError means that the provider asks to wait.
type RateLimitedError struct {
	RetryAfter time.Duration // 0: the provider did not say
	// Final reports that the provider asked not to send the request again.
	Final bool
	// UsedUp reports that the account has no money: the limit remains until a user pays.
	UsedUp  bool
	Message string
}

func (e *RateLimitedError) Error() string {
	if e.UsedUp {
		return "the account at the model provider is used up: " + e.Message
	}
	if e.RetryAfter > 0 {
		return fmt.Sprintf("the model provider is rate limiting (retry after %s): %s", e.RetryAfter, e.Message)
	}
	return "the model provider is rate limiting: " + e.Message
}

// StatusOverloaded is the HTTP status with which Anthropic and others report that they are overloaded.
const StatusOverloaded = 529

// An UnavailableError means that the provider could not be reached or failed:
// the same request may succeed later.
type UnavailableError struct {
	Status     int // 0: no answer at all
	RetryAfter time.Duration
	// Final reports that the provider asked not to send the request again.
	Final   bool
	Message string
}

func (e *UnavailableError) Error() string {
	if e.Status == 0 {
		return "the model endpoint is unavailable: " + e.Message
	}
	return fmt.Sprintf("the model endpoint is unavailable (HTTP %d): %s", e.Status, e.Message)
}

// A CertificateError means that the certificate of the endpoint cannot be verified, and that
// time does not change that: it is signed by an unknown authority, or is for another host.
type CertificateError struct {
	Message string
	// Unknown reports that the authority is unknown.
	Unknown bool
}

func (e *CertificateError) Error() string {
	return "the certificate of the model endpoint cannot be verified: " + e.Message
}

// An AddressError means that the address of the endpoint's host is not allowed.
type AddressError struct{ Message string }

func (e *AddressError) Error() string { return "the model endpoint is not asked: " + e.Message }

// A RefusedError means that the provider's content policy declined the request before the model processed it: sending
// it again fails again.
type RefusedError struct {
	Message string
}

func (e *RefusedError) Error() string {
	return "the provider's content policy declined the request: " + e.Message
}

// A NotAModelError means that a successful response is not a model's answer, for example a web page. Once, it may be a
// failure of a proxy; repeatedly, it means that the endpoint is wrong.
type NotAModelError struct {
	ContentType string
	// Final reports that the next answer would be the same: it was a redirect, or an answer without an end.
	Final   bool
	Message string
	// Asked is the method and the URL of the request, without credentials and query.
	Asked string
}

func (e *NotAModelError) Error() string {
	answered := e.ContentType
	if e.Asked != "" {
		answered += " to " + e.Asked
	}
	return fmt.Sprintf("the endpoint answered %s, not a model's stream; check the Model's endpoint: %s", answered, e.Message)
}

// An IncompleteError means that the stream ended, or broke, before a finish reason. Partial is what arrived, as Collect
// assembled it, and must never be used as an answer.
type IncompleteError struct {
	Partial Response
	Cause   error // nil: the stream just ended
}

func (e *IncompleteError) Error() string {
	if e.Cause == nil {
		return "the model's stream ended before the answer did"
	}
	if timeout, ok := errors.AsType[*TimeoutError](e.Cause); ok {
		return timeout.Error()
	}
	return fmt.Sprintf("the model's stream broke before the answer ended: %v", e.Cause)
}

func (e *IncompleteError) Unwrap() error { return e.Cause }

// A BrokenOffError means that the answer ended with a finish reason that shows that it is incomplete: the server broke
// it off.
type BrokenOffError struct {
	// Reason is the finish reason as the provider wrote it.
	Reason string
	// Unusable reports whether the model is the cause: it wrote something, such as a tool
	// call, that the server cannot use.
	Unusable bool
}

func (e *BrokenOffError) Error() string {
	if e.Unusable {
		return fmt.Sprintf("the provider could not use what the model wrote (finish reason %s)", e.Reason)
	}
	return fmt.Sprintf("the provider broke off the answer (finish reason %s)", e.Reason)
}

// A TimeoutError means that an endpoint which could be reached took longer than
// its Model allows. It may still work on the request, which a retry begins again,
// so that the same limit is likely to be reached again. The causes of an
// *IncompleteError include it.
type TimeoutError struct {
	// Field is firstByte, betweenBytes or total of spec.timeouts of the Model; empty: no
	// field sets this limit.
	Field string
	// After is the limit that was reached.
	After time.Duration
}

// The fields that a TimeoutError names.
const (
	TimeoutFirstByte    = "firstByte"
	TimeoutBetweenBytes = "betweenBytes"
	TimeoutTotal        = "total"
)

func (e *TimeoutError) Error() string {
	switch e.Field {
	case TimeoutFirstByte:
		return fmt.Sprintf("no byte came for %s before the answer began (timeouts.firstByte)", e.After)
	case TimeoutBetweenBytes:
		return fmt.Sprintf("no byte came for %s within the answer (timeouts.betweenBytes)", e.After)
	case TimeoutTotal:
		return fmt.Sprintf("the answer was not complete after %s (timeouts.total)", e.After)
	}
	return fmt.Sprintf("no byte came for %s", e.After)
}

// Transient reports whether the same request may succeed later, here or at another model: the provider limited the
// rate, could not be reached, failed, broke off or took too long, or the credential was missing. The end of the
// caller's own context is not transient.
func Transient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	_, limited := errors.AsType[*RateLimitedError](err)
	_, unavailable := errors.AsType[*UnavailableError](err)
	_, incomplete := errors.AsType[*IncompleteError](err)
	_, brokenOff := errors.AsType[*BrokenOffError](err)
	_, unreadable := errors.AsType[*NoCredentialError](err)
	_, timeout := errors.AsType[*TimeoutError](err)
	return limited || unavailable || incomplete || brokenOff || unreadable || timeout
}

// Outage reports whether an error means that a provider is unavailable or overloaded, so that waiting minutes for the
// same request is worthwhile: no connection, a broken stream, an answer that the server broke off, 408, 409, 429 or
// 5xx. A credential that cannot be read now counts, too. Other [Transient] errors are retried only for seconds, because
// they are more likely about the request or its answer than about the provider.
func Outage(err error) bool {
	if !Transient(err) {
		return false
	}
	if limited, ok := errors.AsType[*RateLimitedError](err); ok {
		return !limited.Final
	}
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		return !unavailable.Final && isOutageStatus(unavailable.Status)
	}
	if _, timeout := errors.AsType[*TimeoutError](err); timeout {
		return false // the server is there, and a retry begins its work anew
	}
	_, incomplete := errors.AsType[*IncompleteError](err)
	_, unreadable := errors.AsType[*NoCredentialError](err)
	return incomplete || unreadable || BreaksOff(err)
}

// BreaksOff reports whether a provider that is there broke off its answer: each further try
// costs tokens.
func BreaksOff(err error) bool {
	if broken, ok := errors.AsType[*BrokenOffError](err); ok {
		return !broken.Unusable
	}
	incomplete, ok := errors.AsType[*IncompleteError](err)
	return ok && len(incomplete.Partial.Parts)+len(incomplete.Partial.Calls) > 0
}

// isOutageStatus reports whether a status, 0 without an answer, is one of an outage.
func isOutageStatus(status int) bool {
	switch status {
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// RetryAfter returns how long the provider asks to wait before the next request; 0: it does not, or it asks for no
// other request.
func RetryAfter(err error) time.Duration {
	if limited, ok := errors.AsType[*RateLimitedError](err); ok && !limited.Final {
		return limited.RetryAfter
	}
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok && !unavailable.Final {
		return unavailable.RetryAfter
	}
	return 0
}
