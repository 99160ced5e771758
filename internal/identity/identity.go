// Package identity gives namespaces the identity of their runners: one
// ServiceAccount and one RoleBinding, made when first needed and shared by all
// Runs. What keeps one Run's runner from another's is not RBAC but the token,
// which is bound to a pod, and an admission policy.
package identity

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

// An Identity makes what runners of a namespace need to be somebody.
type Identity struct {
	client client.Client
	role   string
}

// New binds runners to the ClusterRole role.
func New(c client.Client, role string) *Identity {
	return &Identity{client: c, role: role}
}

// Ensure makes what is missing in a namespace. A nil Identity makes nothing:
// the chart did.
func (i *Identity) Ensure(ctx context.Context, namespace string) error {
	if i == nil {
		return nil
	}
	meta := metav1.ObjectMeta{
		Namespace: namespace,
		Name:      v1alpha1.RunnerServiceAccount,
		Labels:    map[string]string{"app.kubernetes.io/managed-by": "deckhand"},
	}
	no := false
	account := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: &no}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: i.role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: v1alpha1.RunnerServiceAccount}},
	}
	if err := i.ensure(ctx, account, "ServiceAccount"); err != nil {
		return err
	}
	return i.ensure(ctx, binding, "RoleBinding")
}

func (i *Identity) ensure(ctx context.Context, want client.Object, kind string) error {
	had := want.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a deep copy has the type of its original
	err := i.client.Get(ctx, client.ObjectKeyFromObject(want), had)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("getting %s %s: %w", kind, want.GetName(), err)
	}
	if err := i.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", kind, want.GetName(), err)
	}
	return nil
}
