package apierr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Describe returns the message of a condition about a request that failed: the request, the
// answer of the API server, and what to do. It has no times, request ids, addresses or used
// amounts of a quota, so that the condition does not change with each retry.
func Describe(err error) string {
	cause, promise := Cause(err)
	return cause + promise
}

// Cause returns the message of Describe in two parts. The promise that the operator tries again holds only while the
// object waits.
func Cause(err error) (cause, promise string) {
	switch {
	case err == nil:
		return "", ""
	case !IsRefusal(err):
		return upperFirst(requestOf(err) + transient(err)), ". The operator tries again"
	}
	return upperFirst(Text(err)) + ". " + remedy(err), ""
}

// unstable are the parts that differ between two answers to the same request.
var unstable = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`, used: \S+, limited: `), ", limited: "},
	{regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`), "…"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?`), "…"},
	{regexp.MustCompile(`(?i)(request[-_ ]?id[:= ]+"?)[\w-]+`), "${1}…"},
}

// Text returns an error as text, without the parts that differ between two answers of the API server to the same
// request.
func Text(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // of errors that are joined
	for _, u := range unstable {
		text = u.pattern.ReplaceAllString(text, u.instead)
	}
	return text
}

// remedy returns what to do about a refusal.
func remedy(err error) string {
	if _, required := Requirements(err); len(required) > 0 {
		return "Create a LimitRange with defaults for what the ResourceQuota requires"
	}
	switch Classify(err) {
	case Terminating:
		return "The namespace is being deleted: create the object in another one"
	case Forbidden:
		return "Grant the operator this right (the chart has all that it needs), or ask your cluster administrator"
	case Quota:
		return "Raise the ResourceQuota, or delete what is not needed any more"
	case Admission, ServiceAccount:
		return "Change the policy or webhook that refuses it, or ask your cluster administrator"
	case Invalid:
		return "Correct the field that is named"
	default:
		return "Ask your cluster administrator"
	}
}

// requestOf returns the text before the innermost cause, which describes the request.
func requestOf(err error) string {
	for cause := err; ; {
		next := inner(cause)
		if next != nil && !final(cause) {
			cause = next
			continue
		}
		before, _, _ := strings.Cut(Text(err), Text(cause))
		return before
	}
}

// inner returns the error that another wraps, the first of several.
func inner(err error) error {
	if many, is := err.(interface{ Unwrap() []error }); is {
		if all := many.Unwrap(); len(all) > 0 {
			return all[0]
		}
		return nil
	}
	return errors.Unwrap(err)
}

// final reports whether an error is a cause as the client reports it.
func final(err error) bool {
	switch err.(type) { //nolint:errorlint // one level is asked for
	case *apierrors.StatusError, *url.Error, net.Error:
		return true
	}
	return false
}

var uncalled = regexp.MustCompile(`failed calling webhook "[^"]*"`)

// transient describes an error that is not a refusal by its class.
func transient(err error) string {
	if hook := uncalled.FindString(err.Error()); hook != "" {
		return "the API server " + hook
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the operator's credentials"
	case apierrors.IsTooManyRequests(err):
		return "the API server has too many requests"
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return "the API server did not answer in time"
	case apierrors.IsAlreadyExists(err):
		return "an object of this name exists already"
	case apierrors.IsConflict(err):
		return "the object was changed or deleted by another client at the same time"
	}
	if status, is := errors.AsType[*apierrors.StatusError](err); is {
		return answered(status.ErrStatus.Code)
	}
	if isNetwork(err) {
		return "the API server cannot be reached"
	}
	return "an internal error, which the operator's log shows"
}

// answered describes an answer of the API server only by its code, because its text may contain addresses and times.
func answered(code int32) string {
	if code == http.StatusInternalServerError {
		return "the API server had an internal error"
	}
	return fmt.Sprintf("the API server answered with code %d", code)
}

// isNetwork reports whether a request got no answer.
func isNetwork(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isNet := errors.AsType[net.Error](err)
	return isURL || isNet || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func upperFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
