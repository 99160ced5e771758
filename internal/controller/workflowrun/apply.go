package workflowrun

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// facts are the results of the requests of a plan. decide runs again with them.
type facts struct {
	// created are the children that exist now, and refused the refusals of others by the API server.
	created []*v1alpha1.Run
	refused map[childKey]refusal
	// failure is a request that failed for another reason, or nil.
	failure *requestFailure
}

// apply executes the plan and decides nothing. It returns the results as facts.
func (r *Reconciler) apply(ctx context.Context, s state, p plan) facts {
	f, err := r.applyStep(ctx, s, p)
	if err != nil {
		f.failure = &requestFailure{plan: p, err: err}
	}
	return f
}

func (r *Reconciler) applyStep(ctx context.Context, s state, p plan) (facts, error) {
	if p.storeRevision != nil {
		return facts{}, r.storeRevision(ctx, s.run.Namespace, p.storeRevision)
	}
	if err := children.SetStates(ctx, r.client, p.setStates); err != nil {
		return facts{}, err
	}
	switch {
	case len(p.create) > 0:
		err := r.storeRevision(ctx, s.run.Namespace, s.revision) // a user may have deleted or replaced it
		switch {
		case apierr.IsRefusal(err):
			return refuseAll(p.create, waitingRefusal(err)), nil
		case err != nil:
			return facts{}, err
		}
		return r.createChildren(ctx, s, p.create)
	case len(p.own) > 0:
		return facts{}, r.ownDecisions(ctx, s.run, p.own)
	case p.deleteVolume != nil:
		return facts{}, apierr.DeleteUnchanged(ctx, r.client, p.deleteVolume, "PersistentVolumeClaim") // another Run may have joined it
	case p.deleteRun:
		return facts{}, apierr.Delete(ctx, r.client, s.run, "Run", client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return facts{}, nil
}

// ownDecisions makes a Run an owner of Decisions, so that they are not deleted before it.
func (r *Reconciler) ownDecisions(ctx context.Context, run *v1alpha1.Run, all []*v1alpha1.Decision) error {
	for _, d := range all {
		if err := decisions.AddOwner(ctx, r.client, d, run); err != nil {
			return err
		}
	}
	return nil
}

// storeRevision stores a revision, before the Run begins with it.
func (r *Reconciler) storeRevision(ctx context.Context, namespace string, v *workflow.Revision) error {
	for _, cm := range v.ConfigMaps(namespace) {
		if err := revision.Ensure(ctx, r.client, r.live, cm); err != nil {
			return err
		}
	}
	return nil
}

// createChildren creates children while the Run is unchanged since it was observed: a child that was recorded meanwhile
// and no longer exists must not be created again.
func (r *Reconciler) createChildren(ctx context.Context, s state, all []newChild) (facts, error) {
	if err := apierr.CheckUnchanged(ctx, r.live, "Run", s.run); err != nil {
		return facts{}, err
	}
	return createAll(all, func(batch []newChild) []created { return r.createBatch(ctx, batch) })
}

// maxBatch is how many children are created in parallel.
const maxBatch = 16

// createAll creates children in batches that double while none is refused, as the ReplicaSet controller creates pods: a
// cluster that refuses one child does not get a request for each.
func createAll(all []newChild, create func([]newChild) []created) (facts, error) {
	f := facts{refused: map[childKey]refusal{}}
	known := refusalLog{byPlace: f.refused, byNode: map[string]refusal{}}
	for size := 1; len(all) > 0; size = min(2*size, maxBatch) {
		var batch []newChild
		batch, all = known.skip(all, size)
		var failed error
		for i, made := range create(batch) {
			if made.err == nil {
				f.created = append(f.created, made.run)
				continue
			}
			err := fmt.Errorf("creating Run %s: %w", batch[i].Run.Name, made.err)
			if no, is := refusalOf(err); is {
				known.add(batch[i], no)
				size = 1
				continue
			}
			failed = cmp.Or(failed, err)
		}
		if failed != nil {
			return f, failed
		}
	}
	return f, nil
}

// refuseAll records a refusal for each child Run that was to be created.
func refuseAll(all []newChild, no refusal) facts {
	f := facts{refused: map[childKey]refusal{}}
	for _, c := range all {
		f.refused[c.childKey] = no
	}
	return f
}

// refusalLog records refused child Runs. After a refusal, no other child of the same node is requested. After a refusal
// that may pass, none at all is.
type refusalLog struct {
	byPlace map[childKey]refusal
	byNode  map[string]refusal
	all     refusal // of every child Run; zero: there is none
}

func (r *refusalLog) add(c newChild, no refusal) {
	r.byPlace[c.childKey], r.byNode[c.node] = no, no
	if no.waits != "" {
		r.all = no
	}
}

// skip returns the next children to try, and the rest.
func (r *refusalLog) skip(all []newChild, most int) (batch, rest []newChild) {
	for ; len(all) > 0 && len(batch) < most; all = all[1:] {
		no, is := r.byNode[all[0].node]
		if r.all.waits != "" {
			no, is = r.all, true
		}
		if is {
			r.byPlace[all[0].childKey] = no
			continue
		}
		batch = append(batch, all[0])
	}
	return batch, all
}

// created is the result of creating a child: the child, or an error.
type created struct {
	run *v1alpha1.Run
	err error
}

// createBatch creates children in parallel. The results are in their order.
func (r *Reconciler) createBatch(ctx context.Context, batch []newChild) []created {
	out := make([]created, len(batch))
	var all sync.WaitGroup
	for i, c := range batch {
		all.Go(func() { out[i].run, out[i].err = children.Create(ctx, r.client, r.live, c.Child) })
	}
	all.Wait()
	return out
}

// isChildAt returns a function that reports whether a Run is the child of a parent with a key.
func isChildAt(parent *v1alpha1.Run, at childKey) func(*v1alpha1.Run) bool {
	return func(existing *v1alpha1.Run) bool { return isChildOf(existing, parent) && keyOf(existing) == at }
}
