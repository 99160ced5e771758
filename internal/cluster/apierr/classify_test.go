package apierr_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
)

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	runs := schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}
	forbidden := func(text string) error { return apierrors.NewForbidden(pods, "x-1", errors.New(text)) }
	webhook := func(code int32, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: `admission webhook "guard.example.com" denied the request: ` + text}}
	}
	terminating := apierrors.NewForbidden(pods, "x-1", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Run").GroupKind(), "x", field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "too long")})
	cases := map[string]struct {
		err  error
		want apierr.Class
	}{
		"no error":                    {nil, apierr.None},
		"no answer":                   {errors.New("connection refused"), apierr.Transient},
		"an internal error":           {apierrors.NewInternalError(errors.New("failed calling webhook")), apierr.Transient},
		"too many requests":           {apierrors.NewTooManyRequests("slow down", 1), apierr.Transient},
		"a timeout of the server":     {apierrors.NewTimeoutError("slow", 1), apierr.Transient},
		"a timeout of the request":    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestTimeout}}, apierr.Transient},
		"unknown credentials":         {apierrors.NewUnauthorized("who?"), apierr.Transient},
		"a name that exists":          {apierrors.NewAlreadyExists(pods, "x-1"), apierr.Transient},
		"another resource version":    {apierrors.NewConflict(pods, "x-1", errors.New("moved")), apierr.Conflict},
		"a failed test of a patch":    {apierrors.NewGenericServerResponse(422, "patch", runs, "x", "testing path failed", 0, false), apierr.Conflict},
		"a namespace that terminates": {terminating, apierr.Terminating},
		"a namespace that is gone":    {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team-a"), apierr.NotFound},
		"a full quota":                {forbidden("exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"), apierr.Quota},
		"a quota that wants limits":   {forbidden("failed quota: q: must specify limits.memory"), apierr.Quota},
		"a quota of a webhook":        {webhook(http.StatusForbidden, "exceeded quota of team a"), apierr.Quota},
		"no ServiceAccount":           {forbidden("error looking up service account team-a/deckhand-runner: not found"), apierr.ServiceAccount},
		"a missing permission":        {forbidden(`User "system:serviceaccount:deckhand:deckhand" cannot create resource "pods" in API group "" in the namespace "team-a"`), apierr.Forbidden},
		"no right to set finalizers":  {forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), apierr.Forbidden},
		"no right to take over":       {forbidden("cannot set an ownerRef on a resource you can't delete: , <nil>"), apierr.Forbidden},
		"a LimitRange":                {forbidden("maximum memory usage per Pod is 1Gi, but limit is 2Gi"), apierr.Admission},
		"Pod Security":                {forbidden(`violates PodSecurity "restricted:latest": privileged`), apierr.Admission},
		"a policy":                    {forbidden("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not here"), apierr.Admission},
		"a webhook that answers 400":  {webhook(http.StatusBadRequest, "not here"), apierr.Admission},
		"a webhook that answers 422":  {webhook(http.StatusUnprocessableEntity, "not here"), apierr.Admission},
		"a webhook on permissions":    {webhook(http.StatusForbidden, "team-a cannot create resource pods"), apierr.Admission},
		"a schema":                    {invalid, apierr.Invalid},
		"a request without sense":     {apierrors.NewBadRequest("what?"), apierr.Refused},
		"a request that is too large": {apierrors.NewRequestEntityTooLargeError("large"), apierr.Refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := apierr.Classify(tc.err); got != tc.want {
				t.Errorf("Classify(%v) = %q, want %q", tc.err, got, tc.want)
			}
			if tc.err == nil {
				return
			}
			if got := apierr.Classify(fmt.Errorf("creating: %w", tc.err)); got != tc.want {
				t.Errorf("wrapped: %q, want %q", got, tc.want)
			}
		})
	}
}

// A refusal is what may end a Run; the other errors are retried without a limit.
func TestIsRefusal(t *testing.T) {
	for name, f := range apierrtest.Failures() {
		if got := apierr.IsRefusal(f.Err("create", "Pod", "x-1", 1)); got == f.Transient {
			t.Errorf("%s: IsRefusal() = %t", name, got)
		}
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "x-1", errors.New("moved"))
	if apierr.IsRefusal(conflict) || apierr.IsRefusal(nil) {
		t.Error("a conflict, or no error, is a refusal")
	}
}

func TestIsConflict(t *testing.T) {
	runs := schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}
	failedTest := apierrors.NewGenericServerResponse(422, "patch", runs, "x", "testing path failed", 0, false)
	duplicates := func(list string, more ...*field.Error) error {
		errs := append(field.ErrorList{field.Duplicate(field.NewPath(list).Index(3), map[string]string{"type": "Stalled"})}, more...)
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Run").GroupKind(), "x", errs)
	}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"an optimistic lock":               {apierrors.NewConflict(runs, "x", errors.New("modified")), true},
		"a failed test of a patch":         {failedTest, true},
		"wrapped, all the same":            {fmt.Errorf("patching: %w", failedTest), true},
		"a status that the schema refuses": {apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Run").GroupKind(), "x", field.ErrorList{field.Invalid(field.NewPath("status"), 1, "too long")}), false},
		"a condition added twice":          {duplicates("status.conditions"), true},
		"another list with an item twice":  {duplicates("spec.tools"), false},
		"a condition twice and more":       {duplicates("status.conditions", field.Invalid(field.NewPath("status"), 1, "too long")), false},
		"anything else":                    {apierrors.NewForbidden(runs, "x", nil), false},
		"nothing":                          {nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := apierr.IsConflict(tc.err); got != tc.want {
				t.Errorf("IsConflict(%v) = %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}
