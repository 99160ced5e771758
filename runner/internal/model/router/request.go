package router

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// request returns the request for a target: the steps that it can read, with its
// parameters as defaults. It does not change req.
func (t *Target) request(req *model.Request) *model.Request {
	own := *req
	own.Params = mergeParams(req.Params, t.Params)
	own.Steps = t.withoutFiles(t.readable(req.Steps))
	return &own
}

// readable returns the steps as the Model of the target may read them: the same slice if no
// other Model answered.
func (t *Target) readable(steps []step.Step) []step.Step {
	isForeign := func(s step.Step) bool { return s.Model != "" && s.Model != t.Name }
	first := slices.IndexFunc(steps, isForeign)
	if first < 0 {
		return steps
	}
	own := slices.Clone(steps)
	for i := first; i < len(own); i++ {
		own[i] = own[i].ForModel(t.Name)
	}
	return own
}

// withoutFiles returns the steps with a line in place of each file that the Model does not take: the
// same slice if there is none.
func (t *Target) withoutFiles(steps []step.Step) []step.Step {
	if t.Takes == nil || !slices.ContainsFunc(steps, step.Step.HasFiles) {
		return steps
	}
	own := slices.Clone(steps)
	for i := range own {
		own[i] = own[i].WithoutFiles(func(p step.Part) string {
			if t.Takes(p.Kind) {
				return ""
			}
			return fmt.Sprintf("this model does not take %ss", p.Kind)
		})
	}
	return own
}

// fileWarning says how many files that a user shows with the prompt or a message the Model does not
// take; empty: none.
func (t *Target) fileWarning(steps []step.Step) string {
	shown, left := 0, 0
	for i, s := range t.withoutFiles(steps) {
		if s.Role == step.RoleUser {
			shown, left = shown+steps[i].Files(), left+steps[i].Files()-s.Files()
		}
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d files that a user shows are not sent, and the agent reads a line for each: Model %s does not take them. Use another Model", left, shown, t.Name)
}

// mergeParams returns parameters p with under as defaults.
func mergeParams(p, under model.Params) model.Params {
	p.MaxOutputTokens = cmp.Or(p.MaxOutputTokens, under.MaxOutputTokens)
	p.Temperature = cmp.Or(p.Temperature, under.Temperature)
	p.TopP = cmp.Or(p.TopP, under.TopP)
	p.Reasoning = cmp.Or(p.Reasoning, under.Reasoning)
	p.Extra = mergeJSON(p.Extra, under.Extra)
	return p
}

// mergeJSON merges two JSON objects recursively; top overrides under. A null is kept,
// because it removes a field of the request. If one is not an object it returns
// top, which the adapter refuses.
func mergeJSON(top, under json.RawMessage) json.RawMessage {
	switch {
	case len(top) == 0:
		return under
	case len(under) == 0:
		return top
	}
	var a, b map[string]json.RawMessage
	if json.Unmarshal(top, &a) != nil || json.Unmarshal(under, &b) != nil || a == nil || b == nil {
		return top
	}
	for key, value := range a {
		b[key] = mergeJSON(value, b[key])
	}
	merged, err := json.Marshal(b)
	if err != nil {
		return top
	}
	return merged
}
