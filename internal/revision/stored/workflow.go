package stored

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workflow is a revision of a Workflow.
type Workflow struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Input   *Input `json:"input,omitempty"`
	// Sequential is true if each node waits for the one before it.
	Sequential    bool            `json:"sequential,omitempty"`
	Nodes         []Node          `json:"nodes"`
	Finally       []Node          `json:"finally,omitempty"`
	Output        json.RawMessage `json:"output,omitempty"`
	Limits        *Limits         `json:"limits,omitempty"`
	FinallyLimits *Limits         `json:"finallyLimits,omitempty"`
	// Agents are the revisions of the Agents that nodes name, by name, and Workflows
	// the hashes of the revisions of Workflows.
	Agents    map[string]WorkflowAgent `json:"agents,omitempty"`
	Workflows map[string]string        `json:"workflows,omitempty"`
}

// WorkflowAgent is what a Workflow knows of the revision of an Agent.
type WorkflowAgent struct {
	Hash   string      `json:"hash"`
	Limits AgentLimits `json:"limits"`
	// Input and Output are JSON Schemas of what the Agent takes and gives; without them
	// it takes a prompt, and gives a text.
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	// Durable is true if the files of the Agent are on a PersistentVolumeClaim,
	// ReadWriteOnce if only one node at a time mounts it.
	Durable       bool `json:"durable,omitempty"`
	ReadWriteOnce bool `json:"readWriteOnce,omitempty"`
}

// AgentLimits are the most that a Run of an Agent uses, its defaults included. 0 is no
// limit.
type AgentLimits struct {
	Steps           int64 `json:"steps,omitempty"`
	Tokens          int64 `json:"tokens,omitempty"`
	CostMicroUSD    int64 `json:"costMicroUSD,omitempty"`
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
}

// Input declares values: as a JSON Schema, or as a list of fields.
type Input struct {
	Schema json.RawMessage `json:"schema,omitempty"`
	Fields []Field         `json:"fields,omitempty"`
}

// Field is one value of an input.
type Field struct {
	Name        string          `json:"name"`
	Type        FieldType       `json:"type,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Description string          `json:"description,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Required    *bool           `json:"required,omitempty"`
}

// FieldType is the type of a field of an input.
type FieldType string

// The types of a field.
const (
	FieldString  FieldType = "String"
	FieldInteger FieldType = "Integer"
	FieldNumber  FieldType = "Number"
	FieldBoolean FieldType = "Boolean"
	FieldList    FieldType = "List"
	FieldObject  FieldType = "Object"
)

// UnmarshalText refuses an unknown type.
func (f *FieldType) UnmarshalText(text []byte) error {
	switch v := FieldType(text); v {
	case FieldString, FieldInteger, FieldNumber, FieldBoolean, FieldList, FieldObject:
		*f = v
		return nil
	}
	return fmt.Errorf("unknown type %q of an input field", text)
}

// Node is a node of a Workflow: an Agent, a Workflow or an approval.
type Node struct {
	Name      string          `json:"name"`
	Agent     string          `json:"agent,omitempty"`
	Workflow  string          `json:"workflow,omitempty"`
	Approval  *Approval       `json:"approval,omitempty"`
	Prompt    string          `json:"prompt,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	DependsOn []string        `json:"dependsOn,omitempty"`
	When      string          `json:"when,omitempty"`
	ForEach   *ForEach        `json:"forEach,omitempty"`
	Loop      *Loop           `json:"loop,omitempty"`
	// ContinueOnFailure is true if the Run goes on when the node fails.
	ContinueOnFailure bool    `json:"continueOnFailure,omitempty"`
	MaxRetries        *int32  `json:"maxRetries,omitempty"`
	Limits            *Limits `json:"limits,omitempty"`
	// WorkspaceFrom names the node whose files this one works on.
	WorkspaceFrom string `json:"workspaceFrom,omitempty"`
}

// Approval asks a person.
type Approval struct {
	Message      string           `json:"message"`
	Groups       []string         `json:"groups,omitempty"`
	Users        []string         `json:"users,omitempty"`
	ExpiresAfter *metav1.Duration `json:"expiresAfter,omitempty"`
	// Input is what a person gives with the approval.
	Input *Input `json:"input,omitempty"`
}

// ForEach runs a node for each item of a list.
type ForEach struct {
	Items       string `json:"items"`
	MaxParallel int32  `json:"maxParallel,omitempty"`
}

// Loop runs a node again until a condition holds.
type Loop struct {
	Until         string `json:"until"`
	MaxIterations int32  `json:"maxIterations,omitempty"`
}

// Limits are those of a node or of a whole Workflow.
type Limits struct {
	Steps        *int32           `json:"steps,omitempty"`
	ModelCalls   *int32           `json:"modelCalls,omitempty"`
	ToolCalls    *int32           `json:"toolCalls,omitempty"`
	Depth        *int32           `json:"depth,omitempty"`
	Tokens       *int64           `json:"tokens,omitempty"`
	CostMicroUSD *int64           `json:"costMicroUSD,omitempty"`
	Duration     *metav1.Duration `json:"duration,omitempty"`
	Pending      *metav1.Duration `json:"pending,omitempty"`
	Wait         *metav1.Duration `json:"wait,omitempty"`
	ModelOutage  *metav1.Duration `json:"modelOutage,omitempty"`
	Deadline     *metav1.Duration `json:"deadline,omitempty"`
	// Ask is read, and has no effect: no node may set it.
	Ask bool `json:"ask,omitempty"`
}
