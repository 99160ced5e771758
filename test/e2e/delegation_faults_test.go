//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// A parent that only waits for child Runs has no pod, for as long as it takes. Its
// child asks a person itself, and is answered itself.
func TestAWaitingParentHasNoPod(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead":  turns(does(delegatesTo("hand", "count-1"), delegatesTo("pilot", "ask")), says("They say: {{.LastToolResult}}")),
		"hand":  hand,
		"pilot": turns(does(call("Ask", args{"question": "Which pier?"})), says("{{.LastToolResult}}")),
	})
	s.delegatingAgent("captain", "lead", []string{"hand", "asker"}, onVolume, func(a *v1alpha1.Agent) { a.Spec.Tools[len(a.Spec.Tools)-1].Name = "pilot" })
	s.delegatingAgent("asker", "pilot", nil, onVolume, func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinAsk}} })
	run := s.run("captain")
	leaves := func(ctx context.Context) (bool, error) {
		pods, err := s.alive(ctx)
		return len(pods) == 0 && s.asks("captain-s2c2"), err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*waitTimeout, true, leaves); err != nil {
		t.Fatalf("the runners do not leave: %v", err)
	}
	waits := s.await(run, "waits", func(r *v1alpha1.Run) bool {
		return strings.HasPrefix(succeeded(r), "Unknown AwaitingChild") && len(r.Status.Progress.Pending) == 1
	})
	s.has("the message", message(waits), "Waiting for Run captain-s2c2 of Agent asker (AwaitingAnswer)")
	s.create(s.replies("captain", "s2c2"), s.replies("captain-s2c2", "s2c1"))
	s.applied("captain.s2c2", metav1.ConditionFalse) // it asks no person
	ended := s.settles(run, "True Finished")
	s.has("the answer", ended.Status.Progress.Result.Text, "The third.")
	results := s.resultsByCall("lead")
	s.has("what it heard", results["count-1"]+results["ask"], "count-1", "The third.")
	if a := ended.Status; a.Attempt.Number != 2 || a.Failures+a.Disruptions != 0 || a.Progress.Usage.DurationSeconds > 60 {
		t.Errorf("attempt %d, %d failures, %d disruptions, %d s", a.Attempt.Number, a.Failures, a.Disruptions, a.Progress.Usage.DurationSeconds)
	}
	s.applied("captain-s2c2.s2c1", metav1.ConditionTrue)
	s.checkEffectsOnce("count-1")
}

// asks says whether a Run waits for an answer.
func (s *exampleFixture) asks(name string) bool {
	return strings.HasPrefix(succeeded(s.seen(name)), "Unknown AwaitingAnswer")
}

// replies is a Decision that answers.
func (s *exampleFixture) replies(run, request string) *v1alpha1.Decision {
	return &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: run + "." + request},
		Spec:       v1alpha1.DecisionSpec{Run: run, Request: request, Type: v1alpha1.DecisionAnswer, Value: "The third.", By: s.whoami()},
	}
}

// A parent that loses its pod goes on with the child Run that there is, where its
// journal stays; else it ends, and so does its child.
func TestAParentLosesItsPodWhileItWaits(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(does(delegatesTo("watch", "Look around."), delegatesTo("hand", "count-1")), says("It is: {{.LastToolResult}}")),
		"poor": turns(does(delegatesTo("long", "Sail on."), delegatesTo("hand", "count-2")), says("It is: {{.LastToolResult}}")),
		"hand": hand, "watch": looksAround(120), "long": looksAround(voyage),
	})
	s.delegatingAgent("kept", "lead", []string{"watch", "hand"}, onVolume)
	s.delegatingAgent("lost", "poor", []string{"long", "hand"})
	loses := func(name string) *v1alpha1.Run { // one after the other: the first child works for a limited time
		run := s.run(name)
		s.awaitRunner(name + "-s2c1")
		s.ends(s.awaitRunner(name+"-s2c2"), "True Finished")
		s.killPod(s.pod(run, 1))
		return run
	}
	kept, lost := loses("kept"), loses("lost")
	s.settles(lost, "False PodLost")
	s.ends(s.named("lost-s2c1"), "False Stopped")
	ended := s.settles(kept, "True Finished")
	if ended.Status.Attempt.Number != 2 || ended.Status.Disruptions != 1 || len(s.childrenByPrompt("kept")) != 2 {
		t.Errorf("attempt %d, %d disruptions, %d child Runs", ended.Status.Attempt.Number, ended.Status.Disruptions, len(s.childrenByPrompt("kept")))
	}
	results := s.resultsByCall("lead")
	s.has("what it heard", results["Look around."]+results["count-1"], "All quiet.", "count-1")
	child := s.ends(s.named("kept-s2c1"), "True Finished")
	if child.Status.Attempt.Number != 1 {
		t.Errorf("its child began %d times", child.Status.Attempt.Number)
	}
	s.checkEffectsOnce("count-1", "count-2")
}

// The operator may be killed between any two steps: each delegation has one child Run, which
// does its work once. Not parallel: other tests need an operator.
func TestEachDelegationOnceWhileOperatorsAreKilled(t *testing.T) {
	var calls []modeltest.Call
	for _, id := range numberedNames("count", 1, 6) {
		calls = append(calls, delegatesTo("hand", id))
	}
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(does(calls[:3]...), does(calls[3:]...), says("All counted.")), "hand": hand,
	})
	s.delegatingAgent("captain", "lead", []string{"hand"}, onVolume)
	run := s.run("captain")
	for n := range 3 {
		s.killOperators()
		select {
		case <-time.After(time.Duration(n) * 900 * time.Millisecond): // another point each time
		case <-t.Context().Done():
		}
	}
	ended := s.settles(run, "True Finished")
	if children := s.childrenByPrompt("captain"); len(children) != 6 || ended.Status.Attempt.Number != 1 {
		t.Errorf("there are %d child Runs, and %d attempts", len(children), ended.Status.Attempt.Number)
	}
	s.checkEffectsOnce(numberedNames("count", 1, 6)...)
}

