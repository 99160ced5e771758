package policy_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

const restoreLabel = "velero.io/restore-name"

// work is a Run of an agent.
func (s *fixture) work(name string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	r := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."},
	}
	for _, mod := range mods {
		mod(r)
	}
	return r
}

func labeled(pairs ...string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			r.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// manyLabels gives a Run n labels.
func manyLabels(n int) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		for i := range n {
			labeled(fmt.Sprintf("example.com/%d", i), "a")(r)
		}
	}
}

func annotated(key, value string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Annotations = map[string]string{key: value} }
}

// ownedBy makes a Run the child of another object, as far as it says.
func ownedBy(kind, name string, uid types.UID, apiVersion string) func(*v1alpha1.Run) {
	yes := true
	return func(r *v1alpha1.Run) {
		r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes})
	}
}

const ourVersion = "deckhand.dev/v1alpha1"

// child makes a Run as the operator makes children.
func (s *fixture) child(t *testing.T, name string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	t.Helper()
	mods = append([]func(*v1alpha1.Run){
		labeled(v1alpha1.LabelWorkflowRun, s.run.Name, v1alpha1.LabelWorkflowNode, "build", "team", "harbor"),
		annotated(v1alpha1.AnnotationRevisionHash, strings.Repeat("a", 64)),
		ownedBy("Run", s.run.Name, s.run.UID, ourVersion),
	}, mods...)
	r := s.work(name, mods...)
	s.Create(t, r)
	return r
}

// Who may work with Runs makes none that passes for a child.
func TestWhoMayMakeRunsMakesNoChildren(t *testing.T) {
	s := newFixture(t)
	editor := s.As(t, "eve", s.namespace, role(t, "user")...)
	const labels, owners = "only the operator may set, change or remove deckhand.dev/ labels of a Run: do not change ", "only the operator may create Runs that a Run or a Schedule owns: remove the owner from metadata.ownerReferences, or create the Run through a Workflow, an Agent or a Schedule"
	cases := map[string]struct {
		mod  func(*v1alpha1.Run)
		want string
	}{
		"of her own":               {labeled("team", "harbor", "kueue.x-k8s.io/queue-name", "q"), ""},
		"with a like label":        {labeled("notdeckhand.dev/workflow-node", "x"), ""},
		"with a label of ours":     {labeled(v1alpha1.LabelWorkflowNode, "build"), labels + "deckhand.dev/workflow-node"},
		"with two of them":         {labeled(v1alpha1.LabelSchedule, "audit", v1alpha1.LabelItemIndex, "1"), labels},
		"with an annotation":       {annotated(v1alpha1.AnnotationRevisionHash, "x"), "annotations of a Run: do not change deckhand.dev/revision-hash"},
		"with a claim":             {annotated(v1alpha1.AnnotationVolumeClaim, "deckhand-run-x"), "do not change deckhand.dev/volume-claim"},
		"owned by a Run":           {ownedBy("Run", s.run.Name, s.run.UID, ourVersion), owners},
		"owned by a Schedule":      {ownedBy("Schedule", "audit", "some-uid", ourVersion), owners},
		"owned in a later version": {ownedBy("Run", s.run.Name, s.run.UID, "deckhand.dev/v1"), owners},
		"owned by something else":  {ownedBy("ConfigMap", "cm", "some-uid", "v1"), ""},
		"owned by a Run of others": {ownedBy("Run", "r", "some-uid", "example.com/v1"), ""},
		"marked as restored": {func(r *v1alpha1.Run) {
			labeled(restoreLabel, "backup", v1alpha1.LabelWorkflowNode, "build")(r)
			ownedBy("Run", "gone", "some-uid", ourVersion)(r)
		}, ""},
		"marked as migrated": {func(r *v1alpha1.Run) {
			annotated("stork.libopenstorage.org/migrated", "true")(r)
			labeled(v1alpha1.LabelWorkflowNode, "build")(r)
		}, ""},
		"with as many labels as may be": {manyLabels(64), ""},
		"with too many labels":          {manyLabels(65), "a Run has at most 64 labels, and this one 65: remove some of metadata.labels"},
		"marked with nothing":           {labeled(restoreLabel, "", v1alpha1.LabelWorkflowNode, "build"), labels},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := s.work("hers", tc.mod)
			err := editor.Create(t.Context(), r, client.DryRunAll)
			says(t, err, tc.want)
			if tc.want != "" {
				if err := s.Admin.Create(t.Context(), s.work("the-operators", tc.mod), client.DryRunAll); err != nil {
					t.Errorf("the operator is refused: %v", err)
				}
			}
		})
	}
}

// says checks what the server says; empty: it takes it.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (!apitest.IsPolicy(err) || !strings.Contains(err.Error(), want)) {
		t.Errorf("the server says %v, want it to say %q", err, want)
	}
}

