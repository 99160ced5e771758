package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var (
	errCrash      = errors.New("the operator was killed here")
	errQuotaMoved = errors.New("the object has been modified; please apply your changes to the latest version and try again")
)

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The whole way of a Run, each writer with its own rights.
func TestRunIsDone(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	pod := b.onlyPod()
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
		t.Fatalf("the runner's first report: %v", err)
	}
	b.now = b.now.Add(5 * time.Second)
	b.reconcileUntilStable()
	b.expect("Unknown Running")
	if err := b.report(pod, task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonFinished, Text: "done"}}); err != nil {
		t.Fatalf("the runner's commit: %v", err)
	}
	b.reconcileUntilStable()
	b.expect("True Finished")
	run := b.get()
	if run.Status.Target.Name != "fixer" || run.Status.Progress.Result.Text != "done" || run.Status.CompletionTime == nil {
		t.Errorf("status is %+v", run.Status)
	}
	b.now = b.now.Add(61 * time.Minute)
	b.endRunner(b.onlyPod(), 0, "")
	b.reconcileUntilStable()
	if n := len(b.pods()); n != 0 {
		t.Errorf("%d pods stay after their retention", n)
	}
}

func TestOperatorDiesBetweenReservationAndCreate(t *testing.T) {
	b := newFixture(t)
	b.update(gen.Durable)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if a := b.get().Status.Attempt; a == nil || a.Number != 1 || a.PodUID != "" {
		t.Fatalf("attempt is %+v, want a claim", a)
	}
	b.reconcileUntilStable() // another operator
	if a := b.get().Status.Attempt; a.Number != 1 || a.PodUID != string(b.onlyPod().UID) {
		t.Errorf("attempt is %+v", a)
	}
}

func TestOperatorDiesBetweenCreateAndRecord(t *testing.T) {
	b := newFixture(t)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	failOnce(b, errCrash)
	if err := b.reconcile(); !errors.Is(err, errCrash) {
		t.Fatalf("reconciling: %v", err)
	}
	b.reconcileUntilStable()
	if a := b.get().Status.Attempt; a.Number != 1 || a.PodUID != string(b.onlyPod().UID) {
		t.Errorf("attempt is %+v; the pod that was made is not adopted", a)
	}
}

// Between claim and pod the Agent may change and its old version go: nothing
// was done yet, so the new one is as good.
func TestVersionThatGoesBeforeThePodIsReplaced(t *testing.T) {
	b := newFixture(t)
	b.update(gen.Durable)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	claimed := b.get().Status.Attempt.AgentRevision
	b.update(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do it otherwise." })
	if err := b.Admin.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(b.namespace), client.HasLabels{v1alpha1.LabelRevision}); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.onlyPod()
	if now := b.get().Status.Attempt.AgentRevision; now == claimed {
		t.Error("the old version is run")
	}
}

func TestTwoOperatorsMakeOnePod(t *testing.T) {
	for name, agent := range map[string]func(*v1alpha1.Agent){"reserved": gen.Durable, "not reserved": func(*v1alpha1.Agent) {}} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.update(agent)
			for range 2 {
				b.reconcileTwice()
				if a := b.get().Status.Attempt; a != nil && a.Number != 1 {
					t.Errorf("attempt is %+v", a)
				}
			}
			if a := b.get().Status.Attempt; a.PodUID != string(b.onlyPod().UID) {
				t.Errorf("attempt is %+v", a)
			}
		})
	}
}

// reconcileTwice has two operators reconcile the same copy of the Run.
func (b *fixture) reconcileTwice() {
	b.t.Helper()
	for _, c := range []*v1alpha1.Run{b.get(), b.get()} {
		if err := b.reconcileCopy(c); err != nil && !apierr.IsConflict(err) {
			b.t.Fatal(err)
		}
	}
}

// eventually reconciles until something holds: the API server's own caches are
// what it waits for.
func (b *fixture) eventually(holds func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			b.t.Fatal("it never holds")
		}
	}
}

