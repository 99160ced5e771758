// Package queue orders the Runs of an Agent that bounds how many may be active.
//
// A Run takes its place with its first attempt, and keeps it until it ends: also while it waits for users, between
// attempts, and while it is paused. Only while it waits for child Runs does it release its place, and it takes the
// place back without waiting: otherwise two Runs that wait for each other's children would wait forever. For the same
// reason the places of its ancestors do not count for a Run. A Run that is paused before it started is not in the
// queue.
package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
)

// Queue computes positions from a cache. It remembers which Runs got a place that the cache may not show yet: otherwise
// several Runs that are reconciled together could each take the last place.
type Queue struct {
	client client.Reader
	mu     sync.Mutex
	given  map[client.ObjectKey]map[types.UID]bool // by Agent
}

// New returns a Queue that reads from a client.
func New(c client.Reader) *Queue { return &Queue{client: c} }

// UnfinishedByAgent is the field that indexes Runs which have not ended by their
// Agent.
const UnfinishedByAgent = "unfinished-by-agent"

// IndexUnfinishedByAgent returns the values of a Run in the index UnfinishedByAgent.
func IndexUnfinishedByAgent(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Agent == "" || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.Agent}
}

// Position returns the position of a Run that has not started.
func (q *Queue) Position(ctx context.Context, run *v1alpha1.Run) (Position, error) {
	return q.position(ctx, run, func(map[types.UID]bool) {})
}

// Take returns the position of a Run and, if the Run may start, gives it the place.
func (q *Queue) Take(ctx context.Context, run *v1alpha1.Run) (Position, error) {
	return q.position(ctx, run, func(given map[types.UID]bool) { given[run.UID] = true })
}

func (q *Queue) position(ctx context.Context, run *v1alpha1.Run, give func(map[types.UID]bool)) (Position, error) {
	key := client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}
	limit, err := q.concurrency(ctx, key)
	if err != nil || limit == 0 {
		return Position{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all, given, err := q.entries(ctx, key)
	if err == nil {
		err = q.enqueue(ctx, run, all)
	}
	if err != nil {
		return Position{}, err
	}
	t := Position{Limit: limit}
	if !given[run.UID] {
		t = Positions(all, limit)[run.UID]
	}
	if t.Limit > 0 && t.Number == 0 {
		give(given)
	}
	q.remember(key, given)
	return t, nil
}

// concurrency returns how many Runs of an Agent may be active now; 0: no bound.
func (q *Queue) concurrency(ctx context.Context, key client.ObjectKey) (int32, error) {
	var agent v1alpha1.Agent
	err := q.client.Get(ctx, key, &agent)
	if apierrors.IsNotFound(err) || err == nil && agent.Spec.Concurrency == nil {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("getting Agent %s: %w", key.Name, err)
	}
	return *agent.Spec.Concurrency, nil
}

// remember keeps the Runs of an Agent with a place that the cache does not show yet.
func (q *Queue) remember(key client.ObjectKey, given map[types.UID]bool) {
	switch {
	case len(given) == 0:
		delete(q.given, key)
	case q.given == nil:
		q.given = map[client.ObjectKey]map[types.UID]bool{key: given}
	default:
		q.given[key] = given
	}
}

// entries returns the unfinished Runs of an Agent, and those with a place that the cache does not show yet. The caller
// holds the lock.
func (q *Queue) entries(ctx context.Context, key client.ObjectKey) ([]Entry, map[types.UID]bool, error) {
	var list v1alpha1.RunList
	if err := q.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{UnfinishedByAgent: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Runs: %w", err)
	}
	was, given := q.given[key], map[types.UID]bool{}
	known := map[types.UID][]types.UID{} // by parent: a workflow's Run has many children
	var out []Entry
	for i := range list.Items {
		run := &list.Items[i]
		c := Entry{UID: run.UID, Name: run.Name, Created: run.CreationTimestamp.Time, State: StateOf(run)}
		if c.State == Waiting && was[c.UID] {
			given[c.UID], c.State = true, Started
		}
		if c.State == Waiting {
			if err := q.completeWaiting(ctx, run, known, &c); err != nil {
				return nil, nil, err
			}
		}
		out = append(out, c)
	}
	return out, given, nil
}

// completeWaiting completes the entry of a Run that waits. A Run that waits for the end of another
// is not queued: it would keep others from starting.
func (q *Queue) completeWaiting(ctx context.Context, run *v1alpha1.Run, known map[types.UID][]types.UID, c *Entry) error {
	isReady, err := continuing.Reader{Cache: q.client, Live: q.client}.IsReady(ctx, run)
	if err != nil {
		return err
	}
	if !isReady {
		c.State = NotQueued
		return nil
	}
	c.Ancestors, err = q.ancestorUIDs(ctx, run, known)
	return err
}

// enqueue puts the Run that asks for its position in the queue, if it waits: its controller may know of the end of its
// source before this cache does.
func (q *Queue) enqueue(ctx context.Context, run *v1alpha1.Run, all []Entry) (err error) {
	i := slices.IndexFunc(all, func(c Entry) bool { return c.UID == run.UID })
	if i < 0 || all[i].State != NotQueued || StateOf(run) != Waiting {
		return nil
	}
	all[i].State = Waiting
	all[i].Ancestors, err = q.ancestorUIDs(ctx, run, map[types.UID][]types.UID{})
	return err
}

// ancestorUIDs returns the ancestors of a Run, looked up once for each parent.
func (q *Queue) ancestorUIDs(ctx context.Context, run *v1alpha1.Run, known map[types.UID][]types.UID) ([]types.UID, error) {
	owner := children.ParentOf(run)
	if owner == nil {
		return nil, nil
	}
	if _, is := known[owner.UID]; !is {
		found, err := children.Ancestors(ctx, q.client, run)
		if err != nil {
			return nil, err
		}
		known[owner.UID] = uids(found)
	}
	return known[owner.UID], nil
}

func uids(lineage []children.Ancestor) []types.UID {
	out := []types.UID{} // not nil: it is known
	for _, a := range lineage {
		out = append(out, a.UID)
	}
	return out
}

// Next returns the Runs that may start because another has released its place.
func (q *Queue) Next(ctx context.Context, o client.Object) []reconcile.Request {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Agent == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}
	limit, err := q.concurrency(ctx, key)
	if err != nil || limit == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all, _, err := q.entries(ctx, key)
	if err != nil {
		return nil // the cache is closing
	}
	places := Positions(all, limit)
	var out []reconcile.Request
	for _, c := range all {
		if t, waits := places[c.UID]; waits && t.Number == 0 {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: c.Name}})
		}
	}
	return out
}

// ReleasesPlace lets events of Runs through that make room for others.
var ReleasesPlace = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		if !isRun || !alsoRun {
			return false
		}
		before, after := StateOf(was), StateOf(is)
		return before != NotQueued && after == NotQueued
	},
	DeleteFunc: func(e event.DeleteEvent) bool {
		run, is := e.Object.(*v1alpha1.Run)
		return is && StateOf(run) != NotQueued
	},
}
