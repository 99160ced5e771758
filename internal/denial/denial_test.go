package denial

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatIsADenial(t *testing.T) {
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
			if got := Is(tc.err); got != tc.want {
				t.Errorf("%v is a denial: %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}
