package controller_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// Many Runs at once get one pod each, and another operator, which finds them all at
// work, creates no more. make bench-scale measures this with thousands.
func TestABurstOfRunsHasOnePodEach(t *testing.T) {
	const many = 200
	s := newOperatorFixture(t, apitest.Get(t))
	s.CheckInvariants(t, s.namespace)
	for n := range many {
		s.newRun(fmt.Sprintf("x%03d", n))
	}
	s.until("all have their pods", func(ctx context.Context) bool { return s.recorded(ctx) == many })
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s.operate()
	s.pod(s.newRun("next"), 1)
	var pods corev1.PodList
	if err := s.Admin.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != many+1 || s.recorded(t.Context()) != many+1 {
		t.Errorf("%d Runs have %d pods", many+1, len(pods.Items))
	}
}

// recorded is how many Runs are at their first attempt, with its pod recorded.
func (s *operatorFixture) recorded(ctx context.Context) int {
	s.t.Helper()
	var runs v1alpha1.RunList
	if err := s.Admin.List(ctx, &runs, client.InNamespace(s.namespace)); err != nil {
		return 0
	}
	n := 0
	for i := range runs.Items {
		if a := runs.Items[i].Status.Attempt; a != nil && a.Number == 1 && a.PodUID != "" {
			n++
		}
	}
	return n
}
