package runnerpod

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// TaskOf returns the task that the runner of an attempt gets.
func TaskOf(in Input) task.Task { return podtask.Of(taskInput(in)) }

// TaskProblem returns why the task of an attempt does not fit a pod; empty: it fits.
func TaskProblem(in Input) string { return podtask.Problem(taskInput(in)) }

func taskInput(in Input) podtask.Input {
	out := podtask.Input{Run: in.Run, RunnerHash: in.Revision.RunnerHash, Attempt: in.Attempt, Limits: in.Limits, Durable: in.Durable}
	if to := in.Defaults.Traces; to != nil {
		out.Traces = &task.Traces{Endpoint: to.Endpoint, Content: to.Content, Metrics: to.Metrics, Root: runstatus.RootUID(in.Run)}
	}
	return out
}

// ToJSON encodes one of our own types, which always have a JSON form.
func ToJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encoding our own type: " + err.Error())
	}
	return data
}
