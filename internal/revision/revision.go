// Package revision stores versions of Agents and Workflows, each in an immutable ConfigMap whose name is the hash of
// its content.
package revision

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ensure creates the ConfigMap of a version unless it exists with the right content. Other content under that name is
// not a revision: it is deleted, once, and replaced. If it returns immediately, the error names its author; the
// caller's backoff then delays further tries.
func Ensure(ctx context.Context, c client.Client, live client.Reader, want *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	switch err := c.Get(ctx, client.ObjectKeyFromObject(want), &found); {
	case err == nil && isGenuine(&found, want):
		return nil
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("getting ConfigMap %s: %w", want.Name, err)
	}
	err := c.Create(ctx, want.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ConfigMap %s: %w", want.Name, err)
	}
	return replace(ctx, c, live, want)
}

// replace replaces another object that has the name of a version. The cache shows only objects with the operator's
// labels, and may be late, so the API server is asked.
func replace(ctx context.Context, c client.Client, live client.Reader, want *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	switch err := live.Get(ctx, client.ObjectKeyFromObject(want), &found); {
	case apierrors.IsNotFound(err): // deleted meanwhile: the next attempt creates it
		return apierrors.NewConflict(corev1.Resource("configmaps"), want.Name, err)
	case err != nil:
		return fmt.Errorf("getting ConfigMap %s: %w", want.Name, err)
	}
	if isGenuine(&found, want) {
		return nil
	}
	err := c.Delete(ctx, &found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ConfigMap %s, which is not the version that its name says: %w", want.Name, err)
	}
	if err := c.Create(ctx, want.DeepCopy()); err != nil {
		return fmt.Errorf("creating ConfigMap %s in place of a ConfigMap that %s wrote, which must not write ConfigMaps of this name: %w", want.Name, writer(&found), err)
	}
	return nil
}

// isGenuine reports whether a ConfigMap has the content whose hash is its name.
func isGenuine(found, want *corev1.ConfigMap) bool {
	return found.DeletionTimestamp == nil && len(found.BinaryData) == 0 && maps.Equal(found.Data, want.Data)
}

// writer is the program that wrote a ConfigMap last, as the API server recorded it.
func writer(cm *corev1.ConfigMap) string {
	if n := len(cm.ManagedFields); n > 0 {
		return fmt.Sprintf("%q", cm.ManagedFields[n-1].Manager)
	}
	return "another client"
}
