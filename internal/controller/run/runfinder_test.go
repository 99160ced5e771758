package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// server returns an API server with these objects, and the index of Runs that wait for their Agent.
func server(t *testing.T, objects ...client.Object) *apierrtest.Server {
	t.Helper()
	return apierrtest.NewServer(t, objects, func(b *fake.ClientBuilder) { b.WithIndex(&v1alpha1.Run{}, byAgent, unstartedByAgent) })
}

// woken returns the sorted names of requests.
func woken(requests []reconcile.Request) string {
	var out []string
	for _, r := range requests {
		out = append(out, r.Namespace+"/"+r.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// An object that changes wakes the Runs that wait for an Agent that uses it, and no others.
func TestWhoWaitsForAnObject(t *testing.T) {
	run := func(name, agent string, mods ...func(*v1alpha1.Run)) client.Object {
		return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) { r.Name, r.Spec.Agent = name, agent }}, mods...)...)
	}
	agent := func(name, model string, tools ...v1alpha1.Tool) client.Object {
		return gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Model, a.Spec.Tools = name, model, tools })
	}
	c := server(t,
		agent("fixer", "sonnet", v1alpha1.Tool{Toolset: "issues"}), agent("lead", "large", v1alpha1.Tool{Agent: "fixer"}), agent("alone", "small"),
		gen.Model(), gen.Model(func(m *v1alpha1.Model) { m.Name = "large" }), gen.Model(func(m *v1alpha1.Model) { m.Name = "small" }),
		run("fix", "fixer"), run("led", "lead"), run("other", "alone"),
		run("started", "fixer", func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} }),
		run("finished", "fixer", func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }),
		run("elsewhere", "fixer", func(r *v1alpha1.Run) { r.Namespace = "team-b" }),
	)
	f, meta := runFinder{c}, func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: gen.Namespace, Name: name} }
	for what, tc := range map[string]struct {
		got  []reconcile.Request
		want string
	}{
		"an Agent":                       {f.waitingForAgent(t.Context(), &v1alpha1.Agent{ObjectMeta: meta("fixer")}), "team-a/fix team-a/led"},
		"an Agent that calls another":    {f.waitingForAgent(t.Context(), &v1alpha1.Agent{ObjectMeta: meta("lead")}), "team-a/led"},
		"a Model":                        {f.waitingForModel(t.Context(), &v1alpha1.Model{ObjectMeta: meta("small")}), "team-a/other"},
		"a Model of an Agent in between": {f.waitingForModel(t.Context(), &v1alpha1.Model{ObjectMeta: meta("sonnet")}), "team-a/fix team-a/led"},
		"a Toolset":                      {f.waitingForToolset(t.Context(), &v1alpha1.Toolset{ObjectMeta: meta("issues")}), "team-a/fix team-a/led"},
		"an object that no Agent uses":   {f.waitingForToolset(t.Context(), &v1alpha1.Toolset{ObjectMeta: meta("wiki")}), ""},
		"a Decision":                     {runOfDecision(t.Context(), &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: "team-c"}, Spec: v1alpha1.DecisionSpec{Run: "y"}}), "team-c/y"},
		"an object that is no Decision":  {runOfDecision(t.Context(), gen.Run()), ""},
	} {
		if got := woken(tc.got); got != tc.want {
			t.Errorf("%s wakes %q, want %q", what, got, tc.want)
		}
	}
}

// A Run that ends wakes its child Runs whose TTL begins then.
func TestWhichChildrenARunWakes(t *testing.T) {
	child := func(name, label, parent string, mods ...func(*v1alpha1.Run)) client.Object {
		return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
			r.Name, r.Labels = name, map[string]string{label: parent}
			r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = new(int32), &metav1.Time{Time: gen.Noon}
		}}, mods...)...)
	}
	c := server(t,
		child("of-an-agent", v1alpha1.LabelParentRun, "x"), child("of-a-workflow", v1alpha1.LabelWorkflowRun, "x"), child("of-another", v1alpha1.LabelParentRun, "y"),
		child("active", v1alpha1.LabelParentRun, "x", func(r *v1alpha1.Run) { r.Status.CompletionTime = nil }),
		child("kept", v1alpha1.LabelParentRun, "x", func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = nil }),
		child("elsewhere", v1alpha1.LabelParentRun, "x", func(r *v1alpha1.Run) { r.Namespace = "team-b" }),
	)
	if got := woken(runFinder{c}.childrenOf(t.Context(), gen.Run())); got != "team-a/of-a-workflow team-a/of-an-agent" {
		t.Errorf("these are woken: %s", got)
	}
}

