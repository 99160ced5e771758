package model

import (
	"errors"
	"net/http"
	"time"
)

// Outage reports whether an error is one of a provider that is away or has too much to do,
// so that the same request is worth a wait of minutes: no connection, a broken stream, an
// answer that the server broke off, 408, 409, 429 or 5xx. So is a credential that cannot be
// read just now. Other errors that are [Transient]
// are retried for seconds only, because they say more about the request or its answer than
// about the provider.
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

// RetryAfter returns how long the provider asks to wait before the next request; 0 if it
// does not say, or asks for no other request.
func RetryAfter(err error) time.Duration {
	if limited, ok := errors.AsType[*RateLimitedError](err); ok && !limited.Final {
		return limited.RetryAfter
	}
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok && !unavailable.Final {
		return unavailable.RetryAfter
	}
	return 0
}
