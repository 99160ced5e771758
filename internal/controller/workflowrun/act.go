package workflowrun

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// act does what the plan says and has no opinions. It returns the world as it is
// then: with the children that were made, and those that were refused.
func (r *Reconciler) act(ctx context.Context, w world, p plan) (world, error) {
	if p.freeze != nil {
		return w, r.freeze(ctx, w.run.Namespace, p.freeze)
	}
	for _, o := range p.tell {
		if err := r.tell(ctx, o); err != nil {
			return w, err
		}
	}
	switch {
	case len(p.make) > 0:
		if err := r.freeze(ctx, w.run.Namespace, w.version); err != nil { // somebody may have deleted or replaced it
			return w, err
		}
		return r.make(ctx, w, p.make)
	case p.free != nil:
		return w, r.delete(ctx, p.free, "PersistentVolumeClaim")
	case p.forget:
		return w, r.delete(ctx, w.run, "Run", client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return w, nil
}

// delete deletes exactly this object. That it is gone already is success.
func (r *Reconciler) delete(ctx context.Context, o client.Object, kind string, options ...client.DeleteOption) error {
	err := r.client.Delete(ctx, o, append(options, preconditions(o))...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, o.GetName(), err)
	}
	return nil
}

func preconditions(o client.Object) client.Preconditions {
	uid := o.GetUID()
	return client.Preconditions{UID: &uid}
}

// freeze stores a version, before the Run begins with it.
func (r *Reconciler) freeze(ctx context.Context, namespace string, v *workflow.Version) error {
	for _, cm := range v.ConfigMaps(namespace) {
		if err := revision.Ensure(ctx, r.client, r.live, cm); err != nil {
			return err
		}
	}
	return nil
}

// tell says to a child what is wanted of it.
func (r *Reconciler) tell(ctx context.Context, o order) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.child.UID, "annotations": map[string]*string{v1alpha1.AnnotationPaused: o.because}}, // not a namesake
		"spec":     map[string]any{"desiredState": o.state},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	told := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: o.child.Namespace, Name: o.child.Name}}
	if err := r.client.Patch(ctx, told, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("telling Run %s to be %s: %w", o.child.Name, o.state, err))
	}
	return nil
}

// make makes children, as long as the Run is what was seen: one that is recorded
// since, and gone, is not made again.
func (r *Reconciler) make(ctx context.Context, w world, all []child) (world, error) {
	if err := r.unmoved(ctx, w.run); err != nil {
		return w, err
	}
	return makeAll(w, all, func(c child) (*v1alpha1.Run, error) { return r.makeOne(ctx, w.run, c) })
}

// makeAll makes children one after the other. Where one is refused those after it
// of the same node are not tried, and where there is no room none is.
func makeAll(w world, all []child, one func(child) (*v1alpha1.Run, error)) (world, error) {
	w.refused, w.children = map[place]refusal{}, slices.Clip(w.children)
	stuck, full := map[string]refusal{}, refusal{}
	for _, c := range all {
		no, is := stuck[c.node]
		if full.reason != "" {
			no, is = full, true
		}
		if is {
			w.refused[c.place] = no
			continue
		}
		made, err := one(c)
		if err == nil {
			w.children = append(w.children, made)
			continue
		}
		if no, is = refused(err); !is {
			return w, fmt.Errorf("creating Run %s: %w", c.run.Name, err)
		}
		w.refused[c.place], stuck[c.node] = no, no
		if no.reason == v1alpha1.ReasonQuotaExceeded {
			full = no
		}
	}
	return w, nil
}

// unmoved says that the Run is still what was seen: the cache may be late.
func (r *Reconciler) unmoved(ctx context.Context, parent *v1alpha1.Run) error {
	now := metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Run"))
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(parent), &now); err != nil {
		return fmt.Errorf("getting Run %s: %w", parent.Name, err)
	}
	if now.UID != parent.UID || now.ResourceVersion != parent.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "runs"}, parent.Name, errMoved)
	}
	return nil
}

// makeOne makes a child, or finds it: whose a Run of its name is, the API server
// itself says.
func (r *Reconciler) makeOne(ctx context.Context, parent *v1alpha1.Run, c child) (*v1alpha1.Run, error) {
	for _, name := range []string{c.run.Name, c.spare} {
		fresh := c.run.DeepCopy()
		fresh.Name = name
		err := r.client.Create(ctx, fresh)
		if !apierrors.IsAlreadyExists(err) {
			return fresh, err
		}
		var found v1alpha1.Run
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(fresh), &found); err != nil {
			return nil, err
		}
		if ours(&found, parent) && placeOf(&found) == c.place {
			return &found, nil
		}
	}
	return nil, &takenError{names: [2]string{c.run.Name, c.spare}}
}
