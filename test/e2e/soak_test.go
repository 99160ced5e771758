//go:build e2e && soak

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/test/soak"
)

// clusterKills is how much is killed without SOAK_KILLS.
const clusterKills = 100

// A Run on a volume ends as if nothing had been killed, and each of its effects happens once or
// is reported as interrupted. The server that counts effects is the only one that is not killed.
// Not parallel: the operators and the API server are killed.
func TestSoakCluster(t *testing.T) {
	s := soak.Start(t, "cluster", clusterKills)
	outside := newNamespace(t)
	if err := serve(t.Context(), outside.name, modeltest.Script{Key: key}, nil); err != nil {
		t.Fatal(err)
	}
	scaleOperator(t, 2)
	for {
		n, dice, more := s.Next()
		if !more {
			return
		}
		t.Run(fmt.Sprintf("run-%d", n), func(t *testing.T) {
			r := &soakRun{testNamespace: newNamespace(t), soak: s, number: n, dice: dice, outside: outside, script: fmt.Sprintf("soak-%d", n)}
			r.play()
		})
		if t.Failed() {
			return
		}
	}
}

// scaleOperator has so many operators run until the test ends.
func scaleOperator(t *testing.T, replicas int32) {
	t.Helper()
	var list appsv1.DeploymentList
	if err := cluster.admin.List(t.Context(), &list, client.MatchingLabels{"app.kubernetes.io/name": "deckhand"}); err != nil || len(list.Items) != 1 {
		t.Fatalf("finding the operator: %d Deployments: %v", len(list.Items), err)
	}
	d := &list.Items[0]
	scale := func(ctx context.Context, to int32) error {
		return cluster.admin.Patch(ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, to)))
	}
	was := *d.Spec.Replicas
	t.Cleanup(func() { _ = scale(context.WithoutCancel(t.Context()), was) })
	err := scale(t.Context(), replicas)
	if err == nil {
		err = until(t.Context(), func(ctx context.Context) (bool, error) {
			err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(d), d)
			return d.Status.ReadyReplicas == replicas, err
		})
	}
	if err != nil {
		t.Fatalf("scaling the operator to %d: %v", replicas, err)
	}
}

// A soakRun is one Run under kills, in a namespace of its own.
type soakRun struct {
	*testNamespace
	soak    *soak.Soak
	number  int
	dice    *rand.Rand
	outside *testNamespace // where effects are counted
	script  string         // the name of its Run, Agent and Model
	killed  int            // the last attempt whose pod was killed
}

// play has the Run work until it ends, and checks the invariants.
func (r *soakRun) play() {
	script := modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{r.script: {Turns: counted(r.script)}}}
	if err := serve(r.t.Context(), r.name, script, nil); err != nil {
		r.t.Fatal(err)
	}
	tools := counterTools()
	tools.Spec.Requests.BaseURL = "http://" + modelsName + "." + r.outside.name
	agent := agentOnVolume(r.script, v1alpha1.Tool{Toolset: "counter"})
	agent.Spec.Retention.Pod = "0s"
	agent.Spec.Retention.KeepVolume = v1alpha1.KeepVolumeNever
	r.create(tools, modelOf(r.script, func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName + "/" + r.script }), agent)
	run := r.run(r.script, func(run *v1alpha1.Run) {
		run.Spec.MaxDisruptions, run.Spec.MaxRetries = new(int32(20)), new(int32(10))
	})
	stop := r.observe(run)
	r.killAll(run)
	ended := r.awaitEnd(run)
	stop()
	if ended == nil {
		return
	}
	if got := succeeded(ended); !strings.HasPrefix(got, "True Finished:") {
		r.violated(soak.TerminalOnce, "it ended %s", got)
	}
	if steps := ended.Status.Progress.Counts.Steps; steps != soakEffects+1 {
		r.violated(soak.NothingRepeated, "there were %d turns, want %d", steps, soakEffects+1)
	}
	r.soak.Ended(r.checkEffects())
	r.checkDeletion(run)
}

func (r *soakRun) violated(i soak.Invariant, format string, args ...any) {
	r.soak.Violated(r.number, i, format, args...)
}

// soakEffects is how many effects a Run has.
const soakEffects = 12

// counted is a model that has one effect after the other.
func counted(run string) []modeltest.Turn {
	var list []modeltest.Turn
	for n := 1; n <= soakEffects; n++ {
		turn := does(call("counter__add", args{"id": effectID(run, n)}))
		turn.DelayMS = 30
		list = append(list, turn)
	}
	return append(list, says("All done."))
}

// killAll kills everything around the Run in a random order, until it has ended.
func (r *soakRun) killAll(run *v1alpha1.Run) {
	kills := []func(*v1alpha1.Run) bool{r.killAttempt, r.killAttempt, r.killAttempt, r.killOperator, r.killModels, r.killAPIServer}
	r.dice.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	for _, kill := range kills {
		select {
		case <-time.After(time.Duration(r.dice.IntN(2500)) * time.Millisecond):
		case <-r.t.Context().Done():
		}
		if !kill(run) {
			return
		}
	}
}

