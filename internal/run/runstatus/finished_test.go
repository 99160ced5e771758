package runstatus_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

func TestIgnoreEnded(t *testing.T) {
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "deckhand.dev", Kind: "Run"}, "x", field.ErrorList{field.Invalid(path, nil, "m")})
	}
	for name, tc := range map[string]struct {
		err     error
		ignored bool
	}{
		"no error":         {nil, true},
		"a finished Run":   {fmt.Errorf("stopping: %w", invalid(field.NewPath("spec", "desiredState"))), true},
		"a deleted Run":    {fmt.Errorf("stopping: %w", apierrors.NewNotFound(schema.GroupResource{}, "x")), true},
		"another field":    {invalid(field.NewPath("spec", "prompt")), false},
		"another refusal":  {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), false},
		"no answer at all": {errors.New("connection refused"), false},
	} {
		if got := runstatus.IgnoreFinished(tc.err); (got == nil) != tc.ignored {
			t.Errorf("%s: %v", name, got)
		}
	}
}
