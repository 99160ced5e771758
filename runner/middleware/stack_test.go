package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// named is a tool that does nothing under a name.
func named(name string) tool.Tool {
	return tool.Tool{Spec: tool.Spec{Name: name}, Call: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}
}

// diary notes who did what, in order.
type diary []string

func (d *diary) note(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

// layer is one that writes down all it does.
func (d *diary) layer(name string, priority int) middleware.Layer {
	return middleware.Layer{
		Name: name, Priority: priority,
		Start: func(context.Context, *middleware.SessionStart) error { d.note("start %s", name); return nil },
		Stop: func(_ context.Context, c middleware.SessionEnd) error {
			d.note("stop %s %s", name, c.Reason)
			return nil
		},
		Model: func(next middleware.ModelFunc) middleware.ModelFunc {
			return func(ctx context.Context, t *middleware.Turn) (model.Response, error) {
				d.note("before %s", name)
				defer d.note("after %s", name)
				return next(ctx, t)
			}
		},
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				d.note("before %s", name)
				defer d.note("after %s", name)
				return next(ctx, c)
			}
		},
	}
}

func build(t *testing.T, layers ...middleware.Layer) *middleware.Stack {
	t.Helper()
	s, err := middleware.Build(layers...)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return s
}

func expect(t *testing.T, want []string, got diary) {
	t.Helper()
	if diff := cmp.Diff(want, []string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLayersStandInTheirOrder(t *testing.T) {
	var d diary
	s := build(t,
		d.layer("last", 500), d.layer("a", 7), d.layer("b", 7), d.layer("first", -1), d.layer("c", 7), d.layer("d", 7),
		d.layer("e", 7), d.layer("f", 7), d.layer("g", 7), d.layer("h", 7), d.layer("i", 7), d.layer("j", 7))
	order := []string{"first", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "last"}
	var around, start, stop []string
	for _, name := range order {
		around = append(around, "before "+name)
		start = append(start, "start "+name)
		stop = append(stop, "stop "+name+" Finished")
	}
	slices.Reverse(stop)
	around = append(around, "core")
	for _, name := range slices.Backward(order) {
		around = append(around, "after "+name)
	}

	_, _ = s.Tool(func(context.Context, *tool.Call) (tool.Result, error) {
		d.note("core")
		return tool.Result{}, nil
	})(t.Context(), &tool.Call{})
	expect(t, around, d)

	d = nil
	_, _ = s.Model(func(context.Context, *middleware.Turn) (model.Response, error) {
		d.note("core")
		return model.Response{}, nil
	})(t.Context(), &middleware.Turn{})
	expect(t, around, d)

	d = nil
	if err := s.Start(t.Context(), &middleware.SessionStart{}); err != nil {
		t.Errorf("Start: %v", err)
	}
	expect(t, start, d)

	d = nil
	if err := s.Stop(t.Context(), middleware.SessionEnd{Reason: "Finished"}); err != nil {
		t.Errorf("Stop: %v", err)
	}
	expect(t, stop, d)
}

// Sorting few is always stable: only many show whether it is meant.
func TestManyLayersOfOnePriorityKeepTheirOrder(t *testing.T) {
	var d diary
	var layers []middleware.Layer
	var want []string
	for i := range 200 {
		layers = append(layers, d.layer(fmt.Sprint(i), i%3))
	}
	for priority := range 3 {
		for i := priority; i < 200; i += 3 {
			want = append(want, fmt.Sprintf("start %d", i))
		}
	}
	if err := build(t, layers...).Start(t.Context(), &middleware.SessionStart{}); err != nil {
		t.Fatal(err)
	}
	expect(t, want, d)
}

func TestBuildLeavesWhatItIsGivenAsItIs(t *testing.T) {
	given := []middleware.Layer{{Name: "b", Priority: 2}, {Name: "a", Priority: 1}}
	build(t, given...)
	if given[0].Name != "b" {
		t.Error("Build sorted the caller's layers")
	}
}

func TestBuildRefuses(t *testing.T) {
	cases := map[string]struct {
		layers []middleware.Layer
		want   string
	}{
		"a layer without a name": {
			[]middleware.Layer{{Priority: 12}},
			"the layer of priority 12 has no name",
		},
		"two layers of one name": {
			[]middleware.Layer{{Name: "log", Priority: 9}, {Name: "log", Priority: 3}},
			`two layers are named "log", of the priorities 3 and 9; rename one`,
		},
		"a tool that two layers bring": {
			[]middleware.Layer{{Name: "x", Tools: []tool.Tool{named("get")}}, {Name: "y", Tools: []tool.Tool{named("put"), named("get")}}},
			`the layers "x" and "y" both bring a tool "get"; rename one`,
		},
		"a tool that one layer brings twice": {
			[]middleware.Layer{{Name: "x", Tools: []tool.Tool{named("get"), named("get")}}},
			`the layer "x" brings the tool "get" twice`,
		},
		"a tool without Call": {
			[]middleware.Layer{{Name: "x", Tools: []tool.Tool{named("get"), {}}}},
			`tool 2 of the layer "x" has no Call`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := middleware.Build(tc.layers...)
			if err == nil || err.Error() != tc.want {
				t.Errorf("Build() = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestToolsAndInstructionsComeInTheOrderOfTheLayers(t *testing.T) {
	s := build(t,
		middleware.Layer{Name: "inner", Priority: 2, Tools: []tool.Tool{named("c")}, Instructions: "Then this."},
		middleware.Layer{Name: "silent", Priority: 1},
		middleware.Layer{Name: "outer", Tools: []tool.Tool{named("b"), named("a")}, Instructions: "First this."})
	names := func() (all []string) {
		for _, t := range s.Tools() {
			all = append(all, t.Name)
		}
		return all
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, names()); diff != "" {
		t.Errorf("Tools() -want +got:\n%s", diff)
	}
	s.Tools()[0] = named("z")
	if got := names()[0]; got != "b" {
		t.Errorf("a caller changed the Stack's own tools: the first is now %s", got)
	}
	if got, want := s.Instructions(), "First this.\n\nThen this."; got != want {
		t.Errorf("Instructions() = %q, want %q", got, want)
	}
}

func TestNoLayersAreFine(t *testing.T) {
	empty := build(t)
	for name, s := range map[string]*middleware.Stack{"nil": nil, "empty": empty} {
		t.Run(name, func(t *testing.T) {
			asked, called := 0, 0
			_, _ = s.Model(func(context.Context, *middleware.Turn) (model.Response, error) {
				asked++
				return model.Response{}, nil
			})(t.Context(), nil)
			_, _ = s.Tool(func(context.Context, *tool.Call) (tool.Result, error) {
				called++
				return tool.Result{}, nil
			})(t.Context(), nil)
			err := errors.Join(s.Start(t.Context(), &middleware.SessionStart{}), s.Stop(t.Context(), middleware.SessionEnd{}))
			if asked != 1 || called != 1 || err != nil || len(s.Tools()) != 0 || s.Instructions() != "" {
				t.Errorf("asked %d, called %d, error %v, tools %v, instructions %q", asked, called, err, s.Tools(), s.Instructions())
			}
		})
	}
}

func TestAFailedStartStopsWhatHadStarted(t *testing.T) {
	failures := map[string]func() error{
		"an error": func() error { return &middleware.VetoError{By: "d", Reason: "no"} },
		"a panic":  func() error { panic("no") },
	}
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			var d diary
			broken := d.layer("d", 4)
			broken.Start = func(context.Context, *middleware.SessionStart) error { return fail() }
			s := build(t, d.layer("a", 1), middleware.Layer{Name: "b", Priority: 2}, d.layer("c", 3), broken, d.layer("e", 5))
			err := s.Start(t.Context(), &middleware.SessionStart{})
			if err == nil || !strings.HasPrefix(err.Error(), `starting the layer "d": `) {
				t.Errorf("Start() = %v", err)
			}
			if veto, ok := errors.AsType[*middleware.VetoError](err); name == "an error" && (!ok || veto.Reason != "no") {
				t.Errorf("Start() = %v, which hides the veto", err)
			}
			expect(t, []string{"start a", "start c", "stop c ", "stop a "}, d)
		})
	}
}

func TestAStopThatFailsKeepsNoOtherFromStopping(t *testing.T) {
	var d diary
	failed, panicked := d.layer("failed", 2), d.layer("panicked", 3)
	cause := errors.New("disk gone")
	failed.Stop = func(context.Context, middleware.SessionEnd) error { return cause }
	panicked.Stop = func(context.Context, middleware.SessionEnd) error { panic("oh") }
	s := build(t, d.layer("a", 1), failed, panicked, d.layer("z", 4))
	err := s.Stop(t.Context(), middleware.SessionEnd{Reason: "Finished"})
	expect(t, []string{"stop z Finished", "stop a Finished"}, d)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), `stopping the layer "panicked": panic in a layer: oh`) {
		t.Errorf("Stop() = %v", err)
	}
}

func TestAPanicOfALayerIsAnError(t *testing.T) {
	s := build(t, middleware.Layer{
		Name:  "broken",
		Model: func(middleware.ModelFunc) middleware.ModelFunc { return nil },
		Tool: func(middleware.ToolFunc) middleware.ToolFunc {
			return func(context.Context, *tool.Call) (tool.Result, error) { panic("oh") }
		},
	}, middleware.Layer{Name: "whole", Priority: -1})
	if _, err := s.Tool(core)(t.Context(), &tool.Call{}); err == nil || !strings.HasPrefix(err.Error(), "panic in a layer: oh\n") {
		t.Errorf("the tool's error is %v", err)
	}
	_, err := s.Model(func(context.Context, *middleware.Turn) (model.Response, error) { return model.Response{}, nil })(t.Context(), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "panic in a layer: runtime error") {
		t.Errorf("the model's error is %v", err)
	}
}

func TestALayerMayAnswerInsteadOfTheCore(t *testing.T) {
	s := build(t, middleware.Layer{Name: "cache", Tool: func(middleware.ToolFunc) middleware.ToolFunc {
		return func(context.Context, *tool.Call) (tool.Result, error) { return tool.Result{Text: "known"}, nil }
	}})
	got, err := s.Tool(func(context.Context, *tool.Call) (tool.Result, error) {
		t.Error("the core was called")
		return tool.Result{}, nil
	})(t.Context(), &tool.Call{})
	if got.Text != "known" || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestACallThroughLayersAllocatesNothing(t *testing.T) {
	call, ctx, c := build(t, passing(10)...).Tool(core), t.Context(), &tool.Call{Name: "read"}
	if n := testing.AllocsPerRun(100, func() { _, _ = call(ctx, c) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
