package workflowrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// on returns a Reconciler on a cache and an API server that have these objects.
func on(t *testing.T, cached, live []client.Object) *Reconciler {
	t.Helper()
	index := func(b *fake.ClientBuilder) {
		b.WithIndex(&v1alpha1.Run{}, byWorkflow, unbegunByWorkflow).WithIndex(&v1alpha1.Run{}, continuing.UnfinishedBySource, continuing.IndexUnfinishedBySource)
	}
	return New(apierrtest.NewServer(t, cached, index), apierrtest.NewServer(t, live), nil, Options{Guard: allPoliciesInstalled{}, Now: func() time.Time { return gen.Noon }})
}

// childAt returns a child Run of the Run x, at a place.
func childAt(name, node, index string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
		r.Name, r.UID = name, types.UID("uid-"+name)
		r.Labels = map[string]string{v1alpha1.LabelWorkflowRun: "x", v1alpha1.LabelWorkflowNode: node}
		if index != "" {
			r.Labels[v1alpha1.LabelItemIndex] = index
		}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(), v1alpha1.GroupVersion.WithKind("Run"))}
	}}, mods...)...)
}

// strange makes a child Run none of the Run x.
var strange = map[string]func(*v1alpha1.Run){
	"another Run of the name owns it": func(r *v1alpha1.Run) { r.OwnerReferences[0].UID = "another" },
	"its owner does not control it":   func(r *v1alpha1.Run) { r.OwnerReferences[0].Controller = nil },
	"a backup tool created it":        func(r *v1alpha1.Run) { r.Labels["velero.io/restore-name"] = "nightly" },
	"it is of another workflow's Run": func(r *v1alpha1.Run) { r.Labels[v1alpha1.LabelWorkflowRun] = "y" },
	"it is in another namespace":      func(r *v1alpha1.Run) { r.Namespace = "team-b" },
}

func TestChildrenAreObservedInTheOrderOfTheirPlaces(t *testing.T) {
	cached := []client.Object{childAt("x-b", "b", ""), childAt("x-a-10", "a", "10"), childAt("a-spare-name", "a", "2"), childAt("x-a-2", "a", "2")}
	for name, change := range strange {
		cached = append(cached, childAt("x-"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""), "a", "1", change))
	}
	all, err := on(t, cached, nil).observeChildren(t.Context(), gen.Run())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, c.Name)
	}
	if want := []string{"a-spare-name", "x-a-2", "x-a-10", "x-b"}; !slices.Equal(got, want) {
		t.Errorf("children %q, want %q", got, want)
	}
}

// A child that the cache does not show is created a second time, unless the API server is asked.
func TestIsCacheBehind(t *testing.T) {
	started := whole(t, "nodes:\n- {name: a, agent: worker, prompt: go}\n")
	run := gen.Run(ofWorkflow, func(r *v1alpha1.Run) {
		r.Status.Nodes = []v1alpha1.NodeStatus{{Name: "a", State: v1alpha1.NodeRunning, Counts: &v1alpha1.NodeCounts{Total: 1, Started: 1}}}
	})
	child := childAt("x-a", "a", "")
	type row struct {
		shown []*v1alpha1.Run
		live  []client.Object
		want  bool
	}
	cases := map[string]row{
		"the cache shows it":              {[]*v1alpha1.Run{child}, []client.Object{childAt("x-a", "a", ""), childAt("x-b", "b", "")}, false},
		"only the API server has it":      {nil, []client.Object{childAt("x-a", "a", "")}, true},
		"it is deleted":                   {nil, nil, false},
		"one is deleted, another is late": {[]*v1alpha1.Run{childAt("x-b", "b", "")}, []client.Object{childAt("x-b", "b", ""), childAt("x-c", "c", "")}, true},
		"one is deleted, another is shown": {
			[]*v1alpha1.Run{childAt("x-b", "b", "")}, []client.Object{childAt("x-b", "b", "")}, false,
		},
	}
	for name, change := range strange {
		cases[name] = row{nil, []client.Object{childAt("x-a", "a", "", change)}, false}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			behind, err := on(t, nil, tc.live).isCacheBehind(t.Context(), state{run: run, revision: started, children: tc.shown})
			if err != nil || behind != tc.want {
				t.Errorf("the cache is behind: %t, %v; want %t", behind, err, tc.want)
			}
		})
	}
}

// claimOf returns a claim of the Run x.
func claimOf(name string, mods ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{v1alpha1.LabelRun: "x"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(), v1alpha1.GroupVersion.WithKind("Run"))},
	}}
	for _, mod := range mods {
		mod(c)
	}
	return c
}