// killAttempt kills the runner or the pod of the current attempt; false: the Run has ended.
func (r *soakRun) killAttempt(run *v1alpha1.Run) bool {
	way := r.dice.IntN(3)
	pod := r.working(run, r.killed+1)
	if pod == nil || !r.end(pod, way) {
		return false
	}
	r.killed++
	r.soak.Killed([]string{"runner", "pod, by force", "pod, with a grace period"}[way])
	return true
}

// killOperator kills one of the operators.
func (r *soakRun) killOperator(*v1alpha1.Run) bool {
	return r.deleteOne("operator, of two", client.MatchingLabels{"app.kubernetes.io/name": "deckhand"})
}

// killModels kills the model server.
func (r *soakRun) killModels(*v1alpha1.Run) bool {
	return r.deleteOne("model server", client.InNamespace(r.name), client.MatchingLabels{"app": modelsName})
}

// deleteOne deletes one of some pods by force.
func (r *soakRun) deleteOne(what string, which ...client.ListOption) bool {
	r.t.Helper()
	choice := r.dice.IntN(100)
	err := until(r.t.Context(), func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := cluster.admin.List(ctx, &pods, which...); err != nil || len(pods.Items) == 0 {
			return false, err
		}
		pod := &pods.Items[choice%len(pods.Items)]
		err := cluster.admin.Delete(ctx, pod, client.GracePeriodSeconds(0))
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		r.t.Fatalf("killing the %s: %v", what, err)
	}
	r.soak.Killed(what)
	return true
}

// killAPIServer kills the process of the API server, where it is on this machine, and has
// bin/cluster start it again.
func (r *soakRun) killAPIServer(*v1alpha1.Run) bool {
	var record struct{ PID int }
	data, err := os.ReadFile(filepath.Join(os.Getenv("CLUSTER_DIR"), "pid", "kube-apiserver"))
	if err != nil || json.Unmarshal(data, &record) != nil {
		return true // another kind of cluster
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", record.PID))
	if err != nil || !bytes.Contains(line, []byte("kube-apiserver")) {
		r.t.Fatalf("process %d is not the API server: %v", record.PID, err)
	}
	process, err := os.FindProcess(record.PID)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		r.t.Fatalf("killing the API server: %v", err)
	}
	r.soak.Killed("API server")
	err = until(r.t.Context(), func(context.Context) (bool, error) { // otherwise it is taken for one that runs
		_, err := os.Stat(fmt.Sprintf("/proc/%d", record.PID))
		return os.IsNotExist(err), nil
	})
	if err != nil {
		r.t.Fatalf("the API server does not end: %v", err)
	}
	up := exec.CommandContext(r.t.Context(), filepath.Join("..", "..", "bin", "cluster"), "up")
	if out, err := up.CombinedOutput(); err != nil {
		r.t.Fatalf("starting the API server again: %v: %s", err, out)
	}
	return true
}

// awaitEnd waits until the Run has ended; nil: it has not.
func (r *soakRun) awaitEnd(run *v1alpha1.Run) *v1alpha1.Run {
	var seen v1alpha1.Run
	err := until(r.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(run), &seen)
		return err == nil && finished(&seen), err
	})
	if err != nil {
		r.violated(soak.Deadline, "it has not ended after %s: %s", waitTimeout, succeeded(&seen))
		return nil
	}
	return &seen
}

// checkEffects compares the counts of effects with what the model was told.
func (r *soakRun) checkEffects() map[string]int {
	counts, results := r.countsOutside(), r.results()
	became := map[string]int{}
	for n := 1; n <= soakEffects; n++ {
		id := effectID(r.script, n)
		result, known := results[id]
		isInterrupted := strings.Contains(result, "Interrupted")
		switch {
		case counts[id] == 1 && strings.Contains(result, "HTTP 200"):
			became["done and reported as done"]++
		case counts[id] == 1 && isInterrupted:
			became["done and reported as interrupted"]++
		case counts[id] == 0 && isInterrupted:
			became["not done and reported as interrupted"]++
		case counts[id] <= 1 && !known: // the model server was killed after the last request
			became["report not known"]++
		default:
			r.violated(soak.NothingRepeated, "%s happened %d times and is reported as %q", id, counts[id], result)
		}
	}
	return became
}

// countsOutside are the counts of the server that is not killed.
func (r *soakRun) countsOutside() map[string]int {
	r.t.Helper()
	counts := map[string]int{}
	data, err := cluster.api.CoreV1().Services(r.outside.name).ProxyGet("http", modelsName, "80", "/counts", nil).DoRaw(r.t.Context())
	if err == nil {
		err = json.Unmarshal(data, &counts)
	}
	if err != nil {
		r.t.Fatalf("asking for the counts: %v", err)
	}
	return counts
}

// results are what the model was told of each effect, by the last request.
func (r *soakRun) results() map[string]string {
	if len((&exampleFixture{testNamespace: r.testNamespace}).requestsWith("POST "+modelsName+"/"+r.script+"/")) == 0 {
		return nil
	}
	return r.resultsByEffect(r.script)
}
