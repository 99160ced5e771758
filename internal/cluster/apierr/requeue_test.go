package apierr_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

func TestWhatIsLogged(t *testing.T) {
	broken := errors.New("broken") //nolint:err113 // of this test
	errConflict := apierrors.NewConflict(schema.GroupResource{Resource: "runs"}, "x", broken)
	cases := map[string]struct {
		err     error
		stopped bool
		want    error
	}{
		"a conflict":                         {err: fmt.Errorf("patching: %w", errConflict)},
		"a failure":                          {err: broken, want: broken},
		"a failure while the operator stops": {err: broken, stopped: true, want: broken},
		"a request that was cut off by that": {err: fmt.Errorf("patching: %w", context.Canceled), stopped: true},
		"one that was cut off otherwise":     {err: context.Canceled, want: context.Canceled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := apierr.RequeueConflicts(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
				if tc.stopped {
					cancel()
				}
				return ctrl.Result{}, tc.err
			})).Reconcile(ctx, ctrl.Request{})
			if !errors.Is(err, tc.want) {
				t.Errorf("it returns %v, want %v", err, tc.want)
			}
		})
	}
}

// The clock is the test's.
func TestAStepGoesOnForAWhileWhenTheOperatorStops(t *testing.T) {
	for name, tc := range map[string]struct {
		takes, want time.Duration
	}{
		"one that ends":           {time.Second, time.Second},
		"one that waits for ever": {time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				begun := time.Now()
				_, err := apierr.RequeueConflicts(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
					cancel()
					select {
					case <-time.After(tc.takes):
						return ctrl.Result{}, nil
					case <-ctx.Done():
						return ctrl.Result{}, ctx.Err()
					}
				})).Reconcile(ctx, ctrl.Request{})
				if took := time.Since(begun); took != tc.want || err != nil {
					t.Errorf("it ends after %s, want %s: %v", took, tc.want, err)
				}
			})
		})
	}
}