func TestVolumesOfARun(t *testing.T) {
	pod := func(name, claim string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelVolumeClaim: claim}},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	cached := []client.Object{
		claimOf("a"), claimOf("b"), claimOf("c"),
		claimOf("of-another", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences[0].UID = "another" }),
		claimOf("unowned", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }),
		claimOf("elsewhere", func(c *corev1.PersistentVolumeClaim) { c.Namespace = "team-b" }),
		claimOf("goes", func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: gen.Noon}, []string{"kubernetes.io/pvc-protection"}
		}),
		pod("works", "a", corev1.PodRunning), pod("ended", "b", corev1.PodSucceeded),
	}
	volumes, busy, err := on(t, cached, nil).observeVolumes(t.Context(), gen.Run())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, v := range volumes {
		got[v.Name] = busy[v.Name]
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": false, "c": false}, got); diff != "" {
		t.Errorf("volumes, and whether they are in use -want +got:\n%s", diff)
	}
}

// A finished Run with a TTL stays while the Run that may read its result is active.
func TestIsParentActive(t *testing.T) {
	ttl, ended := int32(60), metav1.NewTime(gen.Noon)
	parent := func(change func(*v1alpha1.Run)) []client.Object { return []client.Object{gen.Run(change)} }
	none := func(*v1alpha1.Run) {}
	for name, tc := range map[string]struct {
		above []client.Object
		child func(*v1alpha1.Run)
		want  bool
	}{
		"it is active":                     {parent(none), none, true},
		"it has finished":                  {parent(func(r *v1alpha1.Run) { r.Status.CompletionTime = &ended }), none, false},
		"it is gone":                       {nil, none, false},
		"another Run has its name":         {parent(func(r *v1alpha1.Run) { r.UID = "another" }), none, false},
		"the child has no TTL":             {parent(none), func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = nil }, false},
		"the child has no owner":           {parent(none), func(r *v1alpha1.Run) { r.OwnerReferences = nil }, false},
		"the child has another kind above": {parent(none), func(r *v1alpha1.Run) { r.OwnerReferences[0].Kind = "Schedule" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			child := childAt("x-a", "a", "", func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = &ttl }, tc.child)
			active, err := on(t, tc.above, nil).isParentActive(t.Context(), child)
			if err != nil || active != tc.want {
				t.Errorf("the Run above is active: %t, %v; want %t", active, err, tc.want)
			}
		})
	}
}

// A volume is deleted when its time is over, unless a child could still use it.
func TestWhenVolumesAreDeleted(t *testing.T) {
	const hour = time.Hour
	kept := func(name, retain string) corev1.PersistentVolumeClaim {
		return *claimOf(name, func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1alpha1.AnnotationRetain: retain, v1alpha1.AnnotationRetention: "1h"}
		})
	}
	over, later := kept("over", "Never"), kept("later", "Always")
	working, done := gen.Run(), gen.Run(func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} })
	for name, tc := range map[string]struct {
		volumes  []corev1.PersistentVolumeClaim
		inUse    string
		children []*v1alpha1.Run
		deleted  string
		wake     time.Duration
	}{
		"one whose time is over":                 {[]corev1.PersistentVolumeClaim{over}, "", nil, "over", 0},
		"one whose children have finished":       {[]corev1.PersistentVolumeClaim{over}, "", []*v1alpha1.Run{done}, "over", 0},
		"one that a child may still use":         {[]corev1.PersistentVolumeClaim{over}, "", []*v1alpha1.Run{done, working}, "", time.Second},
		"one that a pod uses":                    {[]corev1.PersistentVolumeClaim{over}, "over", nil, "", time.Second},
		"one that is kept for a while":           {[]corev1.PersistentVolumeClaim{later}, "", nil, "", hour},
		"two are deleted one after the other":    {[]corev1.PersistentVolumeClaim{over, kept("too", "Never")}, "", nil, "over", time.Second},
		"one is over while another is kept":      {[]corev1.PersistentVolumeClaim{later, over}, "", nil, "over", hour},
		"one is in use, the next can be deleted": {[]corev1.PersistentVolumeClaim{kept("busy", "Never"), over}, "busy", nil, "over", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := deleteExpiredVolumes(state{run: done, now: gen.Noon, volumes: tc.volumes, volumesInUse: map[string]bool{tc.inUse: true}, children: tc.children}, plan{})
			deleted := ""
			if p.deleteVolume != nil {
				deleted = p.deleteVolume.Name
			}
			if deleted != tc.deleted || p.wake != tc.wake {
				t.Errorf("deleted %q, looked at again after %s; want %q, %s", deleted, p.wake, tc.deleted, tc.wake)
			}
		})
	}
}

