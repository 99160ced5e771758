//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// An agent works on files and says what it did; status tells it all.
func TestAgentDoesItsWork(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("writer")
	run := p.ends(p.run("writer"), "True Finished")
	progress := run.Status.Progress
	if !strings.Contains(progress.Result.Text, "goodbye") {
		t.Errorf("the answer is %q", progress.Result.Text)
	}
	if len(progress.Result.Files) != 1 || progress.Result.Files[0].Path != "/workspace/notes/a.txt" || progress.Result.Files[0].Size != 8 {
		t.Errorf("files are %+v", progress.Result.Files)
	}
	if c := progress.Counts; c.Steps != 4 || c.ModelCalls != 4 || c.ToolCalls != 3 || c.Errors != 0 {
		t.Errorf("counts are %+v", c)
	}
	if u := progress.Usage; u.TotalTokens == 0 || u.Cost == "" || u.CostMicroUSD == nil {
		t.Errorf("usage is %+v", u)
	}
	if run.Status.Attempt.Number != 1 || run.Status.Failures+run.Status.Disruptions != 0 {
		t.Errorf("status is %+v", run.Status)
	}
	p.eventOf(run, "Finished")
}

// eventOf waits for an event of a Run.
func (p *testNamespace) eventOf(run *v1alpha1.Run, reason string) {
	p.t.Helper()
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		var list corev1.EventList
		if err := cluster.admin.List(ctx, &list, client.InNamespace(p.name)); err != nil {
			return false, err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.UID == run.UID && e.Reason == reason {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		p.t.Errorf("no event %s: %v", reason, err)
	}
}

func TestPodLostBeforeAnyEffectIsReplaced(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("reader")
	run := p.run("reader")
	p.await(run, "reports", func(r *v1alpha1.Run) bool { return r.Status.Progress != nil })
	p.killPod(p.pod(run, 1))
	seen := p.ends(run, "True Finished")
	if seen.Status.Attempt.Number != 2 || seen.Status.Disruptions != 1 || seen.Status.Failures != 0 {
		t.Errorf("attempt %+v, %d disruptions, %d failures", seen.Status.Attempt, seen.Status.Disruptions, seen.Status.Failures)
	}
}

func TestPodLostAfterAnEffectEndsTheRun(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("changer")
	run := p.run("changer")
	p.await(run, "begins to change things", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Effects == v1alpha1.EffectsBegun
	})
	p.killPod(p.pod(run, 1))
	seen := p.ends(run, "False PodLost")
	if seen.Status.Attempt.Number != 1 {
		t.Errorf("attempt %d was started", seen.Status.Attempt.Number)
	}
}

func TestARunningRunIsStopped(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("endless", func(a *v1alpha1.Agent) { steps := int32(10000); a.Spec.Limits.Steps = &steps })
	run := p.run("endless")
	p.await(run, "reports", func(r *v1alpha1.Run) bool { return r.Status.Progress != nil })
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Stopped"}}`))
	if err := cluster.admin.Patch(t.Context(), run.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
	seen := p.ends(run, "False Stopped")
	if r := seen.Status.Progress.Result; r == nil || !r.Committed {
		t.Errorf("the runner did not stop by itself: %+v", r)
	}
}

func TestLimitsStopTheRun(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("endless", func(a *v1alpha1.Agent) { steps := int32(10000); a.Spec.Limits.Steps = &steps })
	steps, tokens, cost, duration := int32(3), v1alpha1.Tokens("3k"), v1alpha1.Money("0.01USD"), v1alpha1.Duration("2s")
	for name, tc := range map[string]struct {
		limits v1alpha1.Limits
		want   string
	}{
		"steps":    {v1alpha1.Limits{Steps: &steps}, "False StepLimit"},
		"tokens":   {v1alpha1.Limits{Tokens: &tokens}, "False TokenLimit"},
		"cost":     {v1alpha1.Limits{Cost: &cost}, "False CostLimit"},
		"duration": {v1alpha1.Limits{Duration: &duration}, "False DurationLimit"},
	} {
		t.Run(name, func(t *testing.T) {
			run := p.run("endless", func(r *v1alpha1.Run) { r.Name, r.Spec.Limits = name, &tc.limits })
			seen := p.ends(run, tc.want)
			if message(seen) == "" {
				t.Error("nothing is said about it")
			}
		})
	}
}

func TestBadCallsAreTheModelsToRead(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("clumsy")
	seen := p.ends(p.run("clumsy"), "True Finished")
	if c := seen.Status.Progress.Counts; c.Errors < 3 {
		t.Errorf("counts are %+v", c)
	}
	log := p.log(t.Context(), "clumsy-1")
	for _, secret := range []string{key, "eyJhbGciOi"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(log, "Unknown tool name: 'Teleport'") {
		t.Errorf("the model was not told that there is no such tool:\n%s", log)
	}
}

func TestFlakyModelIsTriedAgain(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("flaky")
	seen := p.ends(p.run("flaky"), "True Finished")
	if seen.Status.Progress.Result.Text != "Done at last." || seen.Status.Failures != 0 {
		t.Errorf("result is %+v", seen.Status.Progress.Result)
	}
}

func TestAnHTMLAnswerIsAMisconfiguredModel(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("web-page")
	seen := p.ends(p.run("web-page"), "False Misconfigured")
	if !strings.Contains(message(seen), "text/html") || !strings.Contains(message(seen), "endpoint") {
		t.Errorf("the message is %q", message(seen))
	}
}

// A key that the model repeats reaches no status, event or log.
func TestKeyIsRedacted(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("parrot")
	seen := p.ends(p.run("parrot"), "True Finished")
	status, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: p.name, Name: "parrot-1"}, &pod); err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"the Run": string(status), "the log": p.log(t.Context(), pod.Name), "the pod": string(whole)} {
		if strings.Contains(text, key) {
			t.Errorf("%s holds the key", where)
		}
	}
	if !strings.Contains(seen.Status.Progress.Result.Text, "‹secret:key/api-key›") {
		t.Errorf("the answer is %q", seen.Status.Progress.Result.Text)
	}
}

func TestMissingKeyIsNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	secret := &corev1.Secret{}
	if err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: p.name, Name: "key"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{"another-key": []byte(key)}
	if err := cluster.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.agent("trivial")
	run := p.run("trivial")
	seen := p.await(run, "says what is missing", func(r *v1alpha1.Run) bool { return strings.Contains(succeeded(r), "SecretMissing") })
	if !strings.Contains(message(seen), "Secret key has no key api-key in namespace "+p.name) {
		t.Errorf("the message is %q", message(seen))
	}
	secret.Data["api-key"] = []byte(key)
	if err := cluster.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	seen = p.ends(run, "True Finished")
	if seen.Status.Failures+seen.Status.Disruptions != 0 {
		t.Errorf("it was charged: %d failures, %d disruptions", seen.Status.Failures, seen.Status.Disruptions)
	}
}

func TestTypedAnswer(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("typed", func(a *v1alpha1.Agent) {
		a.Spec.Output = &v1alpha1.Output{Schema: runtime.RawExtension{Raw: []byte(`{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"}}}`)}}
	})
	seen := p.ends(p.run("typed"), "True Finished")
	if got := seen.Status.Progress.Result.Output; got != `{"answer":7}` {
		t.Errorf("output is %s", got)
	}
}

func TestAgentRejectsTheWork(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("decliner")
	seen := p.ends(p.run("decliner"), "False Rejected")
	if !strings.Contains(message(seen), "not for me") {
		t.Errorf("the message is %q", message(seen))
	}
}

func TestInvalidImage(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("trivial", func(a *v1alpha1.Agent) { a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "Not/An:Image!"} })
	p.await(p.run("trivial"), "waits for its Agent", func(r *v1alpha1.Run) bool { return strings.Contains(succeeded(r), "is not an image name") })
}

func TestUnschedulablePod(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("trivial", func(a *v1alpha1.Agent) {
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{NodeSelector: map[string]string{"no": "such-node"}}
	})
	waits := p.run("trivial", func(r *v1alpha1.Run) { r.Name = "waits" })
	pending := v1alpha1.Duration("5s")
	run := p.run("trivial", func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Pending: &pending} })
	p.await(waits, "is unschedulable", func(r *v1alpha1.Run) bool { return strings.Contains(succeeded(r), "Unschedulable") })
	p.ends(run, "False PendingTimeout")
}

// Deleting a Run leaves nothing of it.
func TestDeletedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("changer")
	run := p.run("changer")
	p.pod(run, 1)
	if err := cluster.admin.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	err := until(t.Context(), func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := cluster.admin.List(ctx, &pods, client.InNamespace(p.name)); err != nil {
			return false, err
		}
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(run), &v1alpha1.Run{})
		return apierrors.IsNotFound(err) && len(pods.Items) == 0, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("something stays: %v", err)
	}
}
