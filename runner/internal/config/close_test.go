package config_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A closingRunner is built with one extension of each kind. It records when each is made
// and closed.
type closingRunner struct {
	*config.Registry

	mu     sync.Mutex
	events []string
	made   map[string]int
}

// open records that something is made, and returns the function that closes it.
func (c *closingRunner) open(what string) func() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[what]++
	name := fmt.Sprintf("%s %d", what, c.made[what])
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, name)
		return nil
	}
}

type closingModel struct {
	emptyModel
	close func() error
}

func (m *closingModel) Close() error { return m.close() }

type closingBackend struct {
	backend.Driver
	close func() error
}

func (b *closingBackend) Close() error { return b.close() }

type closingStore struct {
	session.Store
	close func() error
}

func (s *closingStore) Close() error { return s.close() }

func newClosingRunner(t *testing.T) *closingRunner {
	t.Helper()
	c := &closingRunner{Registry: config.NewRegistry(), made: map[string]int{}}
	addModel(t, c.Registry, "acme", func(context.Context, registry.ModelSpec) (model.Model, error) {
		return &closingModel{close: c.open("model")}, nil
	})
	addBackend(t, c.Registry, "/handbook", func(context.Context, registry.BackendSpec) (backend.Driver, error) {
		return &closingBackend{state.New(state.Options{}), c.open("backend")}, nil
	})
	if err := c.AddStore(func(context.Context, registry.StoreSpec) (session.Store, error) {
		return &closingStore{memory.New(memory.Options{}), c.open("store")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	addLayer(t, c.Registry, func(_ context.Context, s registry.LayerSpec) (middleware.Layer, error) {
		rest := idle("rest")
		rest.Closer = tool.CloseFunc(c.open("rest of " + s.Agent.Name))
		return middleware.Layer{Name: "calm", Tools: []tool.Tool{rest}, Close: c.open("layer of " + s.Agent.Name)}, nil
	})
	addTool(t, c.Registry, "Wait", func(_ context.Context, s registry.ToolSpec) ([]tool.Tool, error) {
		wait := idle("wait")
		wait.Closer = tool.CloseFunc(c.open("tool of " + s.Agent.Name))
		return []tool.Tool{wait}, nil
	})
	return c
}

// closingParts returns the parts of a Run of Agent fixer, which calls Agent helper.
func closingParts(t *testing.T) config.Parts {
	t.Helper()
	p := parts(t)
	p.Snapshot.Models[0].Provider, p.Snapshot.Models[0].Driver = "Custom", "acme"
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Wait"}, {Agent: "helper"}}
	p.Snapshot.Agents = []task.Agent{{Name: "helper", Tools: []task.Tool{{Custom: "Wait"}}}}
	return p
}

func TestFactoriesAreCalledOnceForEachSession(t *testing.T) {
	c := newClosingRunner(t)
	built, err := c.Build(t.Context(), closingParts(t))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"model": 1, "backend": 1, "store": 1, "layer of fixer": 1, "rest of fixer": 1, "tool of fixer": 1, "layer of helper": 1, "rest of helper": 1, "tool of helper": 1}
	if diff := cmp.Diff(want, c.made); diff != "" {
		t.Errorf("made before the first session of helper, -want +got:\n%s", diff)
	}
	for range 3 {
		if _, err := built.Engine.Actors(engine.Delegation{Delegation: tool.Delegation{Agent: "helper"}}); err != nil {
			t.Fatal(err)
		}
	}
	want["layer of helper"], want["rest of helper"], want["tool of helper"] = 3, 3, 3
	if diff := cmp.Diff(want, c.made); diff != "" {
		t.Errorf("made with three sessions of helper, -want +got:\n%s", diff)
	}
	if len(c.events) > 0 {
		t.Errorf("closed before the end: %v", c.events)
	}
}

// What was made for a session is closed when it ends. What was made when its agent was
// validated is closed with the attempt: the factory may return it again.
func TestWhatFactoriesMadeForASessionIsClosedWithIt(t *testing.T) {
	c := newClosingRunner(t)
	built, err := c.Build(t.Context(), closingParts(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		helper, err := built.Engine.Actors(engine.Delegation{Delegation: tool.Delegation{Agent: "helper"}})
		if err != nil {
			t.Fatal(err)
		}
		helper.Close()
	}
	ended := []string{"tool of helper 2", "rest of helper 2", "layer of helper 2", "tool of helper 3", "rest of helper 3", "layer of helper 3"}
	if diff := cmp.Diff(ended, c.events); diff != "" {
		t.Errorf("closed with the sessions -want +got:\n%s", diff)
	}
	c.events = nil
	if err := built.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.events)
	want := []string{"backend 1", "layer of fixer 1", "layer of helper 1", "model 1", "rest of fixer 1", "rest of helper 1", "store 1", "tool of fixer 1", "tool of helper 1"}
	if diff := cmp.Diff(want, c.events); diff != "" {
		t.Errorf("closed with the attempt -want +got:\n%s", diff)
	}
}

func TestWhatFactoriesMadeIsClosedOnceTheLastFirst(t *testing.T) {
	c := newClosingRunner(t)
	p := closingParts(t)
	p.Snapshot.Agent.Tools, p.Snapshot.Agents = p.Snapshot.Agent.Tools[:1], nil
	built, err := c.Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := built.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"tool of fixer 1", "rest of fixer 1", "layer of fixer 1", "store 1", "backend 1", "model 1"}, c.events); diff != "" {
		t.Errorf("closed -want +got:\n%s", diff)
	}
}