// Nor does she make one out of a Run that is there, or change a child.
func TestWhoMayChangeRunsChangesNoChildren(t *testing.T) {
	s := newFixture(t)
	editor := s.As(t, "eve", s.namespace, role(t, "user")...)
	child := s.child(t, "mine-build")
	plain := s.work("plain")
	back := s.work("back", labeled(restoreLabel, "backup", v1alpha1.LabelWorkflowNode, "build"))
	backPlain := s.work("back-plain", labeled(restoreLabel, "backup"))
	bare := s.work("bare", ownedBy("Run", s.run.Name, s.run.UID, ourVersion))
	timed := s.work("timed", ownedBy("Schedule", "audit", "some-uid", ourVersion))
	plainOwned := s.work("plain-owned", ownedBy("ConfigMap", "cm", "some-uid", "v1"))
	s.Create(t, plain, back, backPlain, bare, timed, plainOwned)
	owner := func(controller bool) string {
		yes := map[bool]string{true: "true", false: "false"}
		return `{"apiVersion":"deckhand.dev/v1alpha1","kind":"Run","name":"` + s.run.Name + `","uid":"` + string(s.run.UID) + `","controller":` + yes[controller] + `,"blockOwnerDeletion":false}`
	}
	cases := map[string]struct {
		run   *v1alpha1.Run
		patch string
		want  string
	}{
		"a label of her own":              {child, `{"metadata":{"labels":{"hers":"yes","team":null}}}`, ""},
		"stopping it":                     {child, `{"spec":{"desiredState":"Stopped"}}`, ""},
		"another node":                    {child, `{"metadata":{"labels":{"deckhand.dev/workflow-node":"test"}}}`, "do not change deckhand.dev/workflow-node"},
		"no node":                         {child, `{"metadata":{"labels":{"deckhand.dev/workflow-node":null}}}`, "do not change deckhand.dev/workflow-node"},
		"no labels":                       {child, `{"metadata":{"labels":null}}`, "do not change deckhand.dev/"},
		"another version":                 {child, `{"metadata":{"annotations":{"deckhand.dev/revision-hash":"b"}}}`, "do not change deckhand.dev/revision-hash"},
		"no version":                      {child, `{"metadata":{"annotations":null}}`, "do not change deckhand.dev/revision-hash"},
		"a digest":                        {child, `{"metadata":{"annotations":{"deckhand.dev/digest":"b"}}}`, "do not change deckhand.dev/digest"},
		"an owner for a Run of her own":   {plain, `{"metadata":{"ownerReferences":[` + owner(true) + `]}}`, "only the operator may create Runs that a Run or a Schedule owns: remove the owner from metadata.ownerReferences, or create the Run through a Workflow, an Agent or a Schedule"},
		"an owner that is no controller":  {plain, `{"metadata":{"ownerReferences":[` + owner(false) + `]}}`, "only the operator may create Runs that a Run or a Schedule owns: remove the owner from metadata.ownerReferences, or create the Run through a Workflow, an Agent or a Schedule"},
		"hiding a child from its parent":  {child, `{"metadata":{"ownerReferences":[` + owner(false) + `]}}`, "only the operator may create Runs that a Run or a Schedule owns: remove the owner from metadata.ownerReferences, or create the Run through a Workflow, an Agent or a Schedule"},
		"what garbage collection does":    {child, `{"metadata":{"ownerReferences":[` + owner(true) + `]}}`, ""},
		"taking the mark off":             {back, `{"metadata":{"labels":{"velero.io/restore-name":null}}}`, "mark a Run as restored from a backup, and cannot be set, changed or removed on a Run that a Run or a Schedule owns. To do the work of a restored Run again, create a new Run"},
		"emptying the mark":               {back, `{"metadata":{"labels":{"velero.io/restore-name":""}}}`, "mark a Run as restored from a backup, and cannot be set, changed or removed on a Run that a Run or a Schedule owns. To do the work of a restored Run again, create a new Run"},
		"another mark":                    {back, `{"metadata":{"labels":{"velero.io/restore-name":"other"}}}`, "mark a Run as restored from a backup, and cannot be set, changed or removed on a Run that a Run or a Schedule owns. To do the work of a restored Run again, create a new Run"},
		"a mark of what is no child":      {backPlain, `{"metadata":{"labels":{"velero.io/restore-name":null}}}`, ""},
		"a mark on what is no child":      {plain, `{"metadata":{"labels":{"velero.io/restore-name":"x"}}}`, ""},
		"passing a child off as restored": {child, `{"metadata":{"labels":{"velero.io/restore-name":"x"}}}`, "mark a Run as restored from a backup, and cannot be set, changed or removed on a Run that a Run or a Schedule owns. To do the work of a restored Run again, create a new Run"},
		"passing a child off as migrated": {child, `{"metadata":{"annotations":{"stork.libopenstorage.org/migrated":"true"}}}`, "mark a Run as restored from a backup, and cannot be set, changed or removed on a Run that a Run or a Schedule owns. To do the work of a restored Run again, create a new Run"},
		"the same of one with no labels":  {bare, `{"metadata":{"labels":{"velero.io/restore-name":"x"}}}`, "mark a Run as restored from a backup, and cannot be set, changed or removed on a Run that a Run or a Schedule owns. To do the work of a restored Run again, create a new Run"},
		"both at once":                    {bare, `{"metadata":{"labels":{"velero.io/restore-name":"x"},"ownerReferences":null}}`, "the owner of this Run cannot be removed from metadata.ownerReferences: to end the Run, set spec.desiredState to Stopped, or delete it"},
		"taking its parent away":          {child, `{"metadata":{"ownerReferences":null}}`, "the owner of this Run cannot be removed from metadata.ownerReferences: to end the Run, set spec.desiredState to Stopped, or delete it"},
		"taking its Schedule away":        {timed, `{"metadata":{"ownerReferences":[]}}`, "the owner of this Run cannot be removed from metadata.ownerReferences: to end the Run, set spec.desiredState to Stopped, or delete it"},
		"another parent instead":          {child, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"cm","uid":"some-uid"}]}}`, "the owner of this Run cannot be removed from metadata.ownerReferences: to end the Run, set spec.desiredState to Stopped, or delete it"},
		"an owner of her own":             {plainOwned, `{"metadata":{"ownerReferences":null}}`, ""},
		"an owner beside its parent":      {child, `{"metadata":{"ownerReferences":[` + owner(true) + `,{"apiVersion":"v1","kind":"ConfigMap","name":"cm","uid":"some-uid"}]}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patch := client.RawPatch(types.MergePatchType, []byte(tc.patch))
			says(t, editor.Patch(t.Context(), tc.run.DeepCopy(), patch, client.DryRunAll), tc.want)
			if err := s.Admin.Patch(t.Context(), tc.run.DeepCopy(), patch, client.DryRunAll); err != nil {
				t.Errorf("the operator is refused: %v", err)
			}
		})
	}
}

