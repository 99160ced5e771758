package stored

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
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

// WorkflowAgent is a Workflow's copy of facts about the revision of an Agent.
type WorkflowAgent struct {
	Hash   string      `json:"hash"`
	Limits AgentLimits `json:"limits"`
	// Input and Output are JSON Schemas of the Agent's input and output. Without them the input is a prompt, and the
	// output a text.
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	// Durable is true if the files of the Agent are on a PersistentVolumeClaim,
	// ReadWriteOnce if only one node at a time mounts it.
	Durable       bool `json:"durable,omitempty"`
	ReadWriteOnce bool `json:"readWriteOnce,omitempty"`
}

// AgentLimits are the limits of a Run of an Agent, defaults included. 0: no limit.
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
	// ContinueOnFailure is true if the Run continues when the node fails.
	ContinueOnFailure bool    `json:"continueOnFailure,omitempty"`
	MaxRetries        *int32  `json:"maxRetries,omitempty"`
	Limits            *Limits `json:"limits,omitempty"`
	// WorkspaceFrom names the node whose files this one works on.
	WorkspaceFrom string `json:"workspaceFrom,omitempty"`
}

// Approval is a request for a user's approval.
type Approval struct {
	Message      string           `json:"message"`
	Groups       []string         `json:"groups,omitempty"`
	Users        []string         `json:"users,omitempty"`
	ExpiresAfter *metav1.Duration `json:"expiresAfter,omitempty"`
	// Input is the input that a user gives with the approval.
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

// Limits are the limits of a node or of a whole Workflow.
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

// WorkflowOf returns the stored form of a Workflow, without the revisions that it names.
// Its description is not stored: no Run depends on it.
func WorkflowOf(name string, spec v1alpha1.WorkflowSpec) Workflow {
	out := Workflow{
		Version:       Version,
		Name:          name,
		Input:         inputOf(spec.Input),
		Sequential:    spec.Order == v1alpha1.OrderSequential,
		Output:        rawOf(spec.Output),
		Limits:        workflowLimitsOf(spec.Limits),
		FinallyLimits: workflowLimitsOf(spec.FinallyLimits.WorkflowLimits()),
	}
	for _, n := range spec.Nodes {
		out.Nodes = append(out.Nodes, nodeOf(n))
	}
	for _, n := range spec.Finally {
		out.Finally = append(out.Finally, nodeOf(n))
	}
	return out
}

// Spec returns the Workflow in terms of the API, which the compiler of Workflows reads.
func (w Workflow) Spec() v1alpha1.WorkflowSpec {
	out := v1alpha1.WorkflowSpec{
		Input:         w.Input.spec(),
		Order:         v1alpha1.OrderGraph,
		Output:        extension(w.Output),
		Limits:        w.Limits.workflowSpec(),
		FinallyLimits: w.FinallyLimits.finallySpec(),
	}
	if w.Sequential {
		out.Order = v1alpha1.OrderSequential
	}
	for _, n := range w.Nodes {
		out.Nodes = append(out.Nodes, n.spec())
	}
	for _, n := range w.Finally {
		out.Finally = append(out.Finally, n.spec())
	}
	return out
}

// fieldTypes are the stored names of the types of a field.
var fieldTypes = map[v1alpha1.FieldType]FieldType{
	v1alpha1.FieldString:  FieldString,
	v1alpha1.FieldInteger: FieldInteger,
	v1alpha1.FieldNumber:  FieldNumber,
	v1alpha1.FieldBoolean: FieldBoolean,
	v1alpha1.FieldList:    FieldList,
	v1alpha1.FieldObject:  FieldObject,
}

func inputOf(in *v1alpha1.Input) *Input {
	if in == nil {
		return nil
	}
	out := &Input{Schema: rawOf(in.Schema)}
	for _, f := range in.Fields {
		out.Fields = append(out.Fields, Field{
			Name: f.Name, Type: fieldTypes[f.Type], Schema: rawOf(f.Schema), Description: f.Description, Default: rawOf(f.Default), Required: f.Required,
		})
	}
	return out
}

func (i *Input) spec() *v1alpha1.Input {
	if i == nil {
		return nil
	}
	out := &v1alpha1.Input{Schema: extension(i.Schema)}
	for _, f := range i.Fields {
		field := v1alpha1.Field{Name: f.Name, Schema: extension(f.Schema), Description: f.Description, Default: extension(f.Default), Required: f.Required}
		for api, t := range fieldTypes {
			if t == f.Type {
				field.Type = api
			}
		}
		out.Fields = append(out.Fields, field)
	}
	return out
}

func nodeOf(n v1alpha1.Node) Node {
	out := Node{
		Name:              n.Name,
		Agent:             string(n.Agent),
		Workflow:          string(n.Workflow),
		Prompt:            n.Prompt,
		Input:             rawOf(n.Input),
		DependsOn:         n.DependsOn,
		When:              string(n.When),
		ContinueOnFailure: n.OnFailure == v1alpha1.OnFailureContinue,
		MaxRetries:        n.MaxRetries,
		Limits:            limitsOf(n.Limits),
	}
	if a := n.Approval; a != nil {
		out.Approval = &Approval{Message: a.Message, ExpiresAfter: durationOf(&a.ExpiresAfter), Input: inputOf(a.Input)}
		if a.Approvers != nil {
			out.Approval.Groups, out.Approval.Users = a.Approvers.Groups, a.Approvers.Users
		}
	}
	if f := n.ForEach; f != nil {
		out.ForEach = &ForEach{Items: string(f.Items), MaxParallel: f.MaxParallel}
	}
	if l := n.Loop; l != nil {
		out.Loop = &Loop{Until: string(l.Until), MaxIterations: l.MaxIterations}
	}
	if w := n.Workspace; w != nil {
		out.WorkspaceFrom = w.From
	}
	return out
}

func (n Node) spec() v1alpha1.Node {
	out := v1alpha1.Node{
		Name:       n.Name,
		Agent:      v1alpha1.ObjectName(n.Agent),
		Workflow:   v1alpha1.ObjectName(n.Workflow),
		Prompt:     n.Prompt,
		Input:      extension(n.Input),
		DependsOn:  n.DependsOn,
		When:       v1alpha1.Expression(n.When),
		OnFailure:  v1alpha1.OnFailureFail,
		MaxRetries: n.MaxRetries,
		Limits:     n.Limits.spec(),
	}
	if n.ContinueOnFailure {
		out.OnFailure = v1alpha1.OnFailureContinue
	}
	if a := n.Approval; a != nil {
		out.Approval = &v1alpha1.ApprovalNode{Message: a.Message, Approvers: approvers(a.Groups, a.Users), Input: a.Input.spec()}
		if a.ExpiresAfter != nil {
			out.Approval.ExpiresAfter = v1alpha1.Duration(a.ExpiresAfter.Duration.String())
		}
	}
	if f := n.ForEach; f != nil {
		out.ForEach = &v1alpha1.ForEach{Items: v1alpha1.Expression(f.Items), MaxParallel: f.MaxParallel}
	}
	if l := n.Loop; l != nil {
		out.Loop = &v1alpha1.Loop{Until: v1alpha1.Expression(l.Until), MaxIterations: l.MaxIterations}
	}
	if n.WorkspaceFrom != "" {
		out.Workspace = &v1alpha1.NodeWorkspace{From: n.WorkspaceFrom}
	}
	return out
}

func limitsOf(l *v1alpha1.Limits) *Limits {
	if l == nil {
		return nil
	}
	return &Limits{
		Steps: l.Steps, ModelCalls: l.ModelCalls, ToolCalls: l.ToolCalls, Depth: l.Depth,
		Tokens: tokensOf(l.Tokens), CostMicroUSD: microUSDOf(l.Cost),
		Duration: durationOf(l.Duration), Pending: durationOf(l.Pending), Wait: durationOf(l.Wait), Deadline: durationOf(l.Deadline),
		ModelOutage: durationOf(l.ModelOutage),
	}
}

func (l *Limits) spec() *v1alpha1.Limits {
	if l == nil {
		return nil
	}
	return &v1alpha1.Limits{
		Steps: l.Steps, ModelCalls: l.ModelCalls, ToolCalls: l.ToolCalls, Depth: l.Depth,
		Tokens: tokens(l.Tokens), Cost: money(l.CostMicroUSD),
		Duration: duration(l.Duration), Pending: duration(l.Pending), Wait: duration(l.Wait), Deadline: duration(l.Deadline),
		ModelOutage: duration(l.ModelOutage),
	}
}

func workflowLimitsOf(l *v1alpha1.WorkflowLimits) *Limits {
	if l == nil {
		return nil
	}
	return &Limits{
		Steps: l.Steps, Tokens: tokensOf(l.Tokens), CostMicroUSD: microUSDOf(l.Cost),
		Duration: durationOf(l.Duration), Pending: durationOf(l.Pending), Deadline: durationOf(l.Deadline),
	}
}

func (l *Limits) finallySpec() *v1alpha1.FinallyLimits {
	if l == nil {
		return nil
	}
	return &v1alpha1.FinallyLimits{Steps: l.Steps, Tokens: tokens(l.Tokens), Cost: money(l.CostMicroUSD), Duration: duration(l.Duration)}
}

func (l *Limits) workflowSpec() *v1alpha1.WorkflowLimits {
	if l == nil {
		return nil
	}
	return &v1alpha1.WorkflowLimits{
		Steps: l.Steps, Tokens: tokens(l.Tokens), Cost: money(l.CostMicroUSD),
		Duration: duration(l.Duration), Pending: duration(l.Pending), Deadline: duration(l.Deadline),
	}
}

func rawOf(e *runtime.RawExtension) json.RawMessage {
	if e == nil {
		return nil
	}
	return e.Raw
}

func extension(raw json.RawMessage) *runtime.RawExtension {
	if len(raw) == 0 {
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

// As with durations, an amount that the API's schema should have refused counts as not
// set.

func tokensOf(t *v1alpha1.Tokens) *int64 {
	if t == nil {
		return nil
	}
	n, err := t.Count()
	if err != nil {
		return nil
	}
	return &n
}

func microUSDOf(m *v1alpha1.Money) *int64 {
	if m == nil {
		return nil
	}
	n, err := m.MicroUSD()
	if err != nil {
		return nil
	}
	return &n
}

func tokens(n *int64) *v1alpha1.Tokens {
	if n == nil {
		return nil
	}
	t := v1alpha1.Tokens(strconv.FormatInt(*n, 10))
	return &t
}

func money(micro *int64) *v1alpha1.Money {
	if micro == nil {
		return nil
	}
	m := v1alpha1.Money(task.Money(*micro))
	return &m
}

func duration(d *metav1.Duration) *v1alpha1.Duration {
	if d == nil {
		return nil
	}
	v := v1alpha1.Duration(d.Duration.String())
	return &v
}

func approvers(groups, users []string) *v1alpha1.Approvers {
	if len(groups)+len(users) == 0 {
		return nil
	}
	return &v1alpha1.Approvers{Groups: groups, Users: users}
}
