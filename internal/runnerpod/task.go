package runnerpod

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// TaskOf returns the task that the runner of an attempt gets.
func TaskOf(in Input) task.Task {
	t := task.Task{
		Version:      task.Version,
		Run:          task.Run{Namespace: in.Run.Namespace, Name: in.Run.Name, UID: string(in.Run.UID)},
		Attempt:      int(in.Attempt),
		Prompt:       in.Run.Spec.Prompt,
		User:         in.Run.Spec.User,
		Labels:       in.Run.Labels,
		Limits:       in.Limits,
		Durable:      in.Durable,
		SnapshotHash: in.Revision.RunnerHash,
	}
	if input := in.Run.Spec.Input; input != nil {
		t.Input = input.Raw
	}
	p := in.Run.Status.Progress
	if p == nil {
		return t
	}
	t.Meter = meterOf(*p)
	if p.Attempt < in.Attempt && p.Result != nil && p.Result.Committed {
		t.Retry = task.Cut(strings.TrimSuffix(p.Result.Reason+": "+p.Result.Message, ": "), task.MaxMessage)
	}
	return t
}

// meterOf is what the attempts so far have used: it never falls.
func meterOf(p v1alpha1.RunProgress) step.Meter {
	m := step.Meter{
		Steps:           p.Counts.Steps,
		ModelCalls:      p.Counts.ModelCalls,
		ToolCalls:       p.Counts.ToolCalls,
		Errors:          p.Counts.Errors,
		DurationSeconds: p.Usage.DurationSeconds,
		Usage: step.Usage{
			InputTokens:      p.Usage.InputTokens,
			CacheReadTokens:  p.Usage.CacheReadTokens,
			CacheWriteTokens: p.Usage.CacheWriteTokens,
			OutputTokens:     p.Usage.OutputTokens,
			ReasoningTokens:  p.Usage.ReasoningTokens,
		},
	}
	if p.Usage.CostMicroUSD != nil {
		m.Usage.CostMicroUSD, m.Usage.Priced = *p.Usage.CostMicroUSD, true
	}
	return m
}

// ToJSON encodes one of our own types, which always have a JSON form.
func ToJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encoding our own type: " + err.Error())
	}
	return data
}
