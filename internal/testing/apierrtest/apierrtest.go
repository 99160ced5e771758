// Package apierrtest has an API server in memory whose writes fail, and the errors of each
// class, for tests of conditions.
package apierrtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Failure is a class of failures.
type Failure struct {
	// Err returns the error of the nth request: its numbers, ids and addresses differ.
	Err func(verb, kind, name string, n int) error
	// Want is a text that the message of a condition must contain.
	Want string
	// Transient reports that the API server did not refuse the request: it is retried immediately.
	Transient bool
}

// Failures returns all classes of failures, by name.
func Failures() map[string]Failure {
	return map[string]Failure{
		"the operator lacks the right": {
			Err: func(verb, kind, name string, _ int) error {
				return forbidden(kind, name, `User "system:serviceaccount:deckhand:deckhand" cannot %s resource "%s" in API group "" in the namespace "team-a"`, verb, resource(kind).Resource)
			},
			Want: `cannot`,
		},
		"a webhook denies it": {
			Err: func(_, _, _ string, n int) error {
				return status(http.StatusBadRequest, "", `admission webhook "guard.example.com" denied the request: not here (request id: %08d-1111-2222-3333-444444444444)`, n)
			},
			Want: `admission webhook "guard.example.com" denied the request: not here`,
		},
		"a policy denies it": {
			Err: func(_, kind, name string, _ int) error {
				return forbidden(kind, name, `ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not here`)
			},
			Want: `ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not here`,
		},
		"the quota is full": {
			Err: func(_, kind, name string, n int) error {
				return forbidden(kind, name, "exceeded quota: q, requested: count/x=1, used: count/x=%d, limited: count/x=5", 5+n)
			},
			Want: "exceeded quota: q, requested: count/x=1, limited: count/x=5",
		},
		"the namespace is terminating": {
			Err: func(_, kind, name string, _ int) error {
				err := forbidden(kind, name, "unable to create new content in namespace team-a because it is being terminated")
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return err
			},
			Want: "namespace is being deleted",
		},
		"it is invalid": {
			Err: func(_, kind, name string, _ int) error {
				return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, name, field.ErrorList{field.Invalid(field.NewPath("spec", "color"), "red", "must be blue")})
			},
			Want: `spec.color: Invalid value: "red": must be blue`,
		},
		"the server answers late": {
			Err: func(_, _, _ string, n int) error {
				return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within %d s", n), n)
			},
			Want: "did not answer in time", Transient: true,
		},
		"a webhook cannot be called": {
			Err: func(_, _, _ string, n int) error {
				return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "guard.example.com": failed to call webhook: Post "https://guard.svc:443/x": dial tcp 10.0.0.%d:443: connect: connection refused`, n)) //nolint:err113 // the server's words
			},
			Want: `failed calling webhook "guard.example.com"`, Transient: true,
		},
		"the server has an internal error": {
			Err: func(_, _, _ string, n int) error {
				return apierrors.NewInternalError(fmt.Errorf("etcd 10.0.0.%d at 12:00:0%d", n, n)) //nolint:err113 // the server's words
			},
			Want: "the API server had an internal error", Transient: true,
		},
		"the server is unavailable": {
			Err: func(_, _, _ string, n int) error {
				return status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "etcd 10.0.0.%d is not healthy", n)
			},
			Want: "the API server answered with code 503", Transient: true,
		},
		"it is no answer of the server": {
			Err:  func(string, string, string, int) error { return errOther },
			Want: "an internal error, which the operator's log shows", Transient: true,
		},
		"the server is down": {
			Err: func(_, _, _ string, n int) error {
				return &url.Error{Op: "Post", URL: fmt.Sprintf("https://10.0.0.%d/api", n), Err: errRefused}
			},
			Want: "cannot be reached", Transient: true,
		},
	}
}

var (
	errRefused = errors.New("connect: connection refused")
	errOther   = errors.New("the object has no name")
)

func resource(kind string) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kind) + "s"}
}

func forbidden(kind, name, format string, args ...any) *apierrors.StatusError {
	return apierrors.NewForbidden(resource(kind), name, fmt.Errorf(format, args...)) //nolint:err113 // the server's words
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}}
}
