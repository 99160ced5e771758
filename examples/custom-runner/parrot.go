package main

import (
	"context"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/config"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A parrot is a model that looks up an order and repeats what it reads. A real
// one would send the request somewhere, with the key.
type parrot struct {
	name string
	key  config.KeyFunc
}

// newParrot makes the model that a Model with driver: parrot asks for.
func newParrot(s config.ModelSpec) (model.Model, error) {
	return parrot{name: s.Model.Model, key: s.Key}, nil
}

// Stream answers a request piece by piece. A stream that ends without a Finish
// counts as broken off.
func (p parrot) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		last := req.Steps[len(req.Steps)-1]
		if last.Role != step.RoleTool {
			call := &model.CallDelta{Name: "Orders", Args: `{"number":7}`}
			_ = yield(model.Delta{Call: call}, nil) && yield(p.end(req, step.FinishCalls), nil)
			return
		}
		_ = yield(model.Delta{Text: last.Text()}, nil) && yield(p.end(req, step.FinishStop), nil)
	}
}

// end says why the answer ends, and what it used: without that the loop
// estimates it.
func (p parrot) end(req *model.Request, why step.Finish) model.Delta {
	return model.Delta{Finish: why, Usage: &step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: 5}}
}
