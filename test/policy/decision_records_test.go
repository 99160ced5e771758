package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// The identities of the controllers of Kubernetes that remove objects.
const (
	collector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespacer   = "system:serviceaccount:kube-system:namespace-controller"
	allInOne     = "system:kube-controller-manager"
	recordOfMine = "is the record of what was decided for Run mine; "
)

// editsDecisions are the rights of a user who may do anything with Decisions.
var editsDecisions = rbacv1.PolicyRule{APIGroups: []string{"deckhand.dev"}, Resources: []string{"decisions"}, Verbs: []string{"*"}}

// record creates a Decision that the stage's Run owns, as the operator makes it own one.
func (s *fixture) record(t *testing.T, name string) *v1alpha1.Decision {
	t.Helper()
	d := deciding(s.namespace, name, "admin")
	s.Create(t, d)
	patchOwners(t, s.Admin, d, []metav1.OwnerReference{ownerOf(s.run)}, "")
	return d
}

func ownerOf(run *v1alpha1.Run) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: ourVersion, Kind: "Run", Name: run.Name, UID: run.UID}
}

// patchOwners sets the owners of a Decision, and checks what the server says.
func patchOwners(t *testing.T, c client.Client, d *v1alpha1.Decision, owners []metav1.OwnerReference, want string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	if err != nil {
		t.Fatal(err)
	}
	says(t, c.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, patch)), want)
}

func TestWhoDeletesADecisionOfARun(t *testing.T) {
	s := newFixture(t)
	everything := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	const refused = recordOfMine + "it is deleted with the Run. To decide otherwise, create another Decision; to remove both, delete the Run"
	for user, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  string
	}{
		"ann":            {nil, refused},
		"system:admin":   {nil, refused},
		"gitops":         {everything, refused},
		apitest.Operator: {nil, ""},
		collector:        {nil, ""},
		namespacer:       {nil, ""},
		allInOne:         {nil, ""},
		"system:serviceaccount:kube-system:daemon-set-controller":         {nil, refused},
		"system:serviceaccount:" + s.namespace + ":namespace-controller":  {nil, refused},
		"system:serviceaccount:not-kube-system:generic-garbage-collector": {nil, refused},
	} {
		t.Run(user, func(t *testing.T) {
			c := s.As(t, user, s.namespace, append([]rbacv1.PolicyRule{editsDecisions}, tc.rules...)...)
			d := s.record(t, "d-"+safe(user))
			says(t, c.Delete(t.Context(), d), tc.want)
		})
	}
}

// safe is a user name as a part of the name of an object.
func safe(user string) string {
	out := []byte(user)
	for i, b := range out {
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') {
			out[i] = '-'
		}
	}
	return string(out)
}

// A Decision on which the operator has not acted can be taken back by a user with the
// right to delete it, and so can a Decision that something else than a Run owns.
func TestADecisionThatNoRunOwnsCanBeDeleted(t *testing.T) {
	s := newFixture(t)
	ann := s.As(t, "ann", s.namespace, editsDecisions)
	for name, owners := range map[string][]metav1.OwnerReference{
		"unowned":       nil,
		"of-another":    {{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "u"}},
		"of-other-runs": {{APIVersion: "example.com/v1", Kind: "Run", Name: "mine", UID: s.run.UID}},
	} {
		d := deciding(s.namespace, name, "admin")
		d.OwnerReferences = owners
		s.Create(t, d)
		says(t, ann.Delete(t.Context(), d), "")
	}
}

// All at once are not deleted either.
func TestDecisionsOfARunAreNotDeletedAllAtOnce(t *testing.T) {
	s := newFixture(t)
	s.record(t, "owned")
	ann := s.As(t, "ann", s.namespace, editsDecisions)
	says(t, ann.DeleteAllOf(t.Context(), &v1alpha1.Decision{}, client.InNamespace(s.namespace)), recordOfMine)
	namespaces := s.As(t, namespacer, s.namespace, editsDecisions)
	says(t, namespaces.DeleteAllOf(t.Context(), &v1alpha1.Decision{}, client.InNamespace(s.namespace)), "")
	var left v1alpha1.DecisionList
	if err := s.Admin.List(t.Context(), &left, client.InNamespace(s.namespace)); err != nil || len(left.Items) != 0 {
		t.Errorf("%d Decisions are left (%v)", len(left.Items), err)
	}
}

