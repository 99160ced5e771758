package workflowrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// apply does what the plan says and decides nothing. It returns the world as it is then:
// with the children that were created, and those that were refused.
func (r *Reconciler) apply(ctx context.Context, w world, p plan) (world, error) {
	if p.freeze != nil {
		return w, r.freeze(ctx, w.run.Namespace, p.freeze)
	}
	if err := children.SetStates(ctx, r.client, p.setStates); err != nil {
		return w, err
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

// make makes children, as long as the Run is what was seen: one that is recorded
// since, and gone, is not made again.
func (r *Reconciler) make(ctx context.Context, w world, all []child) (world, error) {
	if err := r.unmoved(ctx, w.run); err != nil {
		return w, err
	}
	return makeAll(w, all, func(batch []child) []creation { return r.makeBatch(ctx, batch) })
}

// maxBatch is the most children that are created at the same time.
const maxBatch = 16

// makeAll creates children in batches that double as long as none is refused, as the
// ReplicaSet controller creates pods: a cluster that refuses one is not asked for all.
func makeAll(w world, all []child, create func([]child) []creation) (world, error) {
	w.refused, w.children = map[place]refusal{}, slices.Clip(w.children)
	known := refusals{byPlace: w.refused, byNode: map[string]refusal{}}
	for size := 1; len(all) > 0; size = min(2*size, maxBatch) {
		var batch []child
		batch, all = known.skip(all, size)
		var failed error
		for i, made := range create(batch) {
			switch no, is := refused(made.err); {
			case made.err == nil:
				w.children = append(w.children, made.run)
			case is:
				known.add(batch[i], no)
				size = 1
			default:
				failed = cmp.Or(failed, fmt.Errorf("creating Run %s: %w", batch[i].Run.Name, made.err))
			}
		}
		if failed != nil {
			return w, failed
		}
	}
	return w, nil
}

// refusals are what the cluster said of children. Where one was refused those after
// it of the same node are not tried, and where there is no room none is.
type refusals struct {
	byPlace map[place]refusal
	byNode  map[string]refusal
	full    refusal
}

func (r *refusals) add(c child, no refusal) {
	r.byPlace[c.place], r.byNode[c.node] = no, no
	if no.reason == v1alpha1.ReasonQuotaExceeded {
		r.full = no
	}
}

// skip returns the next children that are to be tried, and those after them.
func (r *refusals) skip(all []child, most int) (batch, rest []child) {
	for ; len(all) > 0 && len(batch) < most; all = all[1:] {
		no, is := r.byNode[all[0].node]
		if r.full.reason != "" {
			no, is = r.full, true
		}
		if is {
			r.byPlace[all[0].place] = no
			continue
		}
		batch = append(batch, all[0])
	}
	return batch, all
}

// A creation is what became of a child: created, or an error.
type creation struct {
	run *v1alpha1.Run
	err error
}

// makeBatch creates children at the same time; the results are in their order.
func (r *Reconciler) makeBatch(ctx context.Context, batch []child) []creation {
	out := make([]creation, len(batch))
	var all sync.WaitGroup
	for i, c := range batch {
		all.Go(func() { out[i].run, out[i].err = children.Create(ctx, r.client, r.live, c.Child) })
	}
	all.Wait()
	return out
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

// isChildAt returns whether a Run is the child of another at a place.
func isChildAt(parent *v1alpha1.Run, at place) func(*v1alpha1.Run) bool {
	return func(existing *v1alpha1.Run) bool { return ours(existing, parent) && placeOf(existing) == at }
}
