//go:build e2e

package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// replaceTimeout is how long the liveness probe may take to end a runner.
const replaceTimeout = 5 * time.Minute

// A runner that hangs is ended by its liveness probe. That is charged to retries,
// and on a volume the next attempt goes on where it stood.
func TestARunnerThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("hanger", onVolume)
	run := p.run("hanger")
	p.await(run, "waits for its model", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls == 1
	})
	pod := p.pod(run, 1)
	probe := pod.Spec.Containers[0].LivenessProbe.Exec.Command
	if said, err := p.execIn(pod.Name, "runner", probe...); err != nil {
		t.Fatalf("the probe of a runner that works fails: %v: %s", err, said)
	}
	pid := firstOf(pod.UID, "runner")
	if pid == 0 {
		t.Skip("the node is another machine: its processes cannot be stopped from here")
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stopping the runner: %v", err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, replaceTimeout, true, func(ctx context.Context) (bool, error) {
		var seen v1alpha1.Run
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(run), &seen)
		return err == nil && seen.Status.Attempt.Number == 2, err
	})
	if err != nil {
		t.Fatalf("the runner is not replaced: %v", err)
	}
	seen := p.ends(run, "True Finished")
	if s := seen.Status; s.Failures != 1 || s.Disruptions != 0 || s.Attempt.Number != 2 || s.Progress.Counts.ToolCalls != 1 {
		t.Errorf("%d failures, %d disruptions, attempt %d, %d tool calls", s.Failures, s.Disruptions, s.Attempt.Number, s.Progress.Counts.ToolCalls)
	}
	var first corev1.Pod
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &first); err != nil {
		t.Fatal(err)
	}
	if end := first.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 137 || !strings.Contains(end.Message, "did not respond") {
		t.Errorf("the runner ended with %+v", end)
	}
}
