package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Read makes a Task and its Snapshot of what the operator sent. It refuses
// what this runner does not know and a Snapshot that is not the one the Task
// names.
func Read(taskJSON, snapshotJSON []byte) (task.Task, task.Snapshot, error) {
	var t task.Task
	var s task.Snapshot
	if err := Decode(taskJSON, &t); err != nil {
		return t, s, fmt.Errorf("reading the task: %w", err)
	}
	if err := checkVersion(t.Version, task.Version); err != nil {
		return t, s, fmt.Errorf("reading the task: %w", err)
	}
	if hash := task.Hash(snapshotJSON); hash != t.SnapshotHash {
		return t, s, fmt.Errorf("reading the snapshot: its hash is %s where the task names %s", hash, t.SnapshotHash)
	}
	if err := Decode(snapshotJSON, &s); err != nil {
		return t, s, fmt.Errorf("reading the snapshot: %w", err)
	}
	if err := checkVersion(s.Version, task.SnapshotVersion); err != nil {
		return t, s, fmt.Errorf("reading the snapshot: %w", err)
	}
	return t, s, check(t, s)
}

// Decode reads one JSON value that has no field that is not in v.
func Decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}

func checkVersion(v, newest int) error {
	if v < 1 || v > newest {
		return fmt.Errorf("its version is %d; this runner knows versions up to %d", v, newest)
	}
	return nil
}

// check holds a task to what every other part of the runner takes for granted.
func check(t task.Task, s task.Snapshot) error {
	switch {
	case t.Run.UID == "" || t.Run.Name == "":
		return errors.New("reading the task: run has no name or no uid")
	case t.Attempt < 1:
		return fmt.Errorf("reading the task: attempt is %d; the first is 1", t.Attempt)
	case t.Limits.Steps < 1:
		return errors.New("reading the task: limits.steps is not set")
	case len(s.Models) == 0:
		return errors.New("reading the snapshot: the Agent has no Model")
	}
	if err := checkLimits(t.Limits); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	for _, a := range s.Agents {
		if err := checkLimits(a.Limits); err != nil {
			return fmt.Errorf("reading the snapshot: the agent %s: %w", a.Name, err)
		}
	}
	return nil
}

// maxSeconds is a hundred years: a time.Duration holds less than three times that.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// checkLimits refuses limits that no Run can reach, or that every Run has reached.
func checkLimits(l task.Limits) error {
	for name, value := range map[string]int64{
		"steps": l.Steps, "modelCalls": l.ModelCalls, "toolCalls": l.ToolCalls, "tokens": l.Tokens,
		"costMicroUSD": l.CostMicroUSD, "durationSeconds": l.DurationSeconds, "depth": l.Depth, "waitSeconds": l.WaitSeconds,
	} {
		if value < 0 {
			return fmt.Errorf("limits.%s is %d; 0 means no limit", name, value)
		}
	}
	if most := max(l.DurationSeconds, l.WaitSeconds); most > maxSeconds {
		return fmt.Errorf("limits.duration or limits.wait is %d seconds; the most is %d", most, maxSeconds)
	}
	return nil
}
