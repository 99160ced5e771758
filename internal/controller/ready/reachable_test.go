package ready

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A reporter is a Run that a runner works on.
func reporter(name string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
		r.Name, r.UID, r.CreationTimestamp = name, "", *after(-time.Hour)
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1}
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: 1, Model: "sonnet"}
	}}, mods...)...)
}

func after(d time.Duration) *metav1.Time { return &metav1.Time{Time: gen.Noon.Add(d)} }

// waitsSince is a Run that waits for a Model.
func waitsSince(d time.Duration, model, cause string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Status.Progress.State = v1alpha1.ReasonWaitingForModel
		r.Status.Progress.ModelWait = &v1alpha1.ModelWait{Model: model, Since: *after(d), NextTryAt: after(d + time.Minute), Message: cause}
	}
}

// wasAnswered is a Run that its Model answered last at a time.
func wasAnswered(d time.Duration, model string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Status.Progress.Model, r.Status.Progress.AnsweredAt = model, after(d) }
}

// hasEnded is a Run that has ended with a reason.
func hasEnded(reason string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Status.CompletionTime = after(time.Hour)
		r.Status.Progress.Result = &v1alpha1.Result{Committed: true, Reason: reason}
	}
}

// wasReachable is a Model with an earlier condition.
func wasReachable(status metav1.ConditionStatus, since time.Duration) func(*v1alpha1.Model) {
	return func(m *v1alpha1.Model) {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReachable, Status: status, Reason: "Earlier", Message: "It was so", LastTransitionTime: *after(since)}}
	}
}

