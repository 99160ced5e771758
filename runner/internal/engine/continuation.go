package engine

import (
	"errors"
	"fmt"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// errUnfinished ends an answer that paused and must not go on: a limit is reached,
// or the Run is paused or leaves. What comes next sees which.
var errUnfinished = errors.New("the answer paused, and the rest of it was not asked for")

// continued passes on the answer of a model. Where it pauses, the request that
// asks for the rest is counted and held to the limits like any other.
func (c *modelCaller) continued(name string, stream iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range stream {
			if !yield(d, err) {
				return
			}
			if err != nil || !d.Continued {
				continue
			}
			if err := c.checkContinuation(name, d.Usage); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
	}
}

// checkContinuation records that a model is about to be asked for the rest of an answer, or
// returns why it is not. A runner that dies after it charges what the answer cost
// so far when the session is resumed.
func (c *modelCaller) checkContinuation(name string, soFar *step.Usage) error {
	used := step.Usage{}
	if soFar != nil {
		used = *soFar
	}
	if now := c.run.signals(); c.run.requests.Leaving() != nil || now.Paused || now.Stopped || c.records.account.ReachedWith(used) != nil {
		return errUnfinished
	}
	c.turn.requests++
	c.records.account.Add(func(m *step.Meter) { m.ModelCalls++ })
	c.turn.sentAt = c.run.config.Now()
	intent := journal.Intent{Name: name, InputTokens: c.turn.requestSize + used.InputTokens + used.OutputTokens, Before: soFar}
	if err := c.records.Record(journal.Record{Kind: journal.KindIntent, Intent: &intent}); err != nil {
		return c.turn.fail(fmt.Errorf("recording a model call: %w", err))
	}
	return nil
}