// A Workflow that changes wakes the Runs that wait for it, and no others.
func TestWhoIsWaitingForAWorkflow(t *testing.T) {
	run := func(name string, mods ...func(*v1alpha1.Run)) client.Object {
		return gen.Run(append([]func(*v1alpha1.Run){ofWorkflow, func(r *v1alpha1.Run) { r.Name = name }}, mods...)...)
	}
	cached := []client.Object{
		run("waits"),
		run("of-an-agent", func(r *v1alpha1.Run) { r.Spec.Workflow = "" }),
		run("of-another", func(r *v1alpha1.Run) { r.Spec.Workflow = "other" }),
		run("has-begun", func(r *v1alpha1.Run) { r.Status.WorkflowRevision = "h" }),
		run("has-finished", func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }),
		run("elsewhere", func(r *v1alpha1.Run) { r.Namespace = "team-b" }),
	}
	got := on(t, cached, nil).waitingFor(t.Context(), written(t, "release", "nodes: []"))
	if len(got) != 1 || got[0].Name != "waits" || got[0].Namespace != gen.Namespace {
		t.Errorf("these Runs are woken: %v", got)
	}
	d := &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: "team-c", Name: "d"}, Spec: v1alpha1.DecisionSpec{Run: "y"}}
	if got := runsOfDecision(t.Context(), d); len(got) != 1 || got[0].Namespace != "team-c" || got[0].Name != "y" {
		t.Errorf("a Decision wakes %v", got)
	}
	if got := runsOfDecision(t.Context(), gen.Run()); got != nil {
		t.Errorf("a Run wakes as a Decision %v", got)
	}
}

func TestOfWorkflows(t *testing.T) {
	for name, tc := range map[string]struct {
		o    client.Object
		want bool
	}{
		"a Run of a Workflow": {gen.Run(ofWorkflow), true}, "a Run of an Agent": {gen.Run(), false}, "another object": {gen.Agent(), false},
	} {
		if got := ofWorkflows.Create(event.CreateEvent{Object: tc.o}); got != tc.want {
			t.Errorf("%s is reconciled here: %t", name, got)
		}
	}
}

const one = "nodes:\n- {name: a, agent: writer, prompt: Write it.}\n"

// What a Run is to run: the revision that it began with or, before that, the current one.
func TestRevisionOfARun(t *testing.T) {
	objects := func(text string) []client.Object {
		return []client.Object{written(t, "release", text), gen.Agent(func(a *v1alpha1.Agent) { a.Name = "writer" }), gen.Model()}
	}
	current := func(t *testing.T, text string) *workflow.Revision {
		t.Helper()
		r := on(t, objects(text), nil)
		v, why, err := r.currentRevision(t.Context(), gen.Run(ofWorkflow))
		if err != nil || v == nil {
			t.Fatalf("there is no revision: %s %v", why, err)
		}
		return v
	}
	now, before := current(t, one), current(t, strings.ReplaceAll(one, "Write", "Read"))
	var stored []client.Object
	for _, cm := range before.ConfigMaps(gen.Namespace) {
		stored = append(stored, cm)
	}
	began := func(v *workflow.Revision) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) { r.Status.WorkflowRevision = v.Hash }
	}
	chosen := func(r *v1alpha1.Run) {
		r.OwnerReferences = childAt("x", "a", "").OwnerReferences
		r.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: before.Hash}
	}
	copies := func(all []client.Object) (out []client.Object) {
		for _, o := range all {
			out = append(out, o.DeepCopyObject().(client.Object))
		}
		return out
	}
	for name, tc := range map[string]struct {
		cached, live []client.Object
		run          func(*v1alpha1.Run)
		want         string
		why          string
	}{
		"the current one":                              {objects(one), nil, func(*v1alpha1.Run) {}, now.Hash, ""},
		"the one that its parent chose":                {append(objects(one), copies(stored)...), nil, chosen, before.Hash, ""},
		"the one that it began with":                   {append(objects(one), copies(stored)...), nil, began(before), before.Hash, ""},
		"one that only the API server has":             {objects(one), copies(stored), began(before), before.Hash, ""},
		"one that was deleted, and is the current one": {objects(one), nil, began(now), now.Hash, ""},
		"one that was deleted":                         {objects(one), nil, began(before), "", "The revision of Workflow release that this Run uses was deleted or changed (ConfigMap " + workflow.Name(before.Hash)},
		"one that was deleted, as its Workflow":        {nil, nil, began(before), "", "was deleted or changed"},
		"none, without a Workflow":                     {nil, nil, func(*v1alpha1.Run) {}, "", `Workflow "release" not found in namespace team-a; create it`},
		"none, with a Workflow that is not ready":      {objects(one)[:1], nil, func(*v1alpha1.Run) {}, "", `Workflow "release" is not ready: `},
	} {
		t.Run(name, func(t *testing.T) {
			v, why, err := on(t, tc.cached, tc.live).observeRevision(t.Context(), gen.Run(ofWorkflow, tc.run))
			hash := ""
			if v != nil {
				hash = v.Hash
			}
			if err != nil || hash != tc.want || !strings.HasPrefix(why, tc.why) && !strings.Contains(why, tc.why) || (why == "") != (tc.why == "") {
				t.Errorf("revision %q, %q, %v; want %q, %q", hash, why, err, tc.want, tc.why)
			}
		})
	}
}