// Which events of Runs wake the controller.
func TestWhichRunsAreWatched(t *testing.T) {
	plain, ofWorkflow := gen.Run(), gen.Run(func(r *v1alpha1.Run) { r.Spec.Workflow = "release" })
	child := gen.Run(func(r *v1alpha1.Run) { r.Labels = map[string]string{v1alpha1.LabelParentRun: "lead"} })
	ended := gen.Run(func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} })
	stopped := gen.Run(func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped })
	reported := gen.Run(func(r *v1alpha1.Run) { r.Status.Progress = &v1alpha1.RunProgress{Sequence: 2} })
	waits := gen.Run(func(r *v1alpha1.Run) { r.Status.Conditions[1].Reason = v1alpha1.ReasonAwaitingAnswer })
	created := func(o client.Object) event.CreateEvent { return event.CreateEvent{Object: o} }
	deleted := func(o client.Object) event.DeleteEvent { return event.DeleteEvent{Object: o} }
	became := func(o client.Object) event.UpdateEvent { return event.UpdateEvent{ObjectOld: gen.Run(), ObjectNew: o} }
	for what, tc := range map[string]struct{ got, want bool }{
		"the Run of an Agent is reconciled":             {ofAgents.Create(created(plain)), true},
		"the Run of a Workflow is not":                  {ofAgents.Create(created(ofWorkflow)), false},
		"another object is not":                         {ofAgents.Create(created(gen.Agent())), false},
		"a child Run wakes its parent":                  {isAgentChild.Create(created(child)), true},
		"a Run without a parent wakes none":             {isAgentChild.Create(created(plain)), false},
		"a Run that is gone is not reconciled":          {runChanged.Delete(deleted(plain)), false},
		"a child that ends wakes":                       {childChanged.Update(became(ended)), true},
		"a child that is stopped wakes":                 {childChanged.Update(became(stopped)), true},
		"a child that waits for a user wakes":           {childChanged.Update(became(waits)), true},
		"a child that works wakes not":                  {childChanged.Update(became(reported)), false},
		"an object that is no Run is no child":          {childChanged.Update(became(gen.Agent())), false},
		"the end of a Run wakes its children":           {runFinished.Update(became(ended)), true},
		"what else becomes of it does not":              {runFinished.Update(became(stopped)), false},
		"nor a change after its end":                    {runFinished.Update(event.UpdateEvent{ObjectOld: ended, ObjectNew: ended}), false},
		"a Run that is created has no finished child":   {runFinished.Create(created(ended)), false},
		"a Run that is deleted takes its children away": {runFinished.Delete(deleted(ended)), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t", what, tc.got)
		}
	}
}

// observed returns the revisions that a cache and an API server have.
func observed(t *testing.T, cached, live []client.Object) revisions {
	t.Helper()
	return revisions{server(t, cached...), server(t, live...)}
}

