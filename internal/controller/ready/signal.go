package ready

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

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
