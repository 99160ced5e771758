// Package serviceaccount creates the ServiceAccount and the RoleBinding of runners, one of each in a namespace when its
// first Run needs them. All Runs share them. Runners of different Runs are separated not by RBAC, but by an admission
// policy and the token, which is bound to a pod.
package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A Provisioner creates the ServiceAccount and the RoleBinding of runners.
type Provisioner struct {
	client client.Client
	role   string
}

// New returns a Provisioner that binds runners to the ClusterRole role.
func New(c client.Client, role string) *Provisioner {
	return &Provisioner{client: c, role: role}
}

// Ensure creates the missing objects in a namespace. A nil Provisioner creates nothing: the chart has created them.
func (p *Provisioner) Ensure(ctx context.Context, namespace string) error {
	if p == nil {
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": "deckhand"}}
	no := false
	account := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: &no}
	account.Name = v1alpha1.RunnerServiceAccount
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.role}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    role,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	// A roleRef cannot be changed, so the binding is named after the role: a release under
	// another name finds a binding to the role of the release before it.
	binding.Name = p.role
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	if err := p.ensure(ctx, account); err != nil {
		return err
	}
	return p.ensure(ctx, binding)
}

func (p *Provisioner) ensure(ctx context.Context, want client.Object) error {
	kind := want.GetObjectKind().GroupVersionKind().Kind
	had := &metav1.PartialObjectMetadata{} // all that the cache has
	had.SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	err := p.client.Get(ctx, client.ObjectKeyFromObject(want), had)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("getting %s %s: %w", kind, want.GetName(), err)
	}
	if err := p.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", kind, want.GetName(), err)
	}
	return nil
}
