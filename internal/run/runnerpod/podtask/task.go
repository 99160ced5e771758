// Package podtask makes the task of an attempt, as a function of its input. It links no client, so that the command
// line can make the same task for a Run without a cluster.
package podtask

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Input is all that a task is made of.
type Input struct {
	Run        *v1alpha1.Run
	RunnerHash string // of the Agent's revision
	Attempt    int32
	// Limits bound all attempts of the Run together.
	Limits task.Limits
	// Durable: files and journal are kept for the next attempt.
	Durable bool
	// Traces is where the runner sends spans; nil: nowhere.
	Traces *task.Traces
}

// Of returns the task that the runner of an attempt gets.
func Of(in Input) task.Task {
	t := task.Task{
		Version:      task.Version,
		Run:          task.Run{Namespace: in.Run.Namespace, Name: in.Run.Name, UID: string(in.Run.UID)},
		Attempt:      int(in.Attempt),
		Prompt:       in.Run.Spec.Prompt,
		Images:       in.Run.Spec.Images,
		User:         in.Run.Spec.User,
		Labels:       in.Run.Labels,
		Limits:       in.Limits,
		Durable:      in.Durable,
		SnapshotHash: in.RunnerHash,
		Traces:       in.Traces,
	}
	if input := in.Run.Spec.Input; input != nil {
		t.Input = input.Raw
	}
	t.Continue = continueOf(in.Run)
	p := in.Run.Status.Progress
	if p == nil {
		return t
	}
	t.Meter, t.Refused = meterOf(*p), refusedOf(p.Refused)
	if p.Attempt < in.Attempt && p.Result != nil && p.Result.Committed {
		t.Retry = task.Cut(strings.TrimSuffix(p.Result.Reason+": "+p.Result.Message, ": "), task.MaxMessage)
	}
	return t
}

// continueOf returns the Run that a Run continues; nil: none.
func continueOf(run *v1alpha1.Run) *task.Continue {
	spec, found := run.Spec.ContinueFrom, run.Status.ContinuedFrom
	if spec == nil || found == nil {
		return nil
	}
	out := &task.Continue{Run: spec.Run, RunUID: found.UID, Workspace: task.ContinueWorkspace(spec.Workspace)}
	if spec.Step != nil {
		out.Step = *spec.Step
	}
	return out
}

// meterOf returns the usage of the attempts so far. It never decreases.
func meterOf(p v1alpha1.RunProgress) step.Meter {
	m := step.Meter{
		Steps:           p.Counts.Steps,
		ModelCalls:      p.Counts.ModelCalls,
		ToolCalls:       p.Counts.ToolCalls,
		ToolErrors:      p.Counts.ToolErrors,
		Errors:          p.Counts.Errors,
		Repairs:         p.Counts.Repairs,
		OutageCalls:     p.Counts.OutageCalls,
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

// refusedOf returns the refusals of the attempts so far.
func refusedOf(r *v1alpha1.Refused) *task.Refused {
	if r == nil {
		return nil
	}
	out := &task.Refused{Connections: r.Connections, ToolCalls: r.ToolCalls}
	for _, h := range r.Hosts {
		out.Hosts = append(out.Hosts, task.RefusedHost{Host: h.Host, Port: int(h.Port), Reason: string(h.Reason), Count: h.Count, FirstID: string(h.FirstID)})
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, task.DeniedTool{Name: t.Name, By: string(t.By), Count: t.Count, FirstID: string(t.FirstID)})
	}
	return out
}

// Max is the maximum size of a task in bytes. All annotations of a pod share 256 KiB with the signals, and each Run
// takes several copies in the cluster's store.
const Max = 48 << 10

// Problem returns why the task of an attempt does not fit a pod; empty: it fits.
func Problem(in Input) string {
	data, err := json.Marshal(Of(in))
	if err != nil {
		return "The task has no JSON form: " + err.Error()
	}
	if len(data) <= Max {
		return ""
	}
	return fmt.Sprintf("The task has %d bytes; at most %d fit a pod. Shorten spec.prompt and spec.input, or move long texts into files of the workspace", len(data), Max)
}

// FirstProblem returns why the task of a Run that does not exist yet would not fit a pod; empty: it fits. The limits
// are those of its Agent, as far as they are known. Additions of the cluster, such as the receiver of traces, are not
// counted.
func FirstProblem(run *v1alpha1.Run, limits task.Limits) string {
	const uid, hash = 36, 64 // the lengths of what a cluster sets
	run = run.DeepCopy()
	run.UID, run.Status = types.UID(strings.Repeat("0", uid)), v1alpha1.RunStatus{}
	if run.Spec.Limits != nil {
		limits = snapshot.Lower(limits, *run.Spec.Limits)
	}
	return Problem(Input{Run: run, RunnerHash: strings.Repeat("0", hash), Attempt: 1, Limits: limits})
}
