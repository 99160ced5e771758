//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// kills are how often a leader is killed.
const kills = 10

// TestFailover measures how long there is no leader after the leader was killed
// (SIGKILL), for operators that are processes of this machine: once with another that
// waits, as after the loss of a cluster node, and once with one that starts again in
// the same pod, as after a crash.
func TestFailover(t *testing.T) {
	program, err := filepath.Abs(fallback("BENCH_MANAGER", "../../bin/manager"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%s is not built: run make build", program)
	}
	r := connect(t)
	r.printFailovers("BenchmarkFailover/another-pod %d %.0f median-ms %.0f max-ms", r.failovers(program, func(n int) string { return fmt.Sprintf("pod%d", n) }, true))
	r.printFailovers("BenchmarkFailover/same-pod %d %.0f median-ms %.0f max-ms", r.failovers(program, func(int) string { return "pod" }, false))
}

func (r *fixture) printFailovers(format string, took []time.Duration) {
	slices.Sort(took)
	fmt.Printf("killed → another leads: %v\n", rounded(took))
	r.printOf(len(took), format, ms(took[len(took)/2]), ms(took[len(took)-1]))
}

// failovers kills the leader again and again. The next operator runs before the kill if
// it is a standby, and starts after it otherwise.
func (r *fixture) failovers(program string, pod func(n int) string, standby bool) []time.Duration {
	r.t.Helper()
	var took []time.Duration
	leader, identity := r.manager(program, pod(0)), ""
	for n := 1; n <= kills; n++ {
		identity = r.leads(pod(n-1), identity)
		var next *exec.Cmd
		if standby {
			next = r.manager(program, pod(n))
			<-time.After(3 * time.Second) // it has read the lease
		}
		killed := time.Now()
		if err := leader.Process.Kill(); err != nil {
			r.t.Fatal(err)
		}
		_ = leader.Wait() // it was killed
		if !standby {
			next = r.manager(program, pod(n))
		}
		r.leads(pod(n), identity)
		took = append(took, time.Since(killed))
		leader = next
	}
	_ = leader.Process.Kill()
	_ = leader.Wait()
	return took
}

// manager starts an operator of the namespace. It ends with the test.
func (r *fixture) manager(program, pod string) *exec.Cmd {
	r.t.Helper()
	c := exec.CommandContext(r.t.Context(), program, "--runner-image=none", "--watch-namespaces="+r.namespace, "--operator-namespace="+r.namespace,
		"--leader-elect", "--pod-name="+pod, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// leads waits until a process of a pod, other than the one before, holds the lease.
func (r *fixture) leads(pod, before string) string {
	r.t.Helper()
	holder := ""
	err := wait.PollUntilContextTimeout(r.t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var lease coordinationv1.Lease
		err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "deckhand." + v1alpha1.GroupVersion.Group}, &lease)
		if err == nil && lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		return strings.HasPrefix(holder, pod+"_") && holder != before, client.IgnoreNotFound(err)
	})
	if err != nil {
		r.t.Fatalf("no operator takes over from %q: %v", before, err)
	}
	return holder
}
