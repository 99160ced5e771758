package statuspatch_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

func TestDiff(t *testing.T) {
	base := v1alpha1.RunStatus{Target: &v1alpha1.RunTarget{Kind: "Agent", Name: "fixer"}, Failures: 1, Attempt: &v1alpha1.Attempt{Number: 1}}
	cases := map[string]struct {
		change func(*v1alpha1.RunStatus)
		want   string
	}{
		"nothing changed, nothing sent": {func(*v1alpha1.RunStatus) {}, ``},
		"only what changed is sent, behind what is demanded": {
			func(s *v1alpha1.RunStatus) { s.Failures = 2 },
			`[{"op":"test","path":"/status/attempt/number","value":1},{"op":"add","path":"/status/failures","value":2}]`,
		},
		"what is gone is removed": {
			func(s *v1alpha1.RunStatus) { s.Target = nil },
			`[{"op":"test","path":"/status/attempt/number","value":1},{"op":"remove","path":"/status/target"}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := *base.DeepCopy()
			tc.change(&want)
			patch, err := statuspatch.Diff(base, want, statuspatch.Same("/status/attempt/number", 1))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if patch != nil {
				data, _ := patch.Data(nil)
				got = string(data)
			}
			if got != tc.want {
				t.Errorf("Diff() = %s, want %s", got, tc.want)
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
			if got := statuspatch.IsConflict(tc.err); got != tc.want {
				t.Errorf("IsConflict(%v) = %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}
