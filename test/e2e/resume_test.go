//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

const (
	// effects is how many effects a Run has that is killed again and again.
	effects = 20
	// kills is how often it is killed. The pauses between attempts grow each time.
	kills = 4
)

// Runs whose pods are killed at random, again and again, end as if nothing had
// been. Each effect happens once, or the model is told that this is not known;
// none happens twice. Half of them are in the cluster, half in files.
//
// E2E_SEED repeats what an earlier test did.
func TestEachEffectHappensOnceOrIsReportedUnderKills(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("E2E_SEED"), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatalf("reading E2E_SEED: %v", err)
	}
	t.Logf("E2E_SEED=%d repeats this", seed)
	names := []string{"amber", "beryl", "coral"}
	script := modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{}}
	for _, name := range names {
		script.Models[name] = modeltest.Dialogue{Turns: counting(name)}
	}
	if err := serve(t.Context(), p.name, script, nil); err != nil {
		t.Fatal(err)
	}
	p.create(counterTools())
	t.Run("runs", func(t *testing.T) {
		for n, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				(&testNamespace{t: t, name: p.name}).underKills(name, rand.New(rand.NewPCG(seed, uint64(n))))
			})
		}
	})
	p.awaitClaimsDeleted()
}

// underKills has one Run work while it is killed, and asks what came of it.
func (p *testNamespace) underKills(name string, dice *rand.Rand) {
	agent := agentOnVolume(name, v1alpha1.Tool{Builtin: v1alpha1.BuiltinShell}, v1alpha1.Tool{Toolset: "counter"})
	agent.Spec.Retention.Pod = "0s" // a claim goes with the last pod that used it
	agent.Spec.Retention.KeepVolume = v1alpha1.KeepVolumeNever
	p.create(modelOf(name, func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName + "/" + name }), agent)
	run := p.run(name, func(r *v1alpha1.Run) { r.Spec.MaxDisruptions = new(int32(20)) })
	killed := p.killAtRandom(run, dice)
	if killed < kills/2 {
		p.t.Errorf("it was killed %d times only", killed)
	}
	ended := p.ends(run, "True Finished")
	if int(ended.Status.Attempt.Number) == killed {
		killed-- // the last attempt had written its result when it was killed
	}
	if ended.Status.Failures != 0 || int(ended.Status.Disruptions) != killed || int(ended.Status.Attempt.Number) != killed+1 {
		p.t.Errorf("%d kills made %d attempts, %d disruptions and %d failures", killed, ended.Status.Attempt.Number, ended.Status.Disruptions, ended.Status.Failures)
	}
	if c := ended.Status.Progress.Counts; c.Steps != effects+2 {
		p.t.Errorf("there were %d turns, want %d", c.Steps, effects+2)
	}
	results := p.resultsByEffect(name)
	counts := p.countEffects(results["read"])
	for n := 1; n <= effects; n++ {
		id := effectID(name, n)
		done := strings.Contains(results[id], "HTTP 200") || strings.Contains(results[id], "exit code: 0")
		switch {
		case counts[id] > 1:
			p.t.Errorf("%s happened %d times", id, counts[id])
		case done && counts[id] != 1:
			p.t.Errorf("%s did not happen, and the model was told %s", id, results[id])
		case !done && !strings.Contains(results[id], "Interrupted"):
			p.t.Errorf("%s happened %d times, and the model was told %s", id, counts[id], results[id])
		case !done:
			p.t.Logf("%s happened %d times; the model was told %s", id, counts[id], results[id])
		}
	}
}

func effectID(run string, n int) string { return fmt.Sprintf("%s-%02d", run, n) }

// counting is a model that has one effect after the other, then reads its file.
func counting(run string) []modeltest.Turn {
	var list []modeltest.Turn
	for n := 1; n <= effects; n++ {
		next := call("counter__add", args{"id": effectID(run, n)})
		if n%2 == 0 {
			next = call("Shell", args{"command": "echo " + effectID(run, n) + " >>effects.txt; sleep 0.4"})
		}
		turn := does(next)
		turn.DelayMS = 30
		list = append(list, turn)
	}
	return append(list, does(call("Read", args{"path": "effects.txt"})), says("All done."))
}

// counterTools count an effect at the scripted server, which answers late.
func counterTools() *v1alpha1.Toolset {
	ts := &v1alpha1.Toolset{}
	ts.Name = "counter"
	ts.Spec.Requests = &v1alpha1.Requests{
		BaseURL: "http://" + modelsName,
		Tools: []v1alpha1.RequestTool{{
			Name: "add", Description: "Counts something.", Method: "POST", Path: "/count",
			Query: map[string]string{"id": "${{ input.id }}", "delayMS": "400"},
			Input: &v1alpha1.Input{Schema: &runtime.RawExtension{Raw: []byte(`{"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}`)}},
		}},
	}
	return ts
}

// agentOnVolume is an Agent of the Model of its name that outlives its pods.
func agentOnVolume(name string, tools ...v1alpha1.Tool) *v1alpha1.Agent {
	a := &v1alpha1.Agent{}
	a.Name = name
	a.Spec = v1alpha1.AgentSpec{
		Instructions: "Do what you are told.",
		Model:        name,
		Tools:        append([]v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}, tools...),
		Sandbox:      &v1alpha1.Sandbox{Image: imageOf("toolbox")},
		Workspace:    v1alpha1.Workspace{Durability: v1alpha1.DurabilityVolume},
	}
	return a
}

