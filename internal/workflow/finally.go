package workflow

import (
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// checkFinally checks that finallyLimits leave something of limits to the other nodes,
// which could not start otherwise.
func checkFinally(spec v1alpha1.WorkflowSpec) *snapshot.NotReadyError {
	if spec.Limits == nil || spec.FinallyLimits == nil {
		return nil
	}
	whole, part := amounts(*spec.Limits), amounts(*spec.FinallyLimits.WorkflowLimits())
	for i, field := range []string{"steps", "tokens", "cost", "duration"} {
		if whole[i] > 0 && part[i] >= whole[i] {
			return notReady(v1alpha1.ReasonInvalid, "finallyLimits.%s reserves all of limits.%s and leaves nothing to the other nodes. Lower the first, or raise the second", field, field)
		}
	}
	return nil
}

// amounts returns limits as numbers; 0: no limit. Values that the schema refuses are no
// limit.
func amounts(l v1alpha1.WorkflowLimits) [4]int64 {
	steps, tokens, cost, duration := int64(0), int64(0), int64(0), time.Duration(0)
	if l.Steps != nil {
		steps = int64(*l.Steps)
	}
	if l.Tokens != nil {
		tokens, _ = l.Tokens.Count()
	}
	if l.Cost != nil {
		cost, _ = l.Cost.MicroUSD()
	}
	if l.Duration != nil {
		duration, _ = l.Duration.Value()
	}
	return [4]int64{steps, tokens, cost, int64(duration)}
}
