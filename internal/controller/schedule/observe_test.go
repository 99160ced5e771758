package schedule

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestWhichRunsAreOfASchedule(t *testing.T) {
	no := false
	cases := map[string]struct {
		mod  func(*v1alpha1.Run)
		want bool
	}{
		"as it was made":                  {func(*v1alpha1.Run) {}, true},
		"in a later version of the API":   {func(r *v1alpha1.Run) { r.OwnerReferences[0].APIVersion = "deckhand.dev/v1" }, true},
		"of a namesake":                   {func(r *v1alpha1.Run) { r.OwnerReferences[0].UID = "another" }, false},
		"of another kind with its UID":    {func(r *v1alpha1.Run) { r.OwnerReferences[0].Kind = "ConfigMap" }, false},
		"of another group with its UID":   {func(r *v1alpha1.Run) { r.OwnerReferences[0].APIVersion = "example.com/v1" }, false},
		"of a group that begins like it":  {func(r *v1alpha1.Run) { r.OwnerReferences[0].APIVersion = "deckhand.dev.example.com/v1" }, false},
		"that it owns and does not steer": {func(r *v1alpha1.Run) { r.OwnerReferences[0].Controller = &no }, false},
		"without an owner":                {func(r *v1alpha1.Run) { r.OwnerReferences = nil }, false},
		"without the label":               {func(r *v1alpha1.Run) { delete(r.Labels, v1alpha1.LabelSchedule) }, false},
		"with the label of another":       {func(r *v1alpha1.Run) { r.Labels[v1alpha1.LabelSchedule] = "other" }, false},
		"that a backup brought back":      {func(r *v1alpha1.Run) { r.Labels["velero.io/restore-name"] = "backup" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := nightly()
			run := runOf(s, gen.Noon)
			tc.mod(run)
			if got := isOwned(s, run); got != tc.want {
				t.Errorf("it is the Schedule's: %v, want %v", got, tc.want)
			}
		})
	}
}
