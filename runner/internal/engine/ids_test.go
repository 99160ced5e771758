package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// asksAgain is a layer that adds a message before the model is asked, and asks again behind another one.
func asksAgain() *middleware.Stack {
	stack, _ := middleware.Build(middleware.Layer{Name: "asks", Model: func(next middleware.ModelFunc) middleware.ModelFunc {
		return func(ctx context.Context, t *middleware.Turn) (model.Response, error) {
			if err := t.Say("be kind", step.NoteRunner); err != nil {
				return model.Response{}, err
			}
			if _, err := next(ctx, t); err != nil {
				return model.Response{}, err
			}
			if err := t.Say("say it better", step.NoteRunner); err != nil {
				return model.Response{}, err
			}
			return next(ctx, t)
		}
	}})
	return stack
}

// The answer has the id of the last step.started before it, which status and calls have, too.
func TestTheIDOfATurnIsThatOfItsAnswer(t *testing.T) {
	s := newTestRun(nil, says("one"), says("two"))
	s.Actor.Stack = asksAgain()
	var began []string
	s.StepBegan = func(id string) { began = append(began, id) }
	out := s.run(t)
	if out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	var got []string
	for _, e := range s.sink.all {
		switch e := e.(type) {
		case events.StepStarted:
			got = append(got, fmt.Sprintf("%s %d is asked", e.ID, e.Step))
		case events.Reset:
			got = append(got, fmt.Sprintf("%d is reset", e.Step))
		case events.StepFinished:
			got = append(got, fmt.Sprintf("%d of %s", e.Step.Seq, e.Step.Role))
		}
	}
	want := []string{"1 of user", "2 of user", "s3 3 is asked", "3 of user", "3 is reset", "s4 4 is asked", "4 of assistant"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s2", "s3", "s4"}, began); diff != "" {
		t.Errorf("ids that began -want +got:\n%s", diff)
	}
	if r := out.Progress.Recent; len(r) != 1 || r[0].ID != "s4" {
		t.Errorf("progress.recent is %+v", r)
	}
}
