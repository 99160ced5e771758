// Package denial tells an API server that does not take an object from one that
// cannot answer now: the first says something about the object, the other is tried
// again.
package denial

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Is says whether the server answered that it does not want this object, rather
// than that it cannot answer now.
func Is(err error) bool {
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
