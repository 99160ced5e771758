package run

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
)

// Turns are those that were given and that the cache may not show yet: without
// them several Runs that are looked at together would each take the last one.
type turns struct {
	mu    sync.Mutex
	given map[client.ObjectKey]map[types.UID]bool // by Agent
}

// UnfinishedByAgent is the field that indexes Runs which have not ended by their
// Agent.
const UnfinishedByAgent = "unfinished-by-agent"

// IndexUnfinishedByAgent is that index.
func IndexUnfinishedByAgent(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Agent == "" || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.Agent}
}

// turn is where a Run stands that has not begun.
func (r *Reconciler) turn(ctx context.Context, run *v1alpha1.Run) (turn, error) {
	return r.standing(ctx, run, func(map[types.UID]bool) {})
}

// takeTurn is the same and, where its turn has come, gives it: to no other in the
// same moment.
func (r *Reconciler) takeTurn(ctx context.Context, run *v1alpha1.Run) (turn, error) {
	return r.standing(ctx, run, func(given map[types.UID]bool) { given[run.UID] = true })
}

func (r *Reconciler) standing(ctx context.Context, run *v1alpha1.Run, give func(map[types.UID]bool)) (turn, error) {
	key := client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}
	limit, err := r.concurrency(ctx, key)
	if err != nil || limit == 0 {
		return turn{}, err
	}
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	all, given, err := r.inLine(ctx, key)
	if err != nil {
		return turn{}, err
	}
	t := turn{limit: limit}
	if !given[run.UID] {
		t = turnsOf(all, limit)[run.UID]
	}
	if t.limit > 0 && t.place == 0 {
		give(given)
	}
	r.turns.keep(key, given)
	return t, nil
}

// concurrency is how many Runs of an Agent, as it is now, may be active; 0: there
// is no bound.
func (r *Reconciler) concurrency(ctx context.Context, key client.ObjectKey) (int32, error) {
	var agent v1alpha1.Agent
	err := r.client.Get(ctx, key, &agent)
	if apierrors.IsNotFound(err) || err == nil && agent.Spec.Concurrency == nil {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("getting Agent %s: %w", key.Name, err)
	}
	return *agent.Spec.Concurrency, nil
}

// keep remembers the turns of an Agent that are not to be seen yet.
func (t *turns) keep(key client.ObjectKey, given map[types.UID]bool) {
	switch {
	case len(given) == 0:
		delete(t.given, key)
	case t.given == nil:
		t.given = map[client.ObjectKey]map[types.UID]bool{key: given}
	default:
		t.given[key] = given
	}
}

// inLine are the unfinished Runs of an Agent, and the turns that were given and
// are not to be seen yet; not those that are, or are not wanted any more. Who
// calls it has the lock.
func (r *Reconciler) inLine(ctx context.Context, key client.ObjectKey) ([]candidate, map[types.UID]bool, error) {
	var list v1alpha1.RunList
	if err := r.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{UnfinishedByAgent: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Runs: %w", err)
	}
	was, given := r.turns.given[key], map[types.UID]bool{}
	known := map[types.UID][]types.UID{} // by parent: a workflow's Run has many children
	var out []candidate
	for i := range list.Items {
		run := &list.Items[i]
		c := candidate{uid: run.UID, name: run.Name, created: run.CreationTimestamp.Time, standing: standingOf(run)}
		if c.standing == standsInLine && was[c.uid] {
			given[c.uid], c.standing = true, hasItsTurn
		}
		if c.standing == standsInLine {
			var err error
			if c.above, err = r.uidsAbove(ctx, run, known); err != nil {
				return nil, nil, err
			}
		}
		out = append(out, c)
	}
	return out, given, nil
}

// uidsAbove are the Runs that one is a part of, looked up once for each parent.
func (r *Reconciler) uidsAbove(ctx context.Context, run *v1alpha1.Run, known map[types.UID][]types.UID) ([]types.UID, error) {
	owner := children.ParentOf(run)
	if owner == nil {
		return nil, nil
	}
	if _, is := known[owner.UID]; !is {
		found, err := r.lineage(ctx, run)
		if err != nil {
			return nil, err
		}
		known[owner.UID] = uids(found)
	}
	return known[owner.UID], nil
}

func uids(lineage []ancestor) []types.UID {
	out := []types.UID{} // not nil: it is known
	for _, a := range lineage {
		out = append(out, a.uid)
	}
	return out
}

// nextInLine are the Runs whose turn has come because another does not stand
// where it stood.
func (r *Reconciler) nextInLine(ctx context.Context, o client.Object) []reconcile.Request {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Agent == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}
	limit, err := r.concurrency(ctx, key)
	if err != nil || limit == 0 {
		return nil
	}
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	all, _, err := r.inLine(ctx, key)
	if err != nil {
		return nil // the cache is closing
	}
	places := turnsOf(all, limit)
	var out []reconcile.Request
	for _, c := range all {
		if t, waits := places[c.uid]; waits && t.place == 0 {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: c.name}})
		}
	}
	return out
}

// standsElsewhere lets Runs through that make room for others.
var standsElsewhere = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		if !isRun || !alsoRun {
			return false
		}
		before, after := standingOf(was), standingOf(is)
		return before != standsAside && after == standsAside
	},
	DeleteFunc: func(e event.DeleteEvent) bool {
		run, is := e.Object.(*v1alpha1.Run)
		return is && standingOf(run) != standsAside
	},
}
