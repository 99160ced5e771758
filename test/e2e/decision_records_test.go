//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// adoptedDecision creates a Decision on a Run and waits until the Run owns it.
func (p *testNamespace) adoptedDecision(run *v1alpha1.Run) *v1alpha1.Decision {
	p.t.Helper()
	d := p.in(&v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "told"},
		Spec:       v1alpha1.DecisionSpec{Run: run.Name, Type: v1alpha1.DecisionMessage, Value: "Go on.", By: p.whoami()},
	})
	p.create(d)
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(d), d)
		return len(d.OwnerReferences) == 1 && d.OwnerReferences[0].UID == run.UID, err
	})
	if err != nil {
		p.t.Fatalf("the owners of the Decision are %+v: %v", d.OwnerReferences, err)
	}
	return d
}

// decisionEditor is a user who may do anything with Decisions.
func (p *testNamespace) decisionEditor() client.Client {
	p.t.Helper()
	p.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "decision-editor"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"decisions"}, Verbs: []string{"*"}}},
	}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "decision-editor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "decision-editor"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dan"}},
	})
	return p.as("dan", "view")
}

// collectorKnows waits until the garbage collector has seen all Decisions that there are
// with their owners: one that it deletes, because its owner does not exist, is created
// after them. It orphans only those that it has seen.
func (p *testNamespace) collectorKnows() {
	p.t.Helper()
	marker := p.in(&v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "marker", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "never-there", UID: "00000000-0000-4000-8000-000000000000",
		}}},
		Spec: v1alpha1.DecisionSpec{Run: "never-there", Type: v1alpha1.DecisionMessage, Value: "Go on.", By: p.whoami()},
	})
	p.create(marker)
	p.deleted(marker)
}

// A user cannot delete the record of what was decided for a Run. The garbage collector
// deletes it with the Run, however that is deleted. If it is to stay, the garbage
// collector takes the owner away, and a user can delete it from then on.
func TestADecisionIsDeletedWithItsRun(t *testing.T) {
	t.Parallel()
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			p := newNamespace(t)
			run := p.run("of-no-agent")
			d, dan := p.adoptedDecision(run), p.decisionEditor()
			err := dan.Delete(t.Context(), d)
			if want := "Decision told is the record of what was decided for Run " + run.Name + "; it is deleted with the Run"; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("deleting the Decision: %v, want %q", err, want)
			}
			p.collectorKnows()
			if err := cluster.admin.Delete(t.Context(), run, &client.DeleteOptions{PropagationPolicy: &how}); err != nil {
				t.Fatal(err)
			}
			p.deleted(run)
			if how == metav1.DeletePropagationOrphan {
				err := until(t.Context(), func(ctx context.Context) (bool, error) {
					err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(d), d)
					return len(d.OwnerReferences) == 0, err
				})
				if err != nil {
					t.Fatalf("the owners of the Decision are %+v: %v", d.OwnerReferences, err)
				}
				if err := dan.Delete(t.Context(), d); err != nil {
					t.Errorf("deleting what no Run owns: %v", err)
				}
			}
			p.deleted(d)
		})
	}
}

// The namespace controller deletes Decisions with their namespace.
func TestADecisionIsDeletedWithItsNamespace(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	d := p.adoptedDecision(p.run("of-no-agent"))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	if err := cluster.admin.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	p.deleted(d)
	p.deleted(ns)
}