func TestWhoChangesTheRunThatOwnsADecision(t *testing.T) {
	s := newFixture(t)
	ann := s.As(t, "ann", s.namespace, editsDecisions)
	owned, unowned := s.record(t, "owned"), deciding(s.namespace, "unowned", "admin")
	s.Create(t, unowned)
	mine, other, elsewhere := ownerOf(s.run), ownerOf(s.foreign), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "u"}
	later, namesake := mine, mine
	later.APIVersion, namesake.UID = "deckhand.dev/v1", "another"
	yes := true
	blocking := mine
	blocking.BlockOwnerDeletion = &yes
	const (
		refused   = recordOfMine + "only the operator and the garbage collector may change its metadata.ownerReferences"
		notServed = "deckhand.dev/v1 is not served, and the garbage collector finds an owner by its apiVersion: write apiVersion: deckhand.dev/v1alpha1 in metadata.ownerReferences"
	)
	for name, tc := range map[string]struct {
		decision *v1alpha1.Decision
		owners   []metav1.OwnerReference
		want     string
	}{
		"none":                         {owned, nil, refused},
		"another Run":                  {owned, []metav1.OwnerReference{other}, refused},
		"a namesake":                   {owned, []metav1.OwnerReference{namesake}, refused},
		"another Run too":              {owned, []metav1.OwnerReference{mine, other}, refused},
		"no Run":                       {owned, []metav1.OwnerReference{elsewhere}, refused},
		"a Run of one that has none":   {unowned, []metav1.OwnerReference{mine}, refused},
		"another object too":           {owned, []metav1.OwnerReference{mine, elsewhere}, ""},
		"a version that is not served": {owned, []metav1.OwnerReference{later}, notServed},
		"such a version too":           {owned, []metav1.OwnerReference{mine, later}, notServed},
		"one that blocks deletion":     {owned, []metav1.OwnerReference{blocking}, ""},
		"an object of none":            {unowned, []metav1.OwnerReference{elsewhere}, ""},
	} {
		t.Run(name, func(t *testing.T) { patchOwners(t, ann, tc.decision, tc.owners, tc.want) })
	}
	says(t, ann.Patch(t.Context(), owned.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`))), "")
}

// A Decision whose owner has a version that is not served would not be deleted with its
// Run. So none is created, by any user, and one from before stays as it is.
func TestTheOwnerOfADecisionHasAServedVersion(t *testing.T) {
	s := newFixture(t)
	d := deciding(s.namespace, "of-a-later-version", "admin")
	later := ownerOf(s.run)
	later.APIVersion = "deckhand.dev/v1"
	d.OwnerReferences = []metav1.OwnerReference{later}
	says(t, s.Admin.Create(t.Context(), d), "write apiVersion: deckhand.dev/v1alpha1")
	var kind unstructured.Unstructured
	kind.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := s.Admin.Get(t.Context(), client.ObjectKey{Name: "runs.deckhand.dev"}, &kind); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(kind.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		version, is := v.(map[string]any)
		if !is || version["served"] != true {
			continue
		}
		d := deciding(s.namespace, fmt.Sprint("of-", version["name"]), "admin")
		d.OwnerReferences = []metav1.OwnerReference{ownerOf(s.run)}
		d.OwnerReferences[0].APIVersion = fmt.Sprint("deckhand.dev/", version["name"])
		says(t, s.Admin.Create(t.Context(), d), "")
	}
}

// The garbage collector deletes a Decision when its Run is deleted in the background or
// in the foreground. If the Run is deleted without its dependents, it takes the owner
// away, and the Decision can be deleted by a user from then on.
func TestTheGarbageCollectorHasItsWayWithDecisions(t *testing.T) {
	for _, user := range []string{collector, allInOne} {
		t.Run(user, func(t *testing.T) {
			s := newFixture(t)
			gc := s.As(t, user, s.namespace, editsDecisions)
			background, orphaned := s.record(t, "background"), s.record(t, "orphaned")
			unblocked := ownerOf(s.run)
			no := false
			unblocked.BlockOwnerDeletion = &no
			patchOwners(t, gc, background, []metav1.OwnerReference{unblocked}, "") // in the foreground it does this first
			says(t, gc.Delete(t.Context(), background, client.PropagationPolicy(metav1.DeletePropagationBackground)), "")
			patchOwners(t, gc, orphaned, nil, "")
			says(t, s.As(t, "ann", s.namespace, editsDecisions).Delete(t.Context(), orphaned), "")
		})
	}
}

// A Decision that a retry reuses has two owners. It stays until both are deleted, and no user decides which they are.
func TestADecisionOfTwoRunsStaysForBoth(t *testing.T) {
	s := newFixture(t)
	operator, gc := s.As(t, apitest.Operator, s.namespace, editsDecisions), s.As(t, collector, s.namespace, editsDecisions)
	ann := s.As(t, "ann", s.namespace, editsDecisions)
	d := s.record(t, "shared")
	mine, other := ownerOf(s.run), ownerOf(s.foreign)
	const refused = recordOfMine + "only the operator and the garbage collector may change its metadata.ownerReferences"
	patchOwners(t, ann, d, []metav1.OwnerReference{mine, other}, refused)
	patchOwners(t, operator, d, []metav1.OwnerReference{mine, other}, "")
	patchOwners(t, ann, d, []metav1.OwnerReference{mine}, refused)
	patchOwners(t, gc, d, []metav1.OwnerReference{other}, "") // the Run of the Decision was deleted
	patchOwners(t, ann, d, nil, refused)
	says(t, ann.Delete(t.Context(), d), recordOfMine)
	taken := deciding(s.namespace, "shared", "ann")
	taken.OwnerReferences = []metav1.OwnerReference{mine, other}
	if err := ann.Create(t.Context(), taken); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a Decision takes its name: %v", err)
	}
	says(t, gc.Delete(t.Context(), d), "")
}

// While its namespace is deleted, a Decision keeps nothing back, whoever deletes it and
// whether or not there is an operator.
func TestADecisionKeepsNoNamespaceBack(t *testing.T) {
	s := newFixture(t)
	d := s.record(t, "owned")
	ann := s.As(t, "ann", s.namespace, editsDecisions)
	says(t, ann.Delete(t.Context(), d, client.DryRunAll), recordOfMine)
	if err := s.Admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	// The API server evaluates policies with the namespace of its cache.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := ann.Delete(ctx, d)
		if apitest.IsPolicy(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		t.Errorf("deleting it: %v", err)
	}
}

// When the CustomResourceDefinition of Decisions is deleted, so are they.
func TestADecisionKeepsNoKindBack(t *testing.T) {
	s := newFixture(t)
	s.record(t, "owned")
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	raw.SetName("decisions.deckhand.dev")
	t.Cleanup(func() {
		if _, err := envtest.InstallCRDs(s.Config, envtest.CRDInstallOptions{Paths: []string{apitest.Manifest("crd", "deckhand.dev_decisions.yaml")}}); err != nil {
			t.Errorf("bringing the kind back: %v", err)
		}
	})
	if err := s.Admin.Delete(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(raw), raw.DeepCopy())
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the kind is still there: %v", err)
	}
}
