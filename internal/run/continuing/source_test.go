package continuing_test

import (
	"testing"
	"time"

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

func shares(r *v1alpha1.Run) {
	r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first", Workspace: v1alpha1.ContinueShare}
	r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"first"}, VolumeClaim: "deckhand-run-first"}
}

// usedBy makes a Run the one that uses a volume.
func usedBy(claim *corev1.PersistentVolumeClaim, run *v1alpha1.Run) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	claim.Annotations = map[string]string{v1alpha1.AnnotationUsedBy: run.Name + "/" + string(run.UID)}
	claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID})
	return claim
}

// labeled is a pod with a volume in a label.
func labeled(name, label string, hasFetched bool) *corev1.Pod {
	pod := podOf(name, corev1.PodRunning)
	pod.Name, pod.UID, pod.Labels = name, "uid-"+pod.UID, map[string]string{label: "deckhand-run-first"}
	if hasFetched {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	}
	return pod
}

// Of the Runs that change the files of a Run, one works at a time, and none while a pod copies them.
func TestWhoUsesTheFiles(t *testing.T) {
	first, second, ended := run("first", done), run("second", shares), run("second", shares, done)
	claim := claimOf(first, "first")
	owners := claimOf(first, "first")
	for range 15 {
		owners.OwnerReferences = append(owners.OwnerReferences, metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "o", UID: "o"})
	}
	stopping := labeled("second-1", v1alpha1.LabelVolumeClaim, true)
	stopping.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "runner", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	for name, tc := range map[string]struct {
		objects     []client.Object
		share, copy string // the reasons of the problems; empty: none
		fresh       string
		ready       bool // as the queue sees it
	}{
		"none":                      {[]client.Object{claim}, "", "", "", true},
		"one that works":            {[]client.Object{usedBy(claim, second), second}, "Queued", "Queued", "", false},
		"one that ended":            {[]client.Object{usedBy(claim, ended), ended}, "", "", "", true},
		"one that was deleted":      {[]client.Object{usedBy(claim, second)}, "", "", "", true},
		"a namesake of it":          {[]client.Object{usedBy(claim, second), run("second", func(r *v1alpha1.Run) { r.UID = "other" })}, "", "", "", true},
		"this Run":                  {[]client.Object{usedBy(claim, run("x"))}, "", "", "", true},
		"a pod of one that ended":   {[]client.Object{usedBy(claim, ended), ended, labeled("second-1", v1alpha1.LabelVolumeClaim, true)}, "Queued", "Queued", "", true},
		"its sandbox":               {[]client.Object{usedBy(claim, ended), ended, stopping}, "Queued", "Queued", "", true},
		"a pod that copies":         {[]client.Object{claim, labeled("third-1", v1alpha1.LabelSourceVolumeClaim, false)}, "Queued", "", "", true},
		"a pod that has its copy":   {[]client.Object{claim, labeled("third-1", v1alpha1.LabelSourceVolumeClaim, true)}, "", "", "", true},
		"as many as can":            {[]client.Object{owners}, "Misconfigured", "", "", true},
		"as many as can, with this": {[]client.Object{usedBy(owners, run("x"))}, "", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{first.DeepCopy()}
			for _, o := range tc.objects {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			r := reader(t, objects...)
			for workspace, want := range map[v1alpha1.ContinueWorkspace]string{v1alpha1.ContinueShare: tc.share, v1alpha1.ContinueCopy: tc.copy, v1alpha1.ContinueFresh: tc.fresh} {
				x := run("x", func(r *v1alpha1.Run) {
					r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first", Workspace: workspace}
				})
				wantsUse(t, r, x, want, tc.ready || workspace == v1alpha1.ContinueFresh)
			}
		})
	}
}

