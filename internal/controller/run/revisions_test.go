package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// storedVersion is a revision as an operator that wrote a version of the stored form
// left it.
func storedVersion(t *testing.T, version int) *snapshot.Revision {
	t.Helper()
	read := func(file string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "revision", "stored", "testdata", "revisions", fmt.Sprintf("v%d", version), file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"agent.json": read("agent.json"), "runner.json": read("runner.json")}}
	hash := task.Hash([]byte(task.Hash([]byte(cm.Data["agent.json"])) + task.Hash([]byte(cm.Data["runner.json"]))))
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
		c.revision, c.fenced = storedVersion(t, n), true
		c.run.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"what":"the build"}`)}
		c.begin()
		golden(t, fmt.Sprintf("revisions/v%d-pod.yaml", n), c.pod(1))
		goldenClaim(t, fmt.Sprintf("revisions/v%d-claim.yaml", n), runnerpod.NewVolumeClaim(podInputOf(c.observed(), 1)))
		if l := c.observed().limits(); l.pending != 15*time.Minute || l.deadline != 24*time.Hour || l.task.CostMicroUSD != 2_500_000 || !l.task.Ask {
			t.Errorf("version %d: the limits are %+v", n, l)
		}
	}
}

// storedIn has an operator that cannot read the revision of the Run, because it is
// stored in another version.
func storedIn(version int) func(*cluster) {
	return func(c *cluster) {
		c.unsupported = &stored.UnsupportedError{What: "stored revision", Version: version, Oldest: 1, Newest: 1}
		c.revision, c.unread = nil, c.revision
	}
}

// upgraded has an operator that can read the revision.
func upgraded(c *cluster) { c.revision, c.unread, c.unsupported = c.unread, nil, nil }

// Pods outlive an upgrade of the operator too, with the task and the signals that it
// wrote and the termination message that its runner leaves. The files are never changed
// once the version of the contract in runner/task is released.
func TestReadsThePodsOfAnOlderOperator(t *testing.T) {
	read := map[string]func(text string) any{
		"task.json": func(text string) any {
			return runnerpod.TaskIn(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTask: text}}})
		},
		"signals.json": func(text string) any {
			return runnerpod.SignalsIn(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSignals: text}}})
		},
		"termination.json": func(text string) any {
			return runnerpod.DecodeTermination(&corev1.ContainerStateTerminated{Message: text})
		},
	}
	for n := 1; n <= task.Version; n++ {
		for name, as := range read {
			data, err := os.ReadFile(filepath.Join("testdata", "pods", fmt.Sprintf("v%d", n), name))
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(runnerpod.ToJSON(as(string(data))), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of version %d is not read as it was written. Take the change of package task back, or raise task.Version and convert (-written +read):\n%s", name, n, diff)
			}
		}
	}
}