// A runner pod is welcome where restricted Pod Security is enforced.
func TestPodIsRestricted(t *testing.T) {
	b := newFixture(t)
	var ns corev1.Namespace
	if err := b.Admin.Get(t.Context(), client.ObjectKey{Name: b.namespace}, &ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := b.Admin.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

func TestServerFaultsSayNothingAboutTheRun(t *testing.T) {
	b := newFixture(t)
	b.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, is := o.(*corev1.Pod); is {
			return errCrash
		}
		return c.Create(ctx, o, opts...)
	}
	if err := b.reconcile(); !errors.Is(err, errCrash) {
		t.Fatalf("reconciling: %v", err)
	}
	b.expect("Unknown Starting")
	b.faults.Create = nil
	b.reconcileUntilStable()
	b.onlyPod()
}

func TestMissingAgentIsWaitedForAndNamed(t *testing.T) {
	b := newFixture(t, func(r *v1alpha1.Run) { r.Spec.Agent = "nobody" })
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	if !strings.Contains(message(b.get()), `Agent "nobody" not found`) {
		t.Errorf("message is %q", message(b.get()))
	}
	b.now = b.now.Add(11 * time.Minute)
	b.reconcileUntilStable()
	b.expect("False PendingTimeout")
}

func TestNoRunnerWithoutPolicies(t *testing.T) {
	b := newFixture(t)
	b.missingPolicies = "ValidatingAdmissionPolicy deckhand-runner-status"
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	const want = "No runner is started while the cluster does not have ValidatingAdmissionPolicy deckhand-runner-status. Install the chart of Deckhand again, or apply config/default"
	if got := message(b.get()); got != want || len(b.pods()) > 0 {
		t.Errorf("there are %d pods, and the message is %q, want %q", len(b.pods()), got, want)
	}
	b.missingPolicies = "ValidatingAdmissionPolicyBinding deckhand-run-spec"
	b.reconcileUntilStable()
	if got := message(b.get()); !strings.Contains(got, b.missingPolicies) {
		t.Errorf("the message is %q, want %s in it", got, b.missingPolicies)
	}
	b.missingPolicies = ""
	b.reconcileUntilStable()
	b.onlyPod()
}

// An operator that has just started knows of no policy: it starts no runner, and does not say that one
// is missing.
func TestRunWaitsSilentlyForTheFirstCheckOfPolicies(t *testing.T) {
	b := newFixture(t)
	b.unchecked = true
	again, err := b.reconciler().Reconcile(t.Context(), b.get())
	if err != nil || again.RequeueAfter != time.Second {
		t.Errorf("the operator looks again after %s (%v), want 1s", again.RequeueAfter, err)
	}
	b.expect("Unknown Pending")
	if got := message(b.get()); got != "Waiting for the operator" || len(b.pods()) > 0 || len(b.recordedEvents()) > 0 {
		t.Errorf("there are %d pods, the message is %q, and events are %q", len(b.pods()), got, b.recordedEvents())
	}
	b.unchecked = false
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

// The Agent may change or go: every attempt of a Run runs the same version.
func TestEveryAttemptRunsTheSameAgent(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	first := b.onlyPod()
	var agent v1alpha1.Agent
	if err := b.Admin.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "fixer"}, &agent); err != nil {
		t.Fatal(err)
	}
	if err := b.Admin.Delete(t.Context(), &agent); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if err := b.Admin.Delete(t.Context(), first, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	second := b.onlyPod()
	if second.Name != "x-2" || volume(t, second) != volume(t, first) {
		t.Errorf("pod %s has version %s, want that of the first, %s", second.Name, volume(t, second), volume(t, first))
	}
	if d := b.get().Status.Disruptions; d != 1 {
		t.Errorf("disruptions is %d, want 1", d)
	}
}

// volume is the ConfigMap of a pod's task.
func volume(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	for _, v := range pod.Spec.Volumes {
		if v.Name == "task" {
			return v.Projected.Sources[1].ConfigMap.Name
		}
	}
	t.Fatal("the pod has no task")
	return ""
}

// A report that lands while the operator gives a pod up wins.
func TestGivingUpLosesToAReport(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	b.startRunner(pod)
	stale := b.get()
	if err := b.report(pod, task.Progress{Attempt: 1, Effects: task.EffectsBegun}); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if err := b.Admin.Delete(t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcileCopy(stale); !apierr.IsConflict(err) {
		t.Errorf("the next attempt was taken on an old copy: %v", err)
	}
	b.reconcileUntilStable()
	b.expect("False PodLost")
}

func TestStopIsASignalOnThePod(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	run := b.get()
	run.Spec.DesiredState = v1alpha1.DesiredStopped
	if err := b.Admin.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Stopping")
	var signals task.Signals
	if err := json.Unmarshal([]byte(b.onlyPod().Annotations[v1alpha1.AnnotationSignals]), &signals); err != nil || !signals.Stop {
		t.Errorf("signals are %+v (%v)", signals, err)
	}
	b.now = b.now.Add(31 * time.Second)
	b.reconcileUntilStable()
	b.expect("False Stopped")
	for _, p := range b.pods() {
		if p.DeletionTimestamp == nil {
			t.Errorf("pod %s goes on", p.Name)
		}
	}
}

// Writes of the operator until a trivial Run is final: its pod and the end, and for a Run that takes
// longer that it is at work. What is shared, and made once, does not count.
func TestTrivialRunCostsFewWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		want  int
	}{"a second": {time.Second, 2}, "a minute": {time.Minute, 3}} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.reconcileUntilStable() // makes what is shared
			b.run = b.newNamed("y")
			writes := 0
			b.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				writes++
				return c.Create(ctx, o, opts...)
			}
			b.faults.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				writes++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			}
			r := b.reconciler()
			reconcile := func() {
				if _, err := r.Reconcile(t.Context(), b.get()); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			pod := b.podOf("y-1")
			b.startRunner(pod)
			reconcile()
			for left := tc.takes; left > 0; left -= time.Second {
				b.now = b.now.Add(time.Second)
				if left == tc.takes-time.Second {
					b.mustReport(pod, task.Progress{Attempt: 1})
				}
				reconcile()
			}
			b.mustReport(pod, task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}})
			reconcile()
			reconcile()
			b.expect("True Finished")
			if writes != tc.want {
				t.Errorf("the operator wrote %d times, want %d", writes, tc.want)
			}
		})
	}
}