// startChildren is a parent that waits for a child that waits for a child that works.
func (s *exampleFixture) startChildren() *v1alpha1.Run {
	s.delegatingAgent("captain", "lead", []string{"mate"})
	s.delegatingAgent("mate", "second", []string{"watch"})
	run := s.run("captain")
	s.awaitRunner("captain-s2c1-s2c1")
	return run
}

func nestedModels(work modeltest.Dialogue) map[string]modeltest.Dialogue {
	return map[string]modeltest.Dialogue{
		"lead":   turns(does(delegatesTo("mate", "See to it.")), says("{{.LastToolResult}}")),
		"second": turns(does(delegatesTo("watch", "Look around.")), says("{{.LastToolResult}}")),
		"watch":  work,
	}
}

var nestedRunNames = []string{"captain", "captain-s2c1", "captain-s2c1-s2c1"}

// A pause reaches children of children, and so does its end.
func TestAPauseReachesChildRuns(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, nestedModels(looksAround(100)))
	run := s.startChildren()
	s.setDesiredState(run, v1alpha1.DesiredPaused)
	for _, name := range nestedRunNames {
		s.await(s.named(name), "is paused", func(r *v1alpha1.Run) bool { return strings.HasPrefix(succeeded(r), "Unknown Paused") })
	}
	s.setDesiredState(run, v1alpha1.DesiredRunning)
	s.has("the answer", s.settles(run, "True Finished").Status.Progress.Result.Text, "All quiet.")
	for _, name := range nestedRunNames {
		if done := s.ends(s.named(name), "True Finished"); done.Status.Attempt.Number != 1 {
			t.Errorf("Run %s has %d attempts", name, done.Status.Attempt.Number)
		}
	}
}

// When a parent is stopped, reaches its deadline or is deleted, its child Runs and their
// children end, too.
func TestTheEndOfAParentStopsItsChildRuns(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, nestedModels(looksAround(voyage)))
	run := s.startChildren()
	late := s.run("captain", func(r *v1alpha1.Run) { // its deadline leaves three pods the time to start
		r.Name, r.Spec.Limits = "late", &v1alpha1.Limits{Deadline: new(v1alpha1.Duration("90s"))}
	})
	s.awaitRunner("late-s2c1-s2c1")
	s.setDesiredState(run, v1alpha1.DesiredStopped)
	for _, name := range nestedRunNames {
		s.ends(s.named(name), "False Stopped")
	}
	again := s.run("captain", func(r *v1alpha1.Run) { r.Name = "again" })
	s.awaitRunner("again-s2c1-s2c1")
	s.ends(late, "False DeadlineExceeded")
	s.ends(s.named("late-s2c1"), "False Stopped")
	s.ends(s.named("late-s2c1-s2c1"), "False Stopped")
	for _, r := range []*v1alpha1.Run{again, run, late} {
		if err := cluster.admin.Delete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitNoRuns()
}

// An agent in the pod that has used its duration leaves no child Run at work, and what that used
// counts.
func TestTheChildRunOfACancelledCallIsStopped(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead":   turns(does(delegatesTo("mate", "Set sail.")), says("{{.LastToolResult}}")),
		"second": turns(does(delegatesTo("watch", "Look around."), delegatesTo("long", "Sail on."))),
		"watch":  looksAround(voyage), "long": looksAround(voyage),
	})
	s.delegatingAgent("mate", "second", []string{"long"}, func(a *v1alpha1.Agent) {
		a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: "watch"})
		a.Spec.Limits.Duration = new(v1alpha1.Duration("20s"))
	})
	s.delegatingAgent("captain", "lead", nil, func(a *v1alpha1.Agent) { a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: "mate"}) })
	run := s.settles(s.run("captain"), "True Finished")
	s.has("what the captain reads of its mate", run.Status.Progress.Result.Text, "DurationLimit")
	child := s.ends(s.named("captain-s2c1-s2c2"), "False Stopped")
	used, whole := child.Status.Progress.Usage.TotalTokens, run.Status.Progress.Usage
	if whole.ChildTokens == nil || *whole.ChildTokens != used || used == 0 || whole.TotalTokens < used {
		t.Errorf("the child Run used %d, the Run %d, of which %v by child Runs", used, whole.TotalTokens, whole.ChildTokens)
	}
}

// A namespace that may not hold more Runs keeps a parent waiting, which says so.
func TestARunQuotaHoldsChildRunsBack(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(does(delegatesTo("hand", "count-1"), delegatesTo("hand", "count-2")), says("Done.")), "hand": hand,
	})
	s.delegatingAgent("captain", "lead", []string{"hand"})
	quota := s.quota("count/runs.deckhand.dev", "2")
	run := s.run("captain")
	seen := s.await(run, "meets the quota", func(r *v1alpha1.Run) bool { return strings.HasPrefix(succeeded(r), "Unknown QuotaExceeded") })
	s.has("the message", message(seen), "ResourceQuota has no room for a child Run. Raise it")
	more := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"count/runs.deckhand.dev":"3"}}}`))
	if err := cluster.admin.Patch(t.Context(), quota, more); err != nil {
		t.Fatal(err)
	}
	s.settles(run, "True Finished")
	s.checkEffectsOnce("count-1", "count-2")
}

// seen is a Run as it is.
func (s *exampleFixture) seen(name string) *v1alpha1.Run {
	run := s.named(name)
	_ = cluster.admin.Get(s.t.Context(), client.ObjectKeyFromObject(run), run) // absent: without a condition
	return run
}
