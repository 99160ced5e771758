package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// storedVersion is a revision as an operator that wrote a version of the stored form
// left it.
func storedVersion(t *testing.T, version int) *snapshot.Version {
	t.Helper()
	read := func(file string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "revision", "stored", "testdata", "revisions", fmt.Sprintf("v%d", version), file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"agent.json": read("agent.json"), "snapshot.json": read("snapshot.json")}}
	hash := task.Hash([]byte(task.Hash([]byte(cm.Data["agent.json"])) + task.Hash([]byte(cm.Data["snapshot.json"]))))
	v, err := snapshot.Read(cm, hash)
	if err != nil {
		t.Fatalf("reading a revision of version %d: %v", version, err)
	}
	return v
}

// The pod and the volume of a Run are the same whichever operator stored its revision. A
// golden file that changes here although no other pod does says that a stored revision
// means something else: see the documentation of package stored.
func TestStoredRevisionsMakeTheSamePods(t *testing.T) {
	for n := 1; n <= stored.Version; n++ {
		c := newCluster(t, gen.Run(func(r *v1alpha1.Run) { r.Spec.Prompt = "" }), gen.Agent())
		c.version, c.fenced = storedVersion(t, n), true
		c.run.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"what":"the build"}`)}
		c.step()
		c.step()
		golden(t, fmt.Sprintf("revisions/v%d-pod.yaml", n), c.pod(1))
		goldenClaim(t, fmt.Sprintf("revisions/v%d-claim.yaml", n), claimOf(c.world()))
		if l := c.world().limits(); l.pending != 15*time.Minute || l.deadline != 24*time.Hour || l.task.CostMicroUSD != 2_500_000 || !l.task.Ask {
			t.Errorf("version %d: the limits are %+v", n, l)
		}
	}
}

// storedIn has an operator that cannot read the revision of the Run, because it is
// stored in another version.
func storedIn(version int) func(*cluster) {
	return func(c *cluster) {
		c.unsupported = &stored.UnsupportedError{What: "stored revision", Version: version, Oldest: 1, Newest: 1}
		c.version, c.unread = nil, c.version
	}
}

// upgraded has an operator that can read the revision.
func upgraded(c *cluster) { c.version, c.unread, c.unsupported = c.unread, nil, nil }
