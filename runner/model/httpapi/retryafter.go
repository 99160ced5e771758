package httpapi

import (
	"net/http"
	"strconv"
	"time"
)

// retryAfter is how long the provider asks to wait; 0 if it does not.
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

// bounded is a wait that is not negative and that no arithmetic can overflow.
func bounded(seconds float64) time.Duration {
	const year = 365 * 24 * 3600
	if !(seconds > 0) { // not a number, too
		return 0
	}
	return time.Duration(min(seconds, year) * float64(time.Second))
}
