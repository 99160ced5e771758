package config_test

import (
	"context"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func addModel(t testing.TB, r *config.Registry, driver string, f registry.ModelFactory) {
	t.Helper()
	if err := r.AddModel(driver, f); err != nil {
		t.Fatal(err)
	}
}

func addTool(t testing.TB, r *config.Registry, name string, f registry.ToolFactory) {
	t.Helper()
	if err := r.AddTool(name, f); err != nil {
		t.Fatal(err)
	}
}

func addBackend(t testing.TB, r *config.Registry, path string, f registry.BackendFactory) {
	t.Helper()
	if err := r.AddBackend(path, f); err != nil {
		t.Fatal(err)
	}
}

func addLayer(t testing.TB, r *config.Registry, f registry.LayerFactory) {
	t.Helper()
	if err := r.AddLayer(f); err != nil {
		t.Fatal(err)
	}
}

func TestARegistryRefuses(t *testing.T) {
	newModel := func(context.Context, registry.ModelSpec) (model.Model, error) { return emptyModel{}, nil }
	newTool := func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return nil, nil }
	newBackend := func(context.Context, registry.BackendSpec) (backend.Driver, error) { return nil, nil } //nolint:nilnil // never called
	newStore := func(context.Context, registry.StoreSpec) (session.Store, error) { return nil, nil }      //nolint:nilnil // never called
	cases := map[string]struct {
		add  func(*config.Registry) error // twice
		want string
	}{
		"two models of one driver":      {func(r *config.Registry) error { return r.AddModel("acme", newModel) }, `runner.WithModel("acme") is used twice; rename one`},
		"two tools of one name":         {func(r *config.Registry) error { return r.AddTool("crm", newTool) }, `runner.WithTool("crm") is used twice; rename one`},
		"two backends of one path":      {func(r *config.Registry) error { return r.AddBackend("/books/", newBackend) }, `runner.WithBackend("/books") is used twice; rename one`},
		"two stores":                    {func(r *config.Registry) error { return r.AddStore(newStore) }, `runner.WithStore is used twice; a runner has one store`},
		"a tool without a name":         {func(r *config.Registry) error { return r.AddTool("", newTool) }, `runner.WithTool: the name is empty`},
		"a backend without a path":      {func(r *config.Registry) error { return r.AddBackend("", newBackend) }, `runner.WithBackend: the name is empty`},
		"a model without a factory":     {func(r *config.Registry) error { return r.AddModel("acme", nil) }, `runner.WithModel("acme"): the factory is nil`},
		"a layer without a factory":     {func(r *config.Registry) error { return r.AddLayer(nil) }, `runner.WithLayer: the factory is nil`},
		"a store without a factory":     {func(r *config.Registry) error { return r.AddStore(nil) }, `runner.WithStore: the factory is nil`},
		"a listener without a function": {func(r *config.Registry) error { return r.AddListener(nil) }, `runner.WithListener: the listener is nil`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := config.NewRegistry()
			_ = tc.add(r)
			if err := tc.add(r); err == nil || err.Error() != tc.want {
				t.Errorf("the second time: %v, want %s", err, tc.want)
			}
		})
	}
}

func TestARegistryTakesSeveralLayersAndListeners(t *testing.T) {
	r := config.NewRegistry()
	for range 2 {
		addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) { return middleware.Layer{}, nil })
		if err := r.AddListener(func(events.Event) {}); err != nil {
			t.Error(err)
		}
	}
	if got := len(r.Listeners()); got != 2 {
		t.Errorf("it has %d listeners", got)
	}
}

func TestAFactoryThatPanicsIsMisconfigured(t *testing.T) {
	cases := map[string]func(*testing.T, *config.Registry){
		"the model m": func(t *testing.T, r *config.Registry) {
			addModel(t, r, "acme", func(context.Context, registry.ModelSpec) (model.Model, error) { panic("oh") })
		},
		"a layer": func(t *testing.T, r *config.Registry) {
			addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) { panic("oh") })
		},
		"the tools": func(t *testing.T, r *config.Registry) {
			addTool(t, r, "crm", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { panic("oh") })
		},
		"the files": func(t *testing.T, r *config.Registry) {
			addBackend(t, r, "/books", func(context.Context, registry.BackendSpec) (backend.Driver, error) { panic("oh") })
		},
		"the store": func(t *testing.T, r *config.Registry) {
			if err := r.AddStore(func(context.Context, registry.StoreSpec) (session.Store, error) { panic("oh") }); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, add := range cases {
		t.Run(name, func(t *testing.T) {
			r := config.NewRegistry()
			add(t, r)
			p := parts(t)
			if name == "the model m" {
				p.Snapshot.Models[0].Provider, p.Snapshot.Models[0].Driver = "Custom", "acme"
			}
			if name == "the tools" {
				p.Snapshot.Agent.Tools = []task.Tool{{Custom: "crm"}}
			}
			_, err := r.Build(t.Context(), p)
			if got := misconfigured(err); !strings.Contains(got, "the factory panicked: oh") {
				t.Errorf("Build() = %v", err)
			}
		})
	}
}
