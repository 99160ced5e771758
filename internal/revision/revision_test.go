package revision_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func wanted(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	v, err := snapshot.Of(gen.Agent(), gen.Objects())
	if err != nil {
		t.Fatal(err)
	}
	return v.ConfigMap(gen.Namespace)
}

func TestAVersionIsStoredInPlaceOfOtherContent(t *testing.T) {
	want := wanted(t)
	squatted := func(mods ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name, UID: "squatter"}, Data: map[string]string{"a": "b"}}
		for _, mod := range mods {
			mod(cm)
		}
		return cm
	}
	cases := map[string]struct {
		found    *corev1.ConfigMap
		replaced bool
	}{
		"nothing":       {nil, true},
		"other content": {squatted(), true},
		"content and more": {squatted(func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"extra": ""}
			maps.Copy(cm.Data, want.Data)
		}), true},
		"binary data too":   {squatted(func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = want.Data, map[string][]byte{"a": {1}} }), true},
		"the same content":  {squatted(func(cm *corev1.ConfigMap) { cm.Data = want.Data }), false},
		"a version with it": {func() *corev1.ConfigMap { cm := want.DeepCopy(); cm.UID = "squatter"; return cm }(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			if tc.found != nil {
				b = b.WithObjects(tc.found)
			}
			c := b.Build()
			if err := revision.Ensure(t.Context(), c, c, want); err != nil {
				t.Fatal(err)
			}
			var got corev1.ConfigMap
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(want), &got); err != nil {
				t.Fatal(err)
			}
			if _, err := snapshot.Read(&got, snapshot.HashOf(want)); err != nil {
				t.Errorf("what is stored: %v", err)
			}
			if (got.UID != "squatter") != tc.replaced {
				t.Errorf("it was replaced: %t", got.UID != "squatter")
			}
		})
	}
}

// Whoever squats again and again meets one deletion each time, and an error that
// names who writes: the caller backs off.
func TestASquatterThatComesBackIsNamed(t *testing.T) {
	want := wanted(t)
	creates, deletes := 0, 0
	squatter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	c := fake.NewClientBuilder().WithObjects(squatter).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			creates++
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, want.Name)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl-create"}})
			return err
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			deletes++
			return nil
		},
	}).Build()
	err := revision.Ensure(t.Context(), c, c, want)
	if err == nil || !strings.Contains(err.Error(), `in place of a ConfigMap that "kubectl-create" wrote`) || creates != 2 || deletes != 1 {
		t.Errorf("%d creates, %d deletes: %v", creates, deletes, err)
	}
}