func TestReachable(t *testing.T) {
	const minute, loading = time.Minute, "HTTP 503: Loading model"
	reachable, unreachable := wasReachable(metav1.ConditionTrue, -minute), wasReachable(metav1.ConditionFalse, minute)
	cases := map[string]struct {
		had  func(*v1alpha1.Model)
		runs []client.Object
		want string
	}{
		"no Run has asked it": {nil, nil, "Unknown NotAsked: No Run has asked the Model"},
		"a Run has not been answered yet": {
			nil, []client.Object{reporter("a")}, "Unknown NotAsked: No Run has asked the Model",
		},
		"a Run was answered": {
			nil, []client.Object{reporter("a", wasAnswered(0, "sonnet"))}, "True Answered: The Model answered a Run",
		},
		"a Run was answered and has ended": {
			nil, []client.Object{reporter("a", wasAnswered(0, "sonnet"), hasEnded(v1alpha1.ReasonFinished))}, "True Answered: The Model answered a Run",
		},
		"another Model answered": {
			nil, []client.Object{reporter("a", wasAnswered(0, "other"))}, "Unknown NotAsked: No Run has asked the Model",
		},
		"a Run waits": {
			reachable,
			[]client.Object{reporter("a", wasAnswered(-minute, "sonnet"), waitsSince(0, "sonnet", loading+"."))},
			"False Unavailable: 1 Run waits for the Model since 2030-01-01 12:00:00 UTC: " + loading,
		},
		"several Runs wait, the first for something else": {
			nil,
			[]client.Object{reporter("b", waitsSince(minute, "sonnet", "connection refused")), reporter("a", waitsSince(0, "sonnet", loading))},
			"False Unavailable: 2 Runs wait for the Model since 2030-01-01 12:00:00 UTC: " + loading,
		},
		"a Run waits and another was answered before": {
			reachable,
			[]client.Object{reporter("a", waitsSince(0, "sonnet", loading)), reporter("b", wasAnswered(-minute, "sonnet"))},
			"False Unavailable: 1 Run waits for the Model since 2030-01-01 12:00:00 UTC: " + loading,
		},
		"a Run waits and another was answered since": {
			unreachable,
			[]client.Object{reporter("a", waitsSince(0, "sonnet", loading)), reporter("b", wasAnswered(minute, "sonnet"))},
			"True Answered: The Model answered a Run",
		},
		"the last Run that waited was answered": {
			unreachable, []client.Object{reporter("a", wasAnswered(2*minute, "sonnet"))}, "True Answered: The Model answered a Run",
		},
		"the last Run that waited was stopped, and had been answered before": {
			unreachable,
			[]client.Object{reporter("a", wasAnswered(-minute, "sonnet"), hasEnded(v1alpha1.ReasonStopped), waitsSince(0, "sonnet", loading))},
			"False Unavailable: No Run waits for the Model any more, and none was answered",
		},
		"a Run gave up": {
			unreachable,
			[]client.Object{reporter("a", waitsSince(0, "sonnet", loading), hasEnded(v1alpha1.ReasonModelUnavailable))},
			"False Unavailable: Runs gave up waiting for the Model, which was unavailable since 2030-01-01 12:00:00 UTC: " + loading,
		},
		"a Run gave up, and another was answered": {
			unreachable,
			[]client.Object{reporter("a", waitsSince(0, "sonnet", loading), hasEnded(v1alpha1.ReasonModelUnavailable)), reporter("b", wasAnswered(2*minute, "sonnet"))},
			"True Answered: The Model answered a Run",
		},
		"the Runs are deleted": {reachable, nil, "True Earlier: It was so"},
		"a Run waits for another Model": {
			reachable, []client.Object{reporter("a", waitsSince(0, "other", loading))}, "True Earlier: It was so",
		},
		"a Run waits for the last fallback": {
			reachable,
			[]client.Object{reporter("a", waitsSince(0, "gpt", loading))},
			"False Unavailable: 1 Run waits for the Model since 2030-01-01 12:00:00 UTC: " + loading,
		},
		"a Run whose Agent has another Model waits for that fallback": {
			reachable, []client.Object{reporter("a", startedWith("stranger"), waitsSince(0, "gpt", loading))}, "True Earlier: It was so",
		},
		"a Run whose Agent does not use the Model says that it waits for it": {
			reachable, []client.Object{reporter("a", startedWith("stranger"), waitsSince(0, "sonnet", "pay at evil.example"))}, "True Earlier: It was so",
		},
		"a Run whose revision is gone waits for that fallback": {
			reachable, []client.Object{reporter("a", startedWith("forgotten"), waitsSince(0, "gpt", loading))}, "True Earlier: It was so",
		},
		"a Run whose revision is gone was answered": {
			nil, []client.Object{reporter("a", startedWith("forgotten"), wasAnswered(0, "sonnet"), hasEnded(v1alpha1.ReasonFinished))}, "True Answered: The Model answered a Run",
		},
		"a Run says that it waits since before it was created": {
			reachable, []client.Object{reporter("a", waitsSince(-2*time.Hour, "sonnet", loading))}, "True Earlier: It was so",
		},
		"a Run says that it waits since a time to come": {
			reachable, []client.Object{reporter("a", waitsSince(2*time.Hour, "sonnet", loading))}, "True Earlier: It was so",
		},
		"a Run says that it will be answered, and another waits": {
			reachable,
			[]client.Object{reporter("a", waitsSince(0, "sonnet", loading)), reporter("b", wasAnswered(24*time.Hour, "sonnet"))},
			"False Unavailable: 1 Run waits for the Model since 2030-01-01 12:00:00 UTC: " + loading,
		},
		"a node whose clock is ahead": {
			unreachable, []client.Object{reporter("a", wasAnswered(time.Hour+minute, "sonnet"))}, "True Answered: The Model answered a Run",
		},
		"the cause is one line": {
			nil,
			[]client.Object{reporter("a", waitsSince(0, "sonnet", "down\nReady \u202e"))},
			`False Unavailable: 1 Run waits for the Model since 2030-01-01 12:00:00 UTC: down Ready \u202e`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			model := sonnetWithFallback()
			if tc.had != nil {
				tc.had(model)
			}
			c := cluster(t, append(withRevisions(t, tc.runs), gen.Model(func(m *v1alpha1.Model) { m.Name = "gpt" }), gen.Model(func(m *v1alpha1.Model) { m.Name = "other" }))...)
			refs, err := readModel(t.Context(), c, model)
			if err != nil {
				t.Fatal(err)
			}
			now := gen.Noon.Add(time.Hour)
			got := checkModel(model, refs, now).more[0]
			if diff := cmp.Diff(tc.want, string(got.Status)+" "+got.Reason+": "+got.Message); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if p := models.decide(state[*v1alpha1.Model, modelRefs]{exists: true, object: model, refs: refs, now: now}); (p.wake > 0) != (got.Status == metav1.ConditionFalse) {
				t.Errorf("%s: reconciled again after %s", got.Status, p.wake)
			}
		})
	}
}

