package task

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Snapshot is what is the same for every Run of one version of an Agent. It
// holds no secret.
type Snapshot struct {
	Version int   `json:"version"`
	Agent   Agent `json:"agent"`
	// Models are the Agent's Model and, after it, its fallbacks in order.
	Models []Model `json:"models"`
}

// An Agent is who does the work.
type Agent struct {
	Name         string `json:"name"`
	Instructions string `json:"instructions"`
	Tools        []Tool `json:"tools,omitempty"`
	// OutputSchema, a JSON Schema, makes finish the only way to end.
	OutputSchema  json.RawMessage `json:"outputSchema,omitempty"`
	ParallelTools int             `json:"parallelTools"`
	// Events is Full, Steps or None.
	Events string `json:"events"`
}

// A Tool is one entry of an Agent's tools.
type Tool struct {
	Builtin string `json:"builtin"`
	// TimeoutSeconds bounds one call; 0 means the tool's own default.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
}

// A Model is how to reach a language model.
type Model struct {
	Name     string            `json:"name"`
	Provider string            `json:"provider"`
	Model    string            `json:"model"`
	Endpoint string            `json:"endpoint,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	// Secret and Key name where the credential comes from, to say so when it is
	// not there; both are empty when the endpoint asks for none.
	Secret          string      `json:"secret,omitempty"`
	Key             string      `json:"key,omitempty"`
	ContextWindow   int64       `json:"contextWindow,omitempty"`
	MaxOutputTokens int64       `json:"maxOutputTokens,omitempty"`
	Params          step.Params `json:"params,omitzero"`
	Prices          *Prices     `json:"prices,omitempty"`
}

// Prices are in millionths of a US dollar per million tokens.
type Prices struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// A Task is what is one Run's own.
type Task struct {
	Version int    `json:"version"`
	Run     Run    `json:"run"`
	Attempt int    `json:"attempt"`
	Prompt  string `json:"prompt"`
	Limits  Limits `json:"limits"`
	Meter   Meter  `json:"meter,omitzero"`
	// Retry says what ended the attempt before this one; empty on the first.
	Retry string `json:"retry,omitempty"`
	// Durable is true when the journal outlives the pod.
	Durable bool `json:"durable,omitempty"`
	// SnapshotHash is the hash that the Snapshot file must have, as Hash makes it.
	SnapshotHash string `json:"snapshotHash"`
}

// A Run names the Run that a Task belongs to.
type Run struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Limits end the Run. Zero means no limit, but for Steps, which is always set.
type Limits struct {
	Steps           int64 `json:"steps"`
	Tokens          int64 `json:"tokens,omitempty"`
	CostMicroUSD    int64 `json:"costMicroUSD,omitempty"`
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
}

// A Meter is what the Run has used in all attempts before this one.
type Meter = step.Meter

// Signals are what the operator says to a running runner. The file is empty
// until there is something to say.
type Signals struct {
	// Stop asks the runner to end at its next safe point.
	Stop bool `json:"stop,omitempty"`
	// At is when Stop was said, in Unix seconds.
	At int64 `json:"at,omitempty"`
	// ReportSeconds is how often progress is worth a write; 0 means 10.
	ReportSeconds int `json:"reportSeconds,omitempty"`
}
