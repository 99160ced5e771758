package model

import (
	"errors"
	"net/http"
	"time"
)

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