// killAtRandom kills the pods of a Run, each after some time and in some way,
// and returns how many.
func (p *testNamespace) killAtRandom(run *v1alpha1.Run, dice *rand.Rand) int {
	p.t.Helper()
	for n := 1; n <= kills; n++ {
		pause, way := time.Duration(dice.IntN(2500))*time.Millisecond, dice.IntN(3)
		pod := p.working(run, n)
		if pod == nil {
			return n - 1
		}
		select {
		case <-time.After(pause):
		case <-p.t.Context().Done():
		}
		if !p.end(pod, way) {
			return n - 1
		}
	}
	return kills
}

// working waits for the pod of an attempt to work; nil: there is none, for the
// Run has finished.
func (p *testNamespace) working(run *v1alpha1.Run, attempt int) *corev1.Pod {
	p.t.Helper()
	var pod *corev1.Pod
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		var seen v1alpha1.Run
		if err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(run), &seen); err != nil || finished(&seen) {
			return finished(&seen), err
		}
		if seen.Status.Attempt == nil || int(seen.Status.Attempt.Number) < attempt || seen.Status.Progress == nil || int(seen.Status.Progress.Attempt) < attempt {
			return false, nil
		}
		pod = &corev1.Pod{}
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: seen.Status.Attempt.Pod}, pod)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		p.t.Fatalf("attempt %d does not work: %v", attempt, err)
	}
	return pod
}

// end ends a pod, or its runner, in one of three ways. It says no when the pod
// had ended before.
func (p *testNamespace) end(pod *corev1.Pod, way int) bool {
	p.t.Helper()
	var seen corev1.Pod
	if err := cluster.admin.Get(p.t.Context(), client.ObjectKeyFromObject(pod), &seen); err != nil || seen.Status.Phase == corev1.PodSucceeded || seen.Status.Phase == corev1.PodFailed {
		return false
	}
	var err error
	switch way {
	case 0:
		if killFirst(pod.UID, "runner") {
			p.t.Logf("%s: its runner is killed", pod.Name)
			return true
		}
		fallthrough // the node is another machine
	case 1:
		p.t.Logf("%s is deleted by force", pod.Name)
		err = cluster.admin.Delete(p.t.Context(), pod, client.GracePeriodSeconds(0))
	default:
		p.t.Logf("%s is deleted", pod.Name)
		err = cluster.admin.Delete(p.t.Context(), pod)
	}
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatalf("deleting %s: %v", pod.Name, err)
	}
	return err == nil
}

// killFirst kills the first process of a container of a pod, by its program, where
// the node is this machine. Nothing is told of it, no more than of a crash.
func killFirst(uid types.UID, program string) bool {
	pid := firstOf(uid, program)
	return pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
}

// firstOf is the first process of a container of a pod, by its program; 0: there is
// none on this machine.
func firstOf(uid types.UID, program string) int {
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		data, err := os.ReadFile(file)
		is, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if err != nil || filepath.Base(is) != program || !bytes.Contains(bytes.ReplaceAll(data, []byte("_"), []byte("-")), []byte(uid)) {
			continue
		}
		if status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status")); err != nil || !firstInContainer.Match(status) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			return pid
		}
	}
	return 0
}

// firstInContainer matches the status of a process that is the first in its own PID
// namespace.
var firstInContainer = regexp.MustCompile(`(?m)^NSpid:.*\t1$`)

// resultsByEffect is what the model of a Run was told of each effect, and of its file, by
// its last request.
func (p *testNamespace) resultsByEffect(run string) map[string]string {
	p.t.Helper()
	requests := (&exampleFixture{testNamespace: p}).requestsWith("POST " + modelsName + "/" + run + "/")
	if len(requests) == 0 {
		p.t.Fatal("the model was not asked")
	}
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
			Calls   []struct {
				ID       string
				Function struct{ Arguments string }
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal([]byte(requests[len(requests)-1].Body), &body); err != nil {
		p.t.Fatalf("reading the last request: %v", err)
	}
	about, results := map[string]string{}, map[string]string{}
	for _, m := range body.Messages {
		for _, c := range m.Calls {
			about[c.ID] = "read"
			for n := 1; n <= effects; n++ {
				if id := effectID(run, n); strings.Contains(c.Function.Arguments, id) {
					about[c.ID] = id
				}
			}
		}
		if m.Role == "tool" {
			results[about[m.CallID]] = string(m.Content)
		}
	}
	return results
}

// written is an effect in a file.
var written = regexp.MustCompile(`[a-z]+-[0-9]{2}`)

// countEffects is how often each effect was had: by the count of the server, and by
// the lines of the file as it was read.
func (p *testNamespace) countEffects(file string) map[string]int {
	p.t.Helper()
	data, err := cluster.api.CoreV1().Services(p.name).ProxyGet("http", modelsName, "80", "/counts", nil).DoRaw(p.t.Context())
	if err != nil {
		p.t.Fatalf("asking for the counts: %v", err)
	}
	counts := map[string]int{}
	if err := json.Unmarshal(data, &counts); err != nil {
		p.t.Fatalf("reading the counts: %v", err)
	}
	for _, id := range written.FindAllString(file, -1) {
		counts[id]++
	}
	return counts
}

// awaitClaimsDeleted waits until the claims of a namespace are deleted.
func (p *testNamespace) awaitClaimsDeleted() {
	p.t.Helper()
	var claims corev1.PersistentVolumeClaimList
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.List(ctx, &claims, client.InNamespace(p.name))
		return len(claims.Items) == 0, err
	})
	if err != nil {
		p.t.Errorf("there are still %d claims: %v", len(claims.Items), err)
	}
}
