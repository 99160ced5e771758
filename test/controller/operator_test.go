package controller_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/deckhand-dev/deckhand/internal/apitest"
	"github.com/deckhand-dev/deckhand/internal/labelindex"
	"github.com/deckhand-dev/deckhand/internal/operator"
)

// newOperator is an operator of one namespace that serves nothing.
func newOperator(t *testing.T, namespace string, mods ...func(*operator.Options)) ctrl.Manager {
	t.Helper()
	o := operator.Options{
		RunnerImage: "runner:1", RunnerPullPolicy: "IfNotPresent", PolicyPrefix: "deckhand", Namespaces: []string{namespace},
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	}
	for _, mod := range mods {
		mod(&o)
	}
	mgr, err := operator.New(t.Context(), apitest.Get(t).Config, o)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// start runs an operator; stop stops it and waits for its end.
func start(t *testing.T, mgr ctrl.Manager) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = func() error {
		cancel()
		return <-done
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatalf("the cache does not sync: %v", stop())
	}
	return stop
}

func TestTheOperatorLooksUpLabelsInIndexes(t *testing.T) {
	mgr := newOperator(t, apitest.Get(t).Namespace(t))
	stop := start(t, mgr)
	if _, is := mgr.GetClient().(labelindex.Client); !is {
		t.Errorf("its client is a %T", mgr.GetClient())
	}
	err := labelindex.Each(func(o client.Object, field string, _ client.IndexerFunc) error {
		gvk, err := apiutil.GVKForObject(o, mgr.GetScheme())
		if err != nil {
			return err
		}
		list, err := mgr.GetScheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return err
		}
		return mgr.GetCache().List(t.Context(), list.(client.ObjectList), client.MatchingFields{field: "x"}) //nolint:forcetypeassert // a list is one
	})
	if err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Errorf("stopping it: %v", err)
	}
}
