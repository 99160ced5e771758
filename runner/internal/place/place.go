// Package place names, for messages, the settings that a user can change where an agent runs. A Go program has no
// Secret, no pod and no spec: its messages name the fields of runner.Agent.
package place

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Place is where an attempt is made.
type Place int

// The places.
const (
	Pod     Place = iota // of a Run in a cluster
	Local                // run --local: with the manifests of a cluster, in directories of this machine
	Program              // a Go program that calls runner.New
)

// ofProgram are the fields of runner.Agent by the fields of a Model and an Agent in manifests.
var ofProgram = map[string]string{ //nolint:gosec // G101: the names of fields, of which one is a key
	"endpoint":                  "Agent.Model.Endpoint",
	"modelID":                   "Agent.Model.Model",
	"api":                       "Agent.Model.API",
	"apiKeySecretRef":           "Agent.Key",
	"requestRepair":             "Agent.Model.RequestRepair",
	"prices":                    "Agent.Model.Prices",
	"inference.reasoning":       "Agent.Model.Params.Reasoning",
	"inference.temperature":     "Agent.Model.Params.Temperature",
	"inference.topP":            "Agent.Model.Params.TopP",
	"inference.maxOutputTokens": "Agent.Model.Params.MaxOutputTokens",
	"inference.extra":           "Agent.Model.Params.Extra",
	"timeouts.firstByte":        "Agent.Model.Timeouts.FirstByteSeconds",
	"timeouts.betweenBytes":     "Agent.Model.Timeouts.BetweenBytesSeconds",
	"timeouts.total":            "Agent.Model.Timeouts.TotalSeconds",
	"tools":                     "Agent.Tools",
	"limits.steps":              "Agent.Limits.Steps",
	"limits.modelCalls":         "Agent.Limits.ModelCalls",
	"limits.toolCalls":          "Agent.Limits.ToolCalls",
	"limits.tokens":             "Agent.Limits.Tokens",
	"limits.cost":               "Agent.Limits.CostMicroUSD",
	"limits.duration":           "Agent.Limits.DurationSeconds",
	"limits.wait":               "Agent.Limits.WaitSeconds",
	"limits.modelOutage":        "Agent.Limits.ModelOutageSeconds",
}

// TheModel names a field of the Model that the message names before.
func (p Place) TheModel(field string) string {
	if p == Program {
		return p.Field(field)
	}
	return p.Field(field) + " of the Model"
}

// Field names a field of an object that the message names before.
func (p Place) Field(field string) string {
	if p != Program {
		return "spec." + field
	}
	if name, ok := ofProgram[field]; ok {
		return name
	}
	return "Agent.Model"
}

// Model names a field of a Model.
func (p Place) Model(field, name string) string { return p.fieldOf(field, "Model", name) }

// Agent names a field of an Agent.
func (p Place) Agent(field, name string) string { return p.fieldOf(field, "Agent", name) }

func (p Place) fieldOf(field, kind, name string) string {
	if p == Program {
		return p.Field(field)
	}
	return fmt.Sprintf("spec.%s of %s %s", field, kind, name)
}

// Limit names a limit of the Run.
func (p Place) Limit(name string) string {
	if p == Program {
		return p.Field("limits." + name)
	}
	return "limits." + name
}

// Stopped says who stopped the agent.
func (p Place) Stopped() string {
	switch p {
	case Local:
		return "Stopped by the command line"
	case Program:
		return "Stopped by its program"
	case Pod:
	}
	return "Stopped by spec.desiredState"
}

// Key names where a key comes from.
func (p Place) Key(k task.SecretKey) string {
	if p == Program {
		return p.Field("apiKeySecretRef")
	}
	return fmt.Sprintf("the key %s of the Secret %s", k.Key, k.Secret)
}
