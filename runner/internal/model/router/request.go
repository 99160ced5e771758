package router

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// request is what a target is sent: only what it can read, and with its own
// parameters where the request has none. The request itself stays as it is.
func (t *Target) request(req *model.Request) *model.Request {
	own := *req
	own.Params = mergeParams(req.Params, t.Params)
	own.Steps = t.readable(req.Steps)
	return &own
}

// readable are the steps without what only another Model reads. Where there is
// nothing of that kind they are the very same.
func (t *Target) readable(steps []step.Step) []step.Step {
	var own []step.Step
	for i, s := range steps {
		foreign := s.Model != "" && s.Model != t.Name
		if !foreign || !slices.ContainsFunc(s.Parts, isPrivate) {
			continue
		}
		if own == nil {
			own = slices.Clone(steps)
		}
		own[i].Parts = publicParts(s.Parts)
	}
	if own == nil {
		return steps
	}
	return own
}

// isPrivate reports whether only who wrote a part can read it.
func isPrivate(p step.Part) bool {
	return p.Kind == step.PartThinking || p.Kind == step.PartOpaque
}

// publicParts are the parts that everybody can read. What people were told of an
// opaque part is all that is left of it.
func publicParts(parts []step.Part) []step.Part {
	var list []step.Part
	for _, p := range parts {
		switch {
		case !isPrivate(p):
			list = append(list, p)
		case p.Kind == step.PartOpaque && p.Text != "":
			list = append(list, step.Part{Kind: step.PartText, Text: p.Text})
		}
	}
	return list
}

// mergeParams are parameters p, and those of under where p has none.
func mergeParams(p, under model.Params) model.Params {
	p.MaxOutputTokens = cmp.Or(p.MaxOutputTokens, under.MaxOutputTokens)
	p.Temperature = cmp.Or(p.Temperature, under.Temperature)
	p.TopP = cmp.Or(p.TopP, under.TopP)
	p.Reasoning = cmp.Or(p.Reasoning, under.Reasoning)
	p.Extra = mergeJSON(p.Extra, under.Extra)
	return p
}

// mergeJSON lays one JSON object over another, at every depth. A null stays: it
// removes a field of the request. What is no object is left for the adapter to
// refuse, which names it.
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