func TestWhatFactoriesMadeIsClosedThoughTheRestCannotBeBuilt(t *testing.T) {
	c := newClosingRunner(t)
	p := closingParts(t)
	p.Snapshot.Agent.Tools = append(p.Snapshot.Agent.Tools, task.Tool{Custom: "Missing"})
	p.Snapshot.Agents = nil
	built, err := c.Build(t.Context(), p)
	if got := misconfigured(err); !strings.Contains(got, `this runner has no custom tool "Missing"; it has Wait`) {
		t.Fatalf("Build() = %v", err)
	}
	if err := built.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"tool of fixer 1", "rest of fixer 1", "layer of fixer 1", "store 1", "backend 1", "model 1"}, c.events); diff != "" {
		t.Errorf("closed -want +got:\n%s", diff)
	}
}

func TestAToolThatSessionsShareIsClosedOnce(t *testing.T) {
	r := config.NewRegistry()
	closed := 0
	shared, ofLayer := idle("wait"), idle("rest")
	shared.Closer = tool.CloseFunc(func() error { closed++; return nil })
	ofLayer.Closer = shared.Closer
	addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
		return middleware.Layer{Name: "calm", Tools: []tool.Tool{ofLayer}}, nil
	})
	addTool(t, r, "Wait", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return []tool.Tool{shared}, nil })
	p := parts(t)
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Wait"}, {Agent: "helper"}}
	p.Snapshot.Agents = []task.Agent{{Name: "helper", Tools: []task.Tool{{Custom: "Wait"}}}}
	built, err := r.Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		helper, err := built.Engine.Actors(engine.Delegation{Delegation: tool.Delegation{Agent: "helper"}})
		if err != nil {
			t.Fatal(err)
		}
		helper.Close()
	}
	if closed != 0 {
		t.Error("a session closes what others use")
	}
	if err := built.Close(t.Context()); err != nil || closed != 1 {
		t.Errorf("closed %d times, %v", closed, err)
	}
}

func TestClosingThatFailsKeepsNoOtherFromClosing(t *testing.T) {
	r := config.NewRegistry()
	var closed []string
	for name, f := range map[string]func() error{"a": func() error { return errors.New("stuck") }, "b": func() error { panic("oh") }, "c": func() error { return nil }} {
		addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
			return middleware.Layer{Name: name, Close: func() error { closed = append(closed, name); return f() }}, nil
		})
	}
	built, err := r.Build(t.Context(), parts(t))
	if err != nil {
		t.Fatal(err)
	}
	err = built.Close(t.Context())
	if len(closed) != 3 || err == nil || !strings.Contains(err.Error(), "closing the layer a: stuck") || !strings.Contains(err.Error(), "closing the layer b: panic: oh") {
		t.Errorf("closed %v: %v", closed, err)
	}
}

func TestClosingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := config.NewRegistry()
		forever := make(chan struct{})
		defer close(forever)
		addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
			return middleware.Layer{Name: "first", Close: func() error { t.Error("closed"); return nil }}, nil
		})
		addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
			return middleware.Layer{Name: "slow", Close: func() error { <-forever; return nil }}, nil
		})
		built, err := r.Build(t.Context(), parts(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := built.Close(ctx); err == nil || err.Error() != "closing the layer slow took too long; 1 more are not closed" {
			t.Errorf("Close() = %v", err)
		}
	})
}

// Calls of one turn open their sessions side by side.
func TestSessionsAreMadeSideBySide(t *testing.T) {
	c := newClosingRunner(t)
	p := closingParts(t)
	p.Snapshot.Models = append(p.Snapshot.Models, p.Snapshot.Models[0])
	p.Snapshot.Models[1].Name = "small"
	p.Snapshot.Agent.Routes = map[string][]string{task.RouteSubagent: {"small"}}
	built, err := c.Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := built.Engine.Actors(engine.Delegation{Own: true, Delegation: tool.Delegation{Agent: "fixer"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := c.made["tool of fixer"]; got != 51 {
		t.Errorf("%d tools, want one for each session", got)
	}
}
