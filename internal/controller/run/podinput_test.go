package run

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// Without its owner a volume would be given to another user, who cannot read it: the next
// reconciliation has to try again. A volume that is gone has no owner to record.
func TestTheOwnerOfAVolumeIsRecordedOrTriedAgain(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: runnerpod.RunnerContainer, SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1000620000))},
	}}}}
	for name, tc := range map[string]struct{ err, want error }{
		"recorded":             {nil, nil},
		"the volume is gone":   {apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, "x"), nil},
		"the patch is refused": {errUnreadable, errUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRefuser(t, gen.Run(), gen.Agent())
			patched := ""
			v := volumes{client: interceptor.NewClient(s, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
					data, err := p.Data(o)
					patched = o.GetName() + " " + string(data)
					return errors.Join(err, tc.err)
				},
			})}
			seen := state{run: gen.Run(), podDefaults: runnerpod.Defaults{User: runnerpod.PodUserCluster}}
			seen.run.Status.Attempt = &v1alpha1.Attempt{VolumeClaim: "claim"}
			seen.assignable = runnerpod.AssignableIn(map[string]string{"openshift.io/sa.scc.uid-range": "1000620000/10000"})
			err := v.recordOwner(t.Context(), seen, pod)
			if !errors.Is(err, tc.want) || (err != nil) != (tc.want != nil) {
				t.Errorf("recordOwner() = %v, want %v", err, tc.want)
			}
			if want := `claim {"metadata":{"annotations":{"deckhand.dev/file-owner":"1000620000"}}}`; patched != want {
				t.Errorf("the patch is %s, want %s", patched, want)
			}
		})
	}
}