// A Run continues with the revision that it started with, whatever became of its Agent.
func TestRevisionOfARun(t *testing.T) {
	objects := func(instructions string) []client.Object {
		return []client.Object{gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = instructions }), gen.Model()}
	}
	revisionOf := func(instructions string) *snapshot.Revision {
		v, why, err := observed(t, objects(instructions), nil).current(t.Context(), gen.Run())
		if v == nil || err != nil {
			t.Fatalf("there is no revision: %s, %v", why, err)
		}
		return v
	}
	now, before := revisionOf("You fix it."), revisionOf("You break it.")
	stored := func(v *snapshot.Revision) client.Object { return v.ConfigMap(gen.Namespace) }
	damaged := before.ConfigMap(gen.Namespace)
	damaged.Data[snapshot.RunnerKey] += " "
	started := func(v *snapshot.Revision, number int32, podUID string) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) {
			r.Status.Attempt = &v1alpha1.Attempt{Number: number, PodUID: podUID, AgentRevision: v.Hash}
		}
	}
	chosen := func(r *v1alpha1.Run) {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(func(r *v1alpha1.Run) { r.UID = types.UID("lead") }), v1alpha1.GroupVersion.WithKind("Run"))}
		r.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: before.Hash}
	}
	nothing := func(*v1alpha1.Run) {}
	deleted := "The revision of Agent fixer that this Run started with was deleted (ConfigMap " + snapshot.Name(before.Hash) + "). Create a new Run"
	for name, tc := range map[string]struct {
		cached, live []client.Object
		run          func(*v1alpha1.Run)
		want         *snapshot.Revision
		why          string
	}{
		"before it starts, the current one":           {objects("You fix it."), nil, nothing, now, ""},
		"the one that it started with":                {append(objects("You fix it."), stored(before)), nil, started(before, 2, "p"), before, ""},
		"one that only the API server has":            {objects("You fix it."), []client.Object{stored(before)}, started(before, 2, "p"), before, ""},
		"it was deleted, and is the current one":      {objects("You fix it."), nil, started(now, 2, "p"), now, ""},
		"it was never stored, and no pod was created": {objects("You fix it."), nil, started(before, 1, ""), now, ""},
		"it was deleted after a pod was created":      {objects("You fix it."), nil, started(before, 1, "p"), nil, deleted},
		"it was deleted before another attempt":       {objects("You fix it."), nil, started(before, 2, ""), nil, deleted},
		"it was changed":                              {append(objects("You fix it."), damaged), nil, started(before, 2, "p"), nil, deleted},
		"it was deleted, and so was the Agent":        {nil, nil, started(before, 1, ""), nil, deleted},
		"the one that its parent chose":               {append(objects("You fix it."), stored(before)), nil, chosen, before, ""},
		"the chosen one was deleted":                  {objects("You fix it."), nil, chosen, nil, "The revision of Agent fixer that this Run was created for was deleted (ConfigMap " + snapshot.Name(before.Hash)},
		"there is no Agent":                           {nil, nil, nothing, nil, `Agent "fixer" not found in namespace team-a; create it`},
		"its Agent is not ready":                      {objects("You fix it.")[:1], nil, nothing, nil, `Agent "fixer" is not ready: `},
	} {
		t.Run(name, func(t *testing.T) {
			v, why, err := observed(t, tc.cached, tc.live).of(t.Context(), gen.Run(tc.run))
			got, want := "", ""
			if v != nil {
				got = v.Hash
			}
			if tc.want != nil {
				want = tc.want.Hash
			}
			if err != nil || got != want || !strings.HasPrefix(why, tc.why) || (why == "") != (tc.why == "") {
				t.Errorf("revision %q, %q, %v; want %q, %q", got, why, err, want, tc.why)
			}
		})
	}
}

// The revision of a pod is that of its ConfigMap: a ConfigMap of a user says nothing.
func TestRevisionOfAPod(t *testing.T) {
	objects := []client.Object{gen.Agent(), gen.Model()}
	current, _, err := observed(t, objects, nil).current(t.Context(), gen.Run())
	if err != nil {
		t.Fatal(err)
	}
	before := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "You break it." })
	other, err := snapshot.Of(before, gen.Objects())
	if err != nil {
		t.Fatal(err)
	}
	long, named := other.ConfigMap(gen.Namespace), other.ConfigMap(gen.Namespace)
	long.Annotations[v1alpha1.AnnotationRevisionHash] += "0"
	named.Name = "mine"
	absent := snapshot.Name(other.Hash)
	for name, tc := range map[string]struct {
		cached []client.Object
		name   string
		want   string
	}{
		"its ConfigMap exists":                  {[]client.Object{other.ConfigMap(gen.Namespace)}, absent, other.Hash},
		"its ConfigMap was deleted":             {objects, absent, current.Hash},
		"it has none":                           {objects, "", current.Hash},
		"it has none, and there is no Agent":    {nil, "", ""},
		"it has a ConfigMap of a user":          {append([]client.Object{named}, objects...), "mine", current.Hash},
		"the hash is too long to be one":        {append([]client.Object{long}, objects...), absent, current.Hash},
		"its ConfigMap is in another namespace": {append([]client.Object{other.ConfigMap("team-b")}, objects...), absent, current.Hash},
	} {
		t.Run(name, func(t *testing.T) {
			var cached []client.Object
			for _, o := range tc.cached {
				cached = append(cached, o.DeepCopyObject().(client.Object))
			}
			got, err := observed(t, cached, nil).hashOf(t.Context(), gen.Run(), tc.name)
			if err != nil || got != tc.want {
				t.Errorf("revision %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// Since when a runner waits for a child Run.
func TestRequestedAt(t *testing.T) {
	asked := metav1.NewTime(gen.Noon.Add(-time.Minute))
	s := state{now: gen.Noon, run: gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1}
		r.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, Pending: []v1alpha1.PendingRequest{{ID: "s1c1"}, {ID: "s1c2", AskedAt: &asked}}}
	})}
	for request, want := range map[string]time.Time{"s1c2": asked.Time, "s1c1": gen.Noon, "s9c9": gen.Noon} {
		if got := requestedAt(s, request); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	if got := requestedAt(state{now: gen.Noon, run: gen.Run()}, "s1c2"); !got.Equal(gen.Noon) {
		t.Errorf("without a report: %s", got)
	}
}