func (b *fixture) newNamed(name string) *v1alpha1.Run {
	b.t.Helper()
	return b.newRun(func(r *v1alpha1.Run) { r.Name = name })
}

// A reference in the syntax of another tool reaches the model as text: an event says so
// once, and the Run works. The prompt of a child Run was evaluated, so it is data.
func TestAPromptInTheSyntaxOfAnotherToolIsReported(t *testing.T) {
	const want = "Warning ReferenceNotReplaced spec.prompt: line 2, column 8: $(params.file) is sent to the model as text; write ${{ input.file }}"
	yes := true
	for name, tc := range map[string]struct {
		mod  func(*v1alpha1.Run)
		want []string
	}{
		"another tool's": {func(r *v1alpha1.Run) { r.Spec.Prompt = "Dear agent,\nReview $(params.file)." }, []string{want}},
		"none":           {func(r *v1alpha1.Run) { r.Spec.Prompt = "Run $(ls)." }, nil},
		"of a child Run": {func(r *v1alpha1.Run) {
			r.Spec.Prompt = "Dear agent,\nReview $(params.file)."
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "parent", UID: "u", Controller: &yes}}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, tc.mod)
			b.reconcileUntilStable()
			b.reconcileUntilStable()
			b.onlyPod()
			if diff := cmp.Diff(tc.want, b.recordedEvents()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