// withoutChild returns the Run after it has begun, and after its child Run was deleted.
func (s *refuser) withoutChild() *v1alpha1.Run {
	s.t.Helper()
	s.reconcileAll(3)
	if err := s.Delete(s.t.Context(), &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "x-a"}}); err != nil {
		s.t.Fatal(err)
	}
	return s.get()
}

// unreadable returns a client that reads no objects of a type.
func unreadable(c client.WithWatch, kind string) client.WithWatch {
	refuse := func(o any) error {
		if typeName(o) == kind {
			return errRead
		}
		return nil
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.List(ctx, o, opts...)
		},
	})
}

var errRead = errors.New("the server reads nothing")

// What cannot be read is neither missing nor deleted: nothing follows from it.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	ended := func(r *v1alpha1.Run) {
		r.Status.CompletionTime, r.Spec.TTLSecondsAfterFinished = &metav1.Time{Time: gen.Noon}, new(int32(60))
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(func(r *v1alpha1.Run) { r.Name = "above" }), v1alpha1.GroupVersion.WithKind("Run"))}
	}
	for _, what := range []struct {
		kind string
		run  func(*v1alpha1.Run)
		live bool
	}{
		{"RunList", func(*v1alpha1.Run) {}, false},
		{"Run", ended, false},
		{"PersistentVolumeClaimList", ended, false},
		{"PodList", ended, false},
		{"Workflow", func(*v1alpha1.Run) {}, false},
		{"Agent", func(*v1alpha1.Run) {}, false},
		{"ConfigMap", func(r *v1alpha1.Run) { r.Status.WorkflowRevision = "h" }, false},
		{"ConfigMap", func(r *v1alpha1.Run) { r.Status.WorkflowRevision = "h" }, true},
		{"DecisionList", nil, false},
		{"PartialObjectMetadataList", nil, true},
	} {
		s := newRefuser(t)
		run := gen.Run(ofWorkflow)
		if what.run == nil {
			run = s.withoutChild()
		} else {
			what.run(run)
			if err := s.Create(t.Context(), claimOf("v")); err != nil {
				t.Fatal(err)
			}
		}
		failing := unreadable(s, what.kind)
		if what.live {
			s.reconciler.live = failing
		} else {
			s.reconciler.client = failing
		}
		if seen, err := s.reconciler.observe(t.Context(), run); !errors.Is(err, errRead) || seen.notReadyMessage != "" {
			t.Errorf("%s cannot be read (API server itself: %t): %q, %v", what.kind, what.live, seen.notReadyMessage, err)
		}
	}
}

// A Run that the operator may not read the objects of says so; one that another error hits is retried.
func TestARefusedReadStandsInTheCondition(t *testing.T) {
	for class, f := range apierrtest.Failures() {
		s := newRefuser(t)
		s.reconciler.client = interceptor.NewClient(s, interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
				return f.Err("list", "Run", "", 1)
			},
		})
		err := s.reconcile()
		got := runstatus.OutcomeOf(s.get().Status)
		if f.Transient && (err == nil || got.Message != "Waiting for the operator") || !f.Transient && (err != nil || !strings.Contains(got.Message, f.Want)) {
			t.Errorf("%s: %v, the Run says %q, want %q", class, err, got.Message, f.Want)
		}
	}
}

func typeName(o any) string {
	name := strings.Split(fmt.Sprintf("%T", o), ".")
	return name[len(name)-1]
}
