package apierr_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
)

func TestIsRefusal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a policy says no":                {apierrors.NewForbidden(pods, "x-1", errors.New("denied")), true},
		"the same, told by somebody else": {fmt.Errorf("creating: %w", apierrors.NewForbidden(pods, "x-1", errors.New("denied"))), true},
		"it is invalid":                   {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x-1", nil), true},
		"it is not understood":            {apierrors.NewBadRequest("what?"), true},
		"it is too large":                 {apierrors.NewRequestEntityTooLargeError("large"), true},
		"nobody knows who asks":           {apierrors.NewUnauthorized("who?"), false},
		"somebody else was faster":        {apierrors.NewConflict(pods, "x-1", errors.New("moved")), false},
		"the server is asked too often":   {apierrors.NewTooManyRequests("slow down", 1), false},
		"the server is too slow":          {apierrors.NewTimeoutError("slow", 1), false},
		"it gave up on a slow request":    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestTimeout}}, false},
		"the server has a fault":          {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"the server is down":              {errors.New("connection refused"), false},
		"nothing is wrong":                {nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := apierr.IsRefusal(tc.err); got != tc.want {
				t.Errorf("%v is a denial: %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}

func TestIsConflict(t *testing.T) {
	runs := schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}
	failedTest := apierrors.NewGenericServerResponse(422, "patch", runs, "x", "testing path failed", 0, false)
	cases := map[string]struct {
		err  error
		want bool
	}{
		"an optimistic lock":               {apierrors.NewConflict(runs, "x", errors.New("modified")), true}, //nolint:err113 // the server's words
		"a failed test of a patch":         {failedTest, true},
		"wrapped, all the same":            {fmt.Errorf("patching: %w", failedTest), true},
		"a status that the schema refuses": {apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Run").GroupKind(), "x", field.ErrorList{field.Invalid(field.NewPath("status"), 1, "too long")}), false},
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