func sonnetWithFallback() *v1alpha1.Model {
	return gen.Model(func(m *v1alpha1.Model) { m.Spec.Fallbacks = []v1alpha1.ObjectName{"gpt"} })
}

// startedWith is a Run of another Agent.
func startedWith(agent string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.Agent = agent }
}

// withRevisions adds the revisions of the Agents fixer, whose Model is sonnet, and stranger, whose
// Model is gpt, to Runs that started with them.
func withRevisions(t *testing.T, runs []client.Object) []client.Object {
	t.Helper()
	objects := gen.Objects(sonnetWithFallback(), gen.Model(func(m *v1alpha1.Model) { m.Name = "gpt" }), gen.Model(func(m *v1alpha1.Model) { m.Name = "other" }))
	all := runs
	for agent, model := range map[string]string{"fixer": "sonnet", "stranger": "gpt"} {
		v, err := snapshot.Of(gen.Agent(func(a *v1alpha1.Agent) {
			a.Name, a.Spec.Model = agent, model
			if agent == "fixer" {
				a.Spec.Routes = nil
			}
		}), objects)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v.ConfigMap(gen.Namespace))
		for _, o := range runs {
			if run := o.(*v1alpha1.Run); run.Spec.Agent == agent {
				run.Status.Attempt.AgentRevision = v.Hash
			}
		}
	}
	return all
}

// An outage that ten Runs see is one event of the Model, and its end another.
func TestAnOutageIsOneEvent(t *testing.T) {
	var runs []client.Object
	for name := range strings.SplitSeq("abcdefghij", "") {
		runs = append(runs, reporter(name, wasAnswered(-time.Minute, "sonnet")))
	}
	c := cluster(t, withRevisions(t, runs)...)
	recorder := events.NewFakeRecorder(100)
	now := gen.Noon
	r := newReconciler(models, environment{c, recorder, func() time.Time { return now }})
	reconcileOnce := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: gen.Namespace, Name: "sonnet"}}); err != nil {
			t.Fatal(err)
		}
	}
	report := func(name string, change func(*v1alpha1.Run)) {
		t.Helper()
		var run v1alpha1.Run
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: name}, &run); err != nil {
			t.Fatal(err)
		}
		change(&run)
		if err := c.Update(t.Context(), &run); err != nil {
			t.Fatal(err)
		}
		reconcileOnce()
	}
	reconcileOnce()
	for _, o := range runs {
		report(o.GetName(), waitsSince(0, "sonnet", "connection refused"))
	}
	for _, o := range runs {
		now = now.Add(time.Minute)
		report(o.GetName(), func(run *v1alpha1.Run) {
			wasAnswered(now.Sub(gen.Noon), "sonnet")(run)
			run.Status.Progress.State, run.Status.Progress.ModelWait = "", nil
		})
	}
	close(recorder.Events)
	var got []string
	for e := range recorder.Events {
		got = append(got, e)
	}
	want := []string{
		"Warning Unavailable 1 Run waits for the Model since 2030-01-01 12:00:00 UTC: connection refused",
		"Normal Answered The Model answers again",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var model v1alpha1.Model
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "sonnet"}, &model); err != nil || !meta.IsStatusConditionTrue(model.Status.Conditions, v1alpha1.ConditionReachable) || !meta.IsStatusConditionTrue(model.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("the conditions are %+v (%v)", model.Status.Conditions, err)
	}
}

