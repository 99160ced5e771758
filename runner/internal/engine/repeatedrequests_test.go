package engine

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A brokenModel breaks off each answer after it has reported its usage, and counts the requests.
type brokenModel struct{ asked int }

func (b *brokenModel) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	b.asked++
	return func(yield func(model.Delta, error) bool) {
		usage := step.Usage{InputTokens: 10, OutputTokens: 5, CostMicroUSD: 100, Priced: true}
		if yield(model.Delta{Text: "half", Usage: &usage}, nil) {
			yield(model.Delta{}, &model.UnavailableError{Message: "the stream ended before the answer did"})
		}
	}
}

// A request that is repeated costs as much as the first. A limit ends them, and is not waited out.
func TestALimitEndsRepeatedRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int64
		asked int
	}{
		"with the first":              {100, 1},
		"between them":                {150, 2},
		"with the last before a wait": {450, 5},
		"after a wait":                {650, 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, broken := newTestRun(nil), &brokenModel{}
				s.Actor.Model.Model = retry.New(broken, retry.Options{})
				s.Task.Limits.CostMicroUSD = tc.limit
				out := s.run(t)
				if out.Reason != task.ReasonCostLimit || broken.asked != tc.asked {
					t.Errorf("%s after %d requests, want %d: %s", out.Reason, broken.asked, tc.asked, out.Message)
				}
				if spent := out.Progress.Usage.CostMicroUSD; spent == nil || *spent != int64(tc.asked)*100 {
					t.Errorf("the usage is %+v", out.Progress.Usage)
				}
			})
		})
	}
}
