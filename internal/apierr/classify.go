// Package apierr classifies the errors of API requests, describes them in conditions,
// and keeps conflicts out of the log.
package apierr

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal says whether the server answered that it does not want this object, rather
// than that it cannot answer now.
func IsRefusal(err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is {
		return false
	}
	switch code := status.ErrStatus.Code; code {
	case http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// IsConflict reports whether a write failed because the object has changed since it was
// read: the resource version is another, or a test of a JSON Patch failed, which the API
// server reports as invalid without naming a field.
func IsConflict(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