// wantsUse checks the reason for which a Run waits, and whether it is queued.
func wantsUse(t *testing.T, r continuing.Reader, x *v1alpha1.Run, want string, wantReady bool) {
	t.Helper()
	s, err := r.Source(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	if p := continuing.Check(x, s); p != nil {
		got = p.Reason
	}
	ready, err := r.IsReady(t.Context(), x)
	if got != want || ready != wantReady || err != nil {
		t.Errorf("%s: %q, ready: %v, %v; want %q", x.Spec.ContinueFrom.Workspace, got, ready, err, want)
	}
}

// A Run that has started looks again, at the API server: others may have begun at the same time.
func TestWhoBeganAtTheSameTime(t *testing.T) {
	first, claim := run("first", done), claimOf(run("first"), "first")
	second, started := run("second", shares), run("second", shares, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} })
	for name, tc := range map[string]struct {
		objects     []client.Object
		share, copy bool
	}{
		"none":                          {[]client.Object{claim}, false, false},
		"one that changes the files":    {[]client.Object{usedBy(claim, started), started}, false, true},
		"one that waits for this":       {[]client.Object{usedBy(claim, second), second}, false, false},
		"a pod that copies":             {[]client.Object{claim, labeled("third-1", v1alpha1.LabelSourceVolumeClaim, false)}, true, false},
		"a pod of one that was deleted": {[]client.Object{usedBy(claim, started), labeled("second-1", v1alpha1.LabelVolumeClaim, false)}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t, append([]client.Object{first.DeepCopy()}, tc.objects...)...)
			for workspace, want := range map[v1alpha1.ContinueWorkspace]bool{v1alpha1.ContinueShare: tc.share, v1alpha1.ContinueCopy: tc.copy, v1alpha1.ContinueFresh: false} {
				x := run("x", func(r *v1alpha1.Run) {
					r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first", Workspace: workspace}
				})
				s := continuing.Source{VolumeClaim: claim}
				err := r.Blocked(t.Context(), x, &s)
				if waits := continuing.InUse(s) != nil; waits != want || err != nil {
					t.Errorf("%s: it waits: %v, %v", workspace, waits, err)
				}
			}
		})
	}
}

// A volume is kept for the Run that ended last, and for each that has not ended.
func TestUseOfAVolume(t *testing.T) {
	at := func(hours int) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) {
			done(r)
			when := metav1.NewTime(gen.Noon.Add(time.Duration(hours) * time.Hour))
			r.Status.CompletionTime = &when
		}
	}
	first := run("first", at(2))
	for name, tc := range map[string]struct {
		others       []*v1alpha1.Run
		active, last string
	}{
		"none":                  {},
		"one that works":        {[]*v1alpha1.Run{run("a", shares, at(3)), run("b", shares)}, "b", ""},
		"some that ended":       {[]*v1alpha1.Run{run("a", shares, at(3)), run("b", shares, at(5)), run("c", shares, at(4))}, "", "b"},
		"one that ended before": {[]*v1alpha1.Run{run("a", shares, at(1))}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim, objects := usedBy(claimOf(first, "first"), run("deleted")), []client.Object{}
			for _, o := range tc.others {
				claim, objects = usedBy(claim, o), append(objects, o)
			}
			use, err := reader(t, objects...).UseOf(t.Context(), first, claim)
			got := func(r *v1alpha1.Run) string {
				if r == nil {
					return ""
				}
				return r.Name
			}
			if err != nil || got(use.Active) != tc.active || got(use.Last) != tc.last {
				t.Errorf("active %q, last %q, %v", got(use.Active), got(use.Last), err)
			}
		})
	}
}

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

// A Run is kept with its files as long as another one, of it, of its child Runs or of a Run on its volume, has no copy.
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
		"a Run that waits":                           {run("x", from("first")), true},
		"a Run that waits for its child":             {run("x", from("child")), true},
		"a Run of another":                           {run("x", from("second")), false},
		"a Run that continues none":                  {run("x"), false},
		"a Run that copies":                          {run("x", from("first"), started("claim")), true},
		"a Run with a copy":                          {run("x", from("first"), started("claim"), reported), false},
		"a Run that copies again in each pod":        {run("x", from("first"), started(""), reported), true},
		"a Run that shares, and waits":               {run("x", from("first"), func(r *v1alpha1.Run) { r.Spec.ContinueFrom.Workspace = v1alpha1.ContinueShare }), true},
		"a Run that shares, and has joined":          {run("x", from("first"), started("claim"), func(r *v1alpha1.Run) { r.Spec.ContinueFrom.Workspace = v1alpha1.ContinueShare }), false},
		"a Run that waits for another on its volume": {run("x", from("sharer")), true},
		"a Run that copies from its volume": {run("x", from("deleted"), func(r *v1alpha1.Run) {
			r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{VolumeClaim: "volume-of-first"}
		}), true},
		"a Run that has ended without a volume": {run("x", from("first"), started(""), done), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t, first, child, run("second", done), run("sharer", done, started("volume-of-first")), tc.other)
			got, err := continuing.IsNeeded(t.Context(), r.Cache, first, "volume-of-first")
			if got != tc.want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
