package main

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// said returns a step with a text.
func said(by step.Role, text string) step.Step {
	return step.Step{Seq: 1, Role: by, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

// model.Collect reads a stream as the runner does.
func TestTheParrotCallsAndRepeats(t *testing.T) {
	m, err := newParrot(t.Context(), registry.ModelSpec{Model: task.Model{Model: "grey"}})
	if err != nil {
		t.Fatal(err)
	}
	asked := said(step.RoleUser, "Where is order 7?")
	resp, err := model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{asked}}), nil)
	if err != nil || resp.Finish != step.FinishCalls || len(resp.Calls) != 1 ||
		resp.Calls[0].Args != `{"number":7}` {
		t.Fatalf("it answers %+v, %v", resp, err)
	}
	result := said(step.RoleTool, "Order 7: two lamps.")
	both := []step.Step{asked, result}
	resp, err = model.Collect(m.Stream(t.Context(), &model.Request{Steps: both}), nil)
	if err != nil || resp.Finish != step.FinishStop || resp.Parts[0].Text != "Order 7: two lamps." {
		t.Errorf("it answers %+v, %v", resp, err)
	}
	if _, err := newParrot(t.Context(), registry.ModelSpec{Model: task.Model{Model: "pink"}}); err == nil {
		t.Error("there is a pink parrot")
	}
}