// The garbage collector takes an owner away that is gone, or that somebody deletes
// without its dependents, and does no more for it. It is a controller of its own, or
// one of those that share an identity.
func TestTheGarbageCollectorMayDoItsWork(t *testing.T) {
	s := newFixture(t)
	for i, user := range []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"} {
		t.Run(user, func(t *testing.T) {
			s.collects(t, s.As(t, user, s.namespace, role(t, "user")...), fmt.Sprintf("mine-%d-", i))
		})
	}
	t.Run("another ServiceAccount", func(t *testing.T) {
		other := s.As(t, "system:serviceaccount:"+s.namespace+":generic-garbage-collector", s.namespace, role(t, "user")...)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
		says(t, other.Patch(t.Context(), s.child(t, "mine-kept"), patch), "the owner of this Run cannot be removed from metadata.ownerReferences: to end the Run, set spec.desiredState to Stopped, or delete it")
	})
}

// collects does to children of some names what the garbage collector does.
func (s *fixture) collects(t *testing.T, gc client.Client, prefix string) {
	t.Helper()
	for name, patch := range map[string]string{
		"an owner that is gone":    `{"metadata":{"ownerReferences":null}}`,
		"one that must not block":  `{"metadata":{"ownerReferences":[{"apiVersion":"deckhand.dev/v1alpha1","kind":"Run","name":"` + s.run.Name + `","uid":"` + string(s.run.UID) + `","controller":true}]}}`,
		"a finalizer that it sets": `{"metadata":{"finalizers":["foregroundDeletion"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			child := s.child(t, prefix+strings.ReplaceAll(name, " ", "-"))
			if err := gc.Patch(t.Context(), child, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Errorf("the server says %v", err)
			}
		})
	}
}

// Who writes Workflows has a role for it; a Schedule makes Runs, which users may.
func TestWhoMayComposeAndSchedule(t *testing.T) {
	s := newFixture(t)
	template := v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."}}
	for user, may := range map[string]struct{ compose, schedule bool }{
		"author": {true, true}, "user": {false, true}, "viewer": {}, "approver": {},
	} {
		t.Run(user, func(t *testing.T) {
			c := s.As(t, user, s.namespace, role(t, user)...)
			meta := metav1.ObjectMeta{Namespace: s.namespace, Name: "by-" + user}
			w := &v1alpha1.Workflow{ObjectMeta: meta, Spec: v1alpha1.WorkflowSpec{Nodes: []v1alpha1.Node{{Name: "n", Agent: "a", Prompt: "Do it."}}}}
			if err := c.Create(t.Context(), w); (err == nil) != may.compose {
				t.Errorf("creating a Workflow: %v", err)
			}
			sched := &v1alpha1.Schedule{ObjectMeta: meta, Spec: v1alpha1.ScheduleSpec{Schedule: "@daily", RunTemplate: template}}
			if err := c.Create(t.Context(), sched); (err == nil) != may.schedule {
				t.Errorf("creating a Schedule: %v", err)
			}
			for _, list := range []client.ObjectList{&v1alpha1.WorkflowList{}, &v1alpha1.ScheduleList{}} {
				if err := c.List(t.Context(), list, client.InNamespace(s.namespace)); (err == nil) != (user != "approver") {
					t.Errorf("reading %T: %v", list, err)
				}
			}
		})
	}
}
