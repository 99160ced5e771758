package continuing_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// run returns a Run with a name.
func run(name string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) { r.Name, r.UID = name, types.UID("uid-"+name) }}, mods...)...)
}

func from(name string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: name} }
}

// done is a Run that ended with a volume.
func done(r *v1alpha1.Run) {
	now := metav1.NewTime(gen.Noon)
	r.Status.CompletionTime = &now
	r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Finished"}, {Type: v1alpha1.ConditionFinished, Status: metav1.ConditionTrue, Reason: "Finished"}}
	r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: r.Name + "-1", PodUID: "uid-pod", VolumeClaim: "deckhand-run-" + r.Name}
}

// childOf makes a Run a child of another, whose other children share its files.
func childOf(parent *v1alpha1.Run) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Annotations = map[string]string{v1alpha1.AnnotationVolumeClaim: "deckhand-run-" + r.Name}
		r.Labels = map[string]string{v1alpha1.LabelWorkflowRun: parent.Name}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind("Run"))}
	}
}

func claimOf(owner *v1alpha1.Run, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: "deckhand-run-" + name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Run"))},
	}}
}

func reader(t *testing.T, objects ...client.Object) continuing.Reader {
	t.Helper()
	for _, o := range objects {
		o.SetResourceVersion("")
	}
	s := apierrtest.NewServer(t, objects, func(b *fake.ClientBuilder) {
		b.WithIndex(&v1alpha1.Run{}, continuing.UnfinishedBySource, continuing.IndexUnfinishedBySource)
	})
	return continuing.Reader{Cache: s, Live: s}
}

func podOf(name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name + "-1", UID: "uid-pod"}, Status: corev1.PodStatus{Phase: phase}}
}

func TestReadingTheSource(t *testing.T) {
	parent := run("flow", func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow = "", "", "flow" })
	first, shared := run("first", done), run("first", done, childOf(parent))
	endedParent := run("flow", done)
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string // the reason of the problem; empty: none
		ready   bool   // as the queue sees it
	}{
		"it has ended":                          {[]client.Object{first, claimOf(first, "first"), podOf("first", corev1.PodSucceeded)}, "", true},
		"its pod still works":                   {[]client.Object{first, claimOf(first, "first"), podOf("first", corev1.PodRunning)}, "Queued", true},
		"it does not exist":                     {nil, "Pending", false},
		"it is active":                          {[]client.Object{run("first")}, "Queued", false},
		"it waits for this one":                 {[]client.Object{run("first", from("x"))}, "Misconfigured", false},
		"it waits for one that waits for this":  {[]client.Object{run("first", from("second")), run("second", from("x"))}, "Misconfigured", false},
		"it waits for another":                  {[]client.Object{run("first", from("second")), run("second")}, "Queued", false},
		"its volume was deleted":                {[]client.Object{first}, "NothingToContinue", true},
		"its volume is of another Run":          {[]client.Object{first, claimOf(run("other"), "first")}, "NothingToContinue", true},
		"others of an active workflow share it": {[]client.Object{shared, parent, claimOf(parent, "first")}, "Queued", false},
		"the workflow has ended":                {[]client.Object{shared, endedParent, claimOf(parent, "first")}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t, tc.objects...)
			x := run("x", from("first"))
			s, err := r.Source(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p := continuing.Check(x, s); p != nil {
				got = p.Reason
			}
			ready, err := r.IsReady(t.Context(), x)
			if got != tc.want || ready != tc.ready || err != nil {
				t.Errorf("%q, ready: %v, %v; want %q, %v", got, ready, err, tc.want, tc.ready)
			}
		})
	}
}

// A Run is kept with its files as long as another one, of it or of its child Runs, has no copy.
// If the cache shows a Run that was deleted and created again, the API server decides which one is named.
func TestTheSourceIsNamedByItsUID(t *testing.T) {
	old, now := run("first", done), run("first", func(r *v1alpha1.Run) { done(r); r.UID = "uid-now" })
	for uid, want := range map[string]types.UID{"": "uid-first", "uid-first": "uid-first", "uid-now": "uid-now", "uid-other": "uid-now"} {
		r := continuing.Reader{Cache: reader(t, old.DeepCopy()).Cache, Live: reader(t, now.DeepCopy()).Live}
		s, err := r.Source(t.Context(), run("x", from("first"), func(r *v1alpha1.Run) { r.Spec.ContinueFrom.UID = uid }))
		if err != nil || s.Run == nil || s.Run.UID != want {
			t.Errorf("the source with UID %q is %v, %v; want %s", uid, s.Run, err, want)
		}
	}
	r := continuing.Reader{Cache: reader(t, old.DeepCopy()).Cache, Live: reader(t).Live}
	if s, err := r.Source(t.Context(), run("x", from("first"), func(r *v1alpha1.Run) { r.Spec.ContinueFrom.UID = "uid-now" })); err != nil || s.Run != nil {
		t.Errorf("the source is %v, %v", s.Run, err)
	}
}

func TestWhoNeedsARun(t *testing.T) {
	first := run("first", done)
	child := run("child", done, childOf(first))
	reported := func(r *v1alpha1.Run) { r.Status.Progress = &v1alpha1.RunProgress{} }
	started := func(claim string) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: claim} }
	}
	for name, tc := range map[string]struct {
		other *v1alpha1.Run
		want  bool
	}{
		"a Run that waits":                      {run("x", from("first")), true},
		"a Run that waits for its child":        {run("x", from("child")), true},
		"a Run of another":                      {run("x", from("second")), false},
		"a Run that continues none":             {run("x"), false},
		"a Run that copies":                     {run("x", from("first"), started("claim")), true},
		"a Run with a copy":                     {run("x", from("first"), started("claim"), reported), false},
		"a Run that copies again in each pod":   {run("x", from("first"), started(""), reported), true},
		"a Run that has ended without a volume": {run("x", from("first"), started(""), done), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t, first, child, run("second", done), tc.other)
			got, err := continuing.IsNeeded(t.Context(), r.Cache, first)
			if got != tc.want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
