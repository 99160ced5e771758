package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
)

var digits = regexp.MustCompile(`[0-9]+`)

// parrot is a scripted model: it calls the tool Orders with the number in the
// prompt and answers with the tool's result. A real model would send a request.
type parrot struct{}

// newParrot returns the model for Models with custom: {driver: parrot}.
func newParrot(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	if s.Model.Model != "grey" {
		return nil, fmt.Errorf("there is no parrot %q; set spec.modelID of the Model to grey", s.Model.Model)
	}
	return parrot{}, nil
}

// Stream implements [model.Model]. The last delta has a Finish: a stream without
// one counts as incomplete.
func (p parrot) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	last := req.Steps[len(req.Steps)-1]
	answer := []model.Delta{{Text: last.Text()}, p.end(req, step.FinishStop)}
	if last.Role == step.RoleUser {
		call := &model.CallDelta{Name: "Orders", Args: `{"number":` + cmp.Or(digits.FindString(last.Text()), "0") + `}`}
		answer = []model.Delta{{Call: call}, p.end(req, step.FinishCalls)}
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range answer {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// end returns the last delta: why the answer ends, and its token usage. Without
// Usage the runner estimates it.
func (parrot) end(req *model.Request, why step.Finish) model.Delta {
	return model.Delta{Finish: why, Usage: &step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: 5}}
}
