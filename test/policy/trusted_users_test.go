package policy_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// The policies of other tests trust the user admin, so that only those of the release refuse it. They
// are for its namespace alone.
func TestUsersThatTheChartTrustsMayDoWhatTheOperatorMay(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	h := &helm{t: t, kubeconfig: kubeconfig(t, s.Config)}
	const restoring = "system:serviceaccount:velero:velero"
	for _, step := range []struct {
		what    string
		trusted []string
		mayDo   bool
	}{
		{"another user is named", []string{restoring}, false},
		{"the user is named beside another", []string{restoring, "admin"}, true},
		{"a name is named that only begins as the user's", []string{"admin2"}, false},
	} {
		h.trusted = step.trusted
		h.mustInstall("trusting", namespace, namespace)
		for what, object := range map[string]client.Object{
			"a volume claim of a Run": volumeClaim(namespace, "deckhand-run-x-12345678"),
			"a pod that writes to it": mountingPod(namespace, "deckhand-run-x-12345678", "write"),
		} {
			var err error
			create := func(ctx context.Context) (bool, error) {
				err = s.Admin.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
				return (err == nil) == step.mayDo && (err == nil || apitest.IsPolicy(err)), nil
			}
			// The API server asks changed policies after a moment.
			if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, create) != nil {
				t.Errorf("%s, and creates %s: %v", step.what, what, err)
			}
		}
	}
	h.uninstall("trusting", namespace)
}
