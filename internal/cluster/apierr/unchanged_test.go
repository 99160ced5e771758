package apierr_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

// An old copy of an object is a conflict, like that of a write with its resource version.
func TestCheckUnchanged(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "u", ResourceVersion: "7"}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
	cases := map[string]struct {
		change func(*v1alpha1.Run)
		want   apierr.Class
	}{
		"as it was read":         {func(*v1alpha1.Run) {}, apierr.None},
		"it has changed":         {func(r *v1alpha1.Run) { r.ResourceVersion = "6" }, apierr.Conflict},
		"another with this name": {func(r *v1alpha1.Run) { r.UID = "v" }, apierr.Conflict},
		"it is gone":             {func(r *v1alpha1.Run) { r.Name = "y" }, apierr.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := stored.DeepCopy()
			tc.change(read)
			if err := apierr.CheckUnchanged(t.Context(), live, "Run", read); apierr.Classify(err) != tc.want {
				t.Errorf("CheckUnchanged() = %v", err)
			}
		})
	}
}

// A recorder is a client that remembers what it was asked to delete, and answers with an error.
type recorder struct {
	client.Writer
	options client.DeleteOptions
	answer  error
}

func (r *recorder) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	r.options.ApplyOptions(options)
	return r.answer
}

var errChanged = errors.New("precondition failed")

// Only the object that was read is deleted, not another one that has its name by now, and what is gone is deleted.
func TestDelete(t *testing.T) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "read"}}
	for name, tc := range map[string]struct {
		answer error
		fails  bool
	}{
		"it is deleted":    {nil, false},
		"it is gone":       {apierrors.NewNotFound(schema.GroupResource{Resource: "runs"}, "x"), false},
		"another is there": {apierrors.NewConflict(schema.GroupResource{Resource: "runs"}, "x", errChanged), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{answer: tc.answer}
			err := apierr.Delete(t.Context(), r, run, "Run", client.GracePeriodSeconds(0))
			if (err != nil) != tc.fails {
				t.Errorf("Delete() = %v", err)
			}
			o := r.options
			if o.Preconditions == nil || o.Preconditions.UID == nil || *o.Preconditions.UID != "read" || o.GracePeriodSeconds == nil {
				t.Errorf("it is asked for with %+v", o)
			}
		})
	}
}

// An object that has changed since it was read is not deleted.
func TestDeleteUnchanged(t *testing.T) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "read", ResourceVersion: "7"}}
	r := &recorder{answer: apierrors.NewConflict(schema.GroupResource{Resource: "runs"}, "x", errChanged)}
	if err := apierr.DeleteUnchanged(t.Context(), r, run, "Run"); !apierr.IsConflict(err) {
		t.Errorf("DeleteUnchanged() = %v", err)
	}
	if p := r.options.Preconditions; p == nil || p.UID == nil || *p.UID != "read" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
		t.Errorf("it is asked for with %+v", r.options)
	}
}