// Reports of a Run reconcile a Model only if they say something else about it.
func TestWhichReportsReconcileAModel(t *testing.T) {
	waiting := reporter("a", waitsSince(0, "gpt", "connection refused"))
	cases := map[string]struct {
		was, is *v1alpha1.Run
		want    bool
	}{
		"it begins to wait":                  {reporter("a"), waiting, true},
		"it tries again":                     {waiting, reporter("a", waitsSince(0, "gpt", "HTTP 503")), false},
		"it waits for another Model":         {waiting, reporter("a", waitsSince(0, "sonnet", "HTTP 503")), true},
		"it was answered":                    {waiting, reporter("a", wasAnswered(0, "gpt")), true},
		"it was answered for the first time": {reporter("a"), reporter("a", wasAnswered(0, "gpt")), true},
		"it was answered once more":          {reporter("a", wasAnswered(0, "gpt")), reporter("a", wasAnswered(time.Minute, "gpt")), false},
		"another Model answers":              {reporter("a", wasAnswered(0, "gpt")), reporter("a", wasAnswered(0, "sonnet")), true},
		"it gives up":                        {waiting, reporter("a", waitsSince(0, "gpt", ""), hasEnded(v1alpha1.ReasonModelUnavailable)), true},
		"it was stopped while it waited":     {waiting, reporter("a", waitsSince(0, "gpt", ""), hasEnded(v1alpha1.ReasonStopped)), true},
		"it ends without having waited":      {reporter("a", wasAnswered(0, "gpt")), reporter("a", wasAnswered(0, "gpt"), hasEnded(v1alpha1.ReasonFinished)), false},
		"it ends, because its model is gone": {reporter("a"), reporter("a", hasEnded(v1alpha1.ReasonModelUnavailable)), false},
		"it works, and nothing asks a Model": {reporter("a"), reporter("a", func(r *v1alpha1.Run) { r.Status.Progress.Counts.ToolCalls = 9 }), false},
	}
	for name, tc := range cases {
		if got := modelReported.Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if modelReported.Delete(event.DeleteEvent{Object: reporter("a", wasAnswered(0, "gpt"))}) || !modelReported.Delete(event.DeleteEvent{Object: waiting}) {
		t.Error("a Run is deleted: only one that waited is let through")
	}
	c := cluster(t, gen.Model(func(m *v1alpha1.Model) { m.Name, m.Spec.Fallbacks = "front", []v1alpha1.ObjectName{"gpt"} }))
	got, err := modelsReportedBy(t.Context(), c, reporter("a", wasAnswered(0, "sonnet"), waitsSince(0, "gpt", "")))
	if diff := cmp.Diff([]string{"sonnet", "front", "gpt"}, got); diff != "" || err != nil {
		t.Errorf("Models -want +got:\n%s%v", diff, err)
	}
}

// A thousand Runs that report at once reconcile their Model once.
func TestReportsAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		w := watch{&v1alpha1.Run{}, func(context.Context, client.Reader, client.Object) ([]string, error) { return []string{"sonnet"}, nil }, modelReported, reportDelay}
		h := w.handler(nil)
		for range 1000 {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: reporter("a"), ObjectNew: reporter("a")}, q)
		}
		synctest.Wait()
		if q.Len() != 0 {
			t.Fatalf("%d requests at once", q.Len())
		}
		time.Sleep(reportDelay) // of the fake clock
		synctest.Wait()
		if q.Len() != 1 {
			t.Errorf("%d requests, want 1", q.Len())
		}
	})
}
