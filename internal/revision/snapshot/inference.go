package snapshot

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func params(p *v1alpha1.Inference) (step.Params, error) {
	var out step.Params
	if p == nil {
		return out, nil
	}
	out.Reasoning = step.Reasoning(p.Reasoning)
	out.MaxOutputTokens = tokens(p.MaxOutputTokens)
	for _, f := range []struct {
		from *v1alpha1.Decimal
		to   **float64
	}{{p.Temperature, &out.Temperature}, {p.TopP, &out.TopP}} {
		if f.from == nil {
			continue
		}
		v, err := json.Number(*f.from).Float64()
		if err != nil {
			return out, fmt.Errorf("reading %q as a number: %w", *f.from, err)
		}
		*f.to = &v
	}
	if p.Extra != nil {
		out.Extra = p.Extra.Raw
	}
	return out, nil
}
