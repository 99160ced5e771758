package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AllowKubelets gives the group of kubelets the rights that the Node authorizer gives in a cluster. This API server has
// no Node authorizer.
func (s *Server) AllowKubelets(t *testing.T) {
	t.Helper()
	s.Bind(t, "", "system:node", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"})
}

// Bind gives a subject the rights of a ClusterRole in a namespace, or in all of them if namespace is
// empty, and returns when the API server knows it.
func (s *Server) Bind(t *testing.T, namespace, role string, subject rbacv1.Subject) {
	t.Helper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: role + ":" + subject.Name} // role alone may be the API server's own
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
	}
	if err := s.Admin.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("binding ClusterRole %s: %v", role, err)
	}
	if err := AwaitBinding(t.Context(), s.Admin, namespace, role, subject); err != nil {
		t.Fatal(err)
	}
}

// AwaitBinding returns when the API server knows that a subject has the rights of a ClusterRole in a
// namespace. The first rule of the ClusterRole must be of resources.
func AwaitBinding(ctx context.Context, admin client.Client, namespace, role string, subject rbacv1.Subject) error {
	var bound rbacv1.ClusterRole
	if err := admin.Get(ctx, client.ObjectKey{Name: role}, &bound); err != nil {
		return fmt.Errorf("reading ClusterRole %s: %w", role, err)
	}
	return awaitRights(ctx, admin, identity(subject), namespace, bound.Rules[:1])
}

// identity returns the configuration to impersonate the subject of a binding.
func identity(subject rbacv1.Subject) rest.ImpersonationConfig {
	switch subject.Kind {
	case rbacv1.GroupKind:
		return rest.ImpersonationConfig{UserName: "probe", Groups: []string{subject.Name}}
	case rbacv1.ServiceAccountKind:
		return rest.ImpersonationConfig{UserName: "system:serviceaccount:" + subject.Namespace + ":" + subject.Name}
	default:
		return rest.ImpersonationConfig{UserName: subject.Name}
	}
}

// awaitRights returns when the API server knows rights that were just written: its authorizer reads
// roles and bindings from a cache, which follows the write.
func awaitRights(ctx context.Context, admin client.Client, who rest.ImpersonationConfig, namespace string, rules []rbacv1.PolicyRule) error {
	for _, rule := range rules {
		review := accessReview(who, namespace, rule)
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			asked := review.DeepCopy()
			err := admin.Create(ctx, asked)
			return asked.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("waiting until %s may %s %s: %w", who.UserName, rule.Verbs[0], rule.Resources[0], err)
		}
	}
	return nil
}

// accessReview asks for the first verb and resource of a rule.
func accessReview(who rest.ImpersonationConfig, namespace string, rule rbacv1.PolicyRule) *authorizationv1.SubjectAccessReview {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.UserName, Groups: who.Groups, ResourceAttributes: asked,
	}}
}
