package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

func TestDecide(t *testing.T) {
	extra := func(text string) func(*v1alpha1.Model) {
		return func(m *v1alpha1.Model) {
			m.Spec.Parameters = &v1alpha1.ModelParameters{Extra: &runtime.RawExtension{Raw: []byte(text)}}
		}
	}
	cases := map[string]struct {
		model  *v1alpha1.Model
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"well formed":                      {gen.Model(), metav1.ConditionTrue, v1alpha1.ReasonReady, "first Run"},
		"extra parameters that fit":        {gen.Model(extra(`{"a":1}`)), metav1.ConditionTrue, v1alpha1.ReasonReady, ""},
		"extra parameters that are long":   {gen.Model(extra(`{"a":"` + strings.Repeat("a", 5000) + `"}`)), metav1.ConditionFalse, v1alpha1.ReasonParametersInvalid, "at most 4096"},
		"extra parameters that are a list": {gen.Model(extra(`[1]`)), metav1.ConditionFalse, v1alpha1.ReasonParametersInvalid, "must be an object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.model)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("decide() = %+v", got)
			}
		})
	}
}

// What is reported once is not reported again.
func TestEveryModelSettles(t *testing.T) {
	m := gen.Model()
	m.Status = statusOf(m, decide(m), metav1.NewTime(gen.Noon))
	again := statusOf(m, decide(m), metav1.NewTime(gen.Noon.AddDate(1, 0, 0)))
	if diff := cmp.Diff(m.Status, again); diff != "" {
		t.Errorf("a settled Model moves:\n%s", diff)
	}
}
