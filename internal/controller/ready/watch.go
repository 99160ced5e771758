package ready

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A watch reconciles the objects that depend on another.
type watch struct {
	object     client.Object
	dependents dependents
	changes    predicate.Predicate
	// delay is how long changes are collected before the dependents are reconciled.
	delay time.Duration
}

// dependents returns the names of the objects that depend on a changed object. It reads from the cache, so an error
// means that the operator is stopping.
type dependents func(ctx context.Context, c client.Reader, changed client.Object) ([]string, error)

// specChanged passes on changes of the spec.
var specChanged = predicate.GenerationChangedPredicate{}

func (w watch) handler(c client.Reader) handler.EventHandler {
	h := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) []reconcile.Request {
		names, err := w.dependents(ctx, c, changed)
		if err != nil {
			return nil // the cache is closing
		}
		var out []reconcile.Request
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: changed.GetNamespace(), Name: name}})
		}
		return out
	})
	if w.delay > 0 {
		return delayed(h, w.delay)
	}
	return h
}

func modelsUsingModel(ctx context.Context, c client.Reader, m client.Object) ([]string, error) {
	models, _, err := cached.UsersOfModel(ctx, c, m.GetNamespace(), m.GetName())
	return models, err
}

func agentsUsingModel(ctx context.Context, c client.Reader, m client.Object) ([]string, error) {
	_, agents, err := cached.UsersOfModel(ctx, c, m.GetNamespace(), m.GetName())
	return agents, err
}

func agentsUsingAgent(ctx context.Context, c client.Reader, a client.Object) ([]string, error) {
	return cached.AgentsUsingAgent(ctx, c, a.GetNamespace(), a.GetName())
}

func agentsUsingToolset(ctx context.Context, c client.Reader, t client.Object) ([]string, error) {
	return cached.AgentsUsingToolset(ctx, c, t.GetNamespace(), t.GetName())
}

func workflowsUsingWorkflow(ctx context.Context, c client.Reader, w client.Object) ([]string, error) {
	return cached.WorkflowsUsingWorkflow(ctx, c, w.GetNamespace(), w.GetName())
}

// workflowsUsing returns the Workflows that use one of the Agents that depend on an object.
func workflowsUsing(agents dependents) dependents {
	return func(ctx context.Context, c client.Reader, changed client.Object) ([]string, error) {
		names, err := agents(ctx, c, changed)
		if err != nil {
			return nil, err
		}
		return cached.WorkflowsUsingAgents(ctx, c, changed.GetNamespace(), names)
	}
}

func agentOfRun(_ context.Context, _ client.Reader, o client.Object) ([]string, error) {
	if run, is := o.(*v1alpha1.Run); is && run.Spec.Agent != "" {
		return []string{run.Spec.Agent}, nil
	}
	return nil, nil
}

func workflowOfRun(_ context.Context, _ client.Reader, o client.Object) ([]string, error) {
	if run, is := o.(*v1alpha1.Run); is && run.Spec.Workflow != "" {
		return []string{run.Spec.Workflow}, nil
	}
	return nil, nil
}

// agentsRequiredBy returns the Agents whose revisions a deleted revision of a Workflow
// required.
func agentsRequiredBy(ctx context.Context, c client.Reader, deleted client.Object) ([]string, error) {
	return requiredBy(ctx, c, deleted, func(cm *corev1.ConfigMap, hash string) string {
		v, err := snapshot.Read(cm, hash)
		if err != nil {
			return ""
		}
		return v.Agent.Name
	})
}

// workflowsRequiredBy returns the Workflows whose revisions a deleted revision of a
// Workflow required.
func workflowsRequiredBy(ctx context.Context, c client.Reader, deleted client.Object) ([]string, error) {
	return requiredBy(ctx, c, deleted, func(cm *corev1.ConfigMap, _ string) string { return workflow.NameOf(cm) })
}

// requiredBy returns the names of the objects whose revisions a deleted revision of a Workflow required. nameOf returns
// "" for a revision of another kind.
func requiredBy(ctx context.Context, c client.Reader, deleted client.Object, nameOf func(cm *corev1.ConfigMap, hash string) string) ([]string, error) {
	var names []string
	for _, hash := range workflow.Needs(deleted) {
		var required corev1.ConfigMap
		err := c.Get(ctx, client.ObjectKey{Namespace: deleted.GetNamespace(), Name: snapshot.Name(hash)}, &required)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if name := nameOf(&required, hash); err == nil && name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// delayed returns a handler that delays requests, so that an object is reconciled once for many events.
func delayed(h handler.EventHandler, by time.Duration) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) { h.Create(ctx, e, delayedQueue{q, by}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) { h.Update(ctx, e, delayedQueue{q, by}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) { h.Delete(ctx, e, delayedQueue{q, by}) },
	}
}

// A delayedQueue adds each request after a delay. A request that is already waiting keeps its time.
type delayedQueue struct {
	requestQueue

	by time.Duration
}

func (d delayedQueue) Add(r reconcile.Request) { d.AddAfter(r, d.by) }

// A PriceSignal reconciles all Models, Agents and Workflows after the list of prices changed.
type PriceSignal struct {
	kinds map[string]chan event.GenericEvent
}

// NewPriceSignal returns a signal to give to Setup.
func NewPriceSignal() *PriceSignal {
	s := &PriceSignal{map[string]chan event.GenericEvent{}}
	for _, name := range []string{models.name, agents.name, workflows.name} {
		s.kinds[name] = make(chan event.GenericEvent, 1)
	}
	return s
}

// Send does not block. Several signals that are not handled yet count as one. Only the leading operator handles them: a
// new leader reconciles all objects anyway.
func (p *PriceSignal) Send() {
	for _, c := range p.kinds {
		select {
		case c <- event.GenericEvent{Object: &v1alpha1.Model{}}:
		default:
		}
	}
}

// source returns a source of events for the controller of a kind.
func (p *PriceSignal) source(name string, c client.Reader, newList func() client.ObjectList) source.Source {
	return source.Channel(p.kinds[name], handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := newList()
		if err := c.List(ctx, list); err != nil {
			return nil // the cache is closing
		}
		var out []reconcile.Request
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))}) //nolint:forcetypeassert // items of lists are objects
			return nil
		})
		return out
	}))
}
