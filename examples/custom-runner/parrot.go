package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"

	"github.com/deckhand-dev/deckhand/runner/config"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

var digits = regexp.MustCompile(`[0-9]+`)

// A parrot is a model that looks up the order that it is asked for and repeats
// what it reads. A real one would send the request somewhere.
type parrot struct{}

// newParrot makes the model that a Model with custom: {driver: parrot} asks for.
func newParrot(s config.ModelSpec) (model.Model, error) {
	if s.Model.Model != "grey" {
		return nil, fmt.Errorf("there is no parrot %q; set model to grey", s.Model.Model)
	}
	return parrot{}, nil
}

// Stream answers a request piece by piece. A stream that ends without a Finish
// counts as broken off.
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

// end says why the answer ends, and what it used: without that the loop
// estimates it.
func (parrot) end(req *model.Request, why step.Finish) model.Delta {
	return model.Delta{Finish: why, Usage: &step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: 5}}
}
