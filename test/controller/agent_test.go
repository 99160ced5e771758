package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/ready"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// indexed is the operator's client. The manager's cache has indexes that an API
// server has not; here they are worked out by hand.
func (b *fixture) indexed() client.WithWatch {
	return interceptor.NewClient(b.operator, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			var want string
			if o.FieldSelector != nil {
				want = o.FieldSelector.Requirements()[0].Value
			}
			switch list := list.(type) {
			case *v1alpha1.RunList:
				err := c.List(ctx, list, client.InNamespace(o.Namespace))
				list.Items = slices.DeleteFunc(list.Items, func(run v1alpha1.Run) bool {
					return !slices.Contains(append(gc.IndexUnfinishedRun(&run), ready.IndexRunByModel(&run)...), want)
				})
				return err
			case *corev1.PodList:
				err := c.List(ctx, list, client.InNamespace(o.Namespace))
				list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !slices.Contains(gc.IndexLivePod(&pod), want) })
				return err
			default:
				return c.List(ctx, list, opts...)
			}
		},
	})
}

// reconcileAgent reconciles the Agent fixer once.
func (b *fixture) reconcileAgent() {
	b.t.Helper()
	_, err := ready.Reconcilers(b.indexed(), b.events, func() time.Time { return b.now })["Agent"].Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: b.namespace, Name: "fixer"}})
	if err != nil {
		b.t.Fatalf("reconciling the Agent: %v", err)
	}
}

func (b *fixture) agent() *v1alpha1.Agent {
	b.t.Helper()
	var a v1alpha1.Agent
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "fixer"}, &a); err != nil {
		b.t.Fatal(err)
	}
	return &a
}

func (b *fixture) update(change func(*v1alpha1.Agent)) {
	b.t.Helper()
	a := b.agent()
	change(a)
	if err := b.Admin.Update(b.t.Context(), a); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) versions() int {
	b.t.Helper()
	var list corev1.ConfigMapList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace), client.HasLabels{v1alpha1.LabelRevision}); err != nil {
		b.t.Fatal(err)
	}
	return len(list.Items)
}

func readyOf(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + " " + c.Reason
}

func TestAgentSaysWhetherItsReferencesResolve(t *testing.T) {
	b := newFixture(t)
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); got != "True Ready" {
		t.Errorf("Ready is %s", got)
	}
	if c := meta.FindStatusCondition(b.agent().Status.Conditions, v1alpha1.ConditionDurable); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "PodLost") {
		t.Errorf("Durable is %+v", c)
	}
	b.update(func(a *v1alpha1.Agent) { a.Spec.Model = "nobody" })
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); got != "False NotFound" {
		t.Errorf("Ready is %s", got)
	}
	before := b.agent().ResourceVersion
	b.reconcileAgent()
	if after := b.agent().ResourceVersion; after != before {
		t.Error("a second look at the same wrote again")
	}
}

// An Agent that may give work to others is Ready when they are, and its Run
// waits for that.
func TestAgentReachesOthers(t *testing.T) {
	b := newFixture(t)
	b.update(func(a *v1alpha1.Agent) { a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: "helper"}) })
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); got != "False NotFound" {
		t.Errorf("Ready is %s", got)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	helper := gen.Agent(func(a *v1alpha1.Agent) {
		a.Name, a.Namespace, a.UID, a.Spec.Instructions = "helper", b.namespace, "", "You help."
		a.Spec.Tools = []v1alpha1.Tool{{Agent: "fixer"}}
	})
	b.Create(t, helper)
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); got != "True Ready" {
		t.Errorf("Ready is %s", got)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	var list corev1.ConfigMapList
	if err := b.Admin.List(t.Context(), &list, client.InNamespace(b.namespace), client.HasLabels{v1alpha1.LabelRevision}); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d versions, error %v", len(list.Items), err)
	}
	if text := list.Items[0].Data["runner.json"]; !strings.Contains(text, "You help.") {
		t.Errorf("the runner reads %s", text)
	}
}

// A version stays while an unfinished Run names it or it is the current one.
func TestVersionsGoWhenNothingNeedsThem(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	b.now = b.now.Add(time.Hour)
	b.update(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do it otherwise." })
	b.reconcileAgent()
	if n := b.versions(); n != 1 {
		t.Fatalf("%d versions; the one of an unfinished Run must stay", n)
	}
	run := b.get()
	run.Spec.DesiredState = v1alpha1.DesiredStopped
	if err := b.Admin.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("False Stopped")
	b.reconcileAgent()
	if n := b.versions(); n != 0 {
		t.Errorf("%d versions stay that nothing needs", n)
	}
}

func TestVersionsOfADeletedAgentGo(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	b.now = b.now.Add(time.Hour)
	for _, o := range []client.Object{b.get(), b.agent()} {
		if err := b.Admin.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	b.reconcileAgent()
	if n := b.versions(); n != 1 {
		t.Fatalf("%d versions; the one that a pod mounts must stay", n)
	}
	atOnce := int64(0)
	if err := b.Admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(b.namespace), &client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{GracePeriodSeconds: &atOnce}}); err != nil {
		t.Fatal(err) // the garbage collector's work
	}
	b.reconcileAgent()
	if n := b.versions(); n != 0 {
		t.Errorf("%d versions stay", n)
	}
}

func TestModelSaysWhetherItIsWellFormed(t *testing.T) {
	b := newFixture(t)
	reconcile := func() string {
		var m v1alpha1.Model
		key := client.ObjectKey{Namespace: b.namespace, Name: "sonnet"}
		if err := b.Admin.Get(t.Context(), key, &m); err != nil {
			t.Fatal(err)
		}
		if _, err := ready.Reconcilers(b.indexed(), b.events, func() time.Time { return b.now })["Model"].Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)}); err != nil {
			t.Fatal(err)
		}
		if err := b.Admin.Get(t.Context(), key, &m); err != nil {
			t.Fatal(err)
		}
		return readyOf(m.Status.Conditions)
	}
	if got := reconcile(); got != "True Ready" {
		t.Errorf("Ready is %s", got)
	}
	m := gen.Model()
	m.SetNamespace(b.namespace)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"inference":{"extra":{"a":"`+strings.Repeat("a", 5000)+`"}}}}`))
	if err := b.Admin.Patch(t.Context(), m, patch); err != nil {
		t.Fatal(err)
	}
	if got := reconcile(); got != "False Invalid" {
		t.Errorf("Ready is %s", got)
	}
}

// The operator may do what it does, and may not read Secrets.
func TestOperatorMayNotReadSecrets(t *testing.T) {
	b := newFixture(t)
	err := b.operator.List(t.Context(), &corev1.SecretList{}, client.InNamespace(b.namespace))
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v, want it forbidden", err)
	}
}
