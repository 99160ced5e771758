package httpapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// required are the fields of a body that no request lacks.
var required = []string{"model", "messages", "tools", "stream", "system", "input", "instructions", "anthropic_version"}

// The settings of a Model or an Agent.
const (
	SettingOutput      = "inference.maxOutputTokens"
	SettingTemperature = "inference.temperature"
	SettingTopP        = "inference.topP"
	SettingReasoning   = "inference.reasoning"
	settingExtra       = "inference.extra."
)

// Sent describes a request, so that a refusal can be traced to a part of it.
type Sent struct {
	// Model is the name of the model. Tools are the names of the tools, in their order.
	Model string
	Tools []string
	// Settings holds the fields of the body that a provider may refuse, with the setting of a
	// Model or an Agent that each comes from; empty: the adapter adds the field by itself.
	Settings map[string]string
	// MessageFields are the fields that the adapter adds to messages and that not every provider knows.
	MessageFields []string
	// EchoesReasoning reports whether reasoning can be sent with each earlier answer.
	EchoesReasoning bool
	// OutputField is the field that bounds the answer, MaxOutput its value in tokens; 0: the
	// request has none.
	OutputField string
	MaxOutput   int64
	// Input is the estimated size of the request, in tokens.
	Input int64
}

// NewSent describes a request with a body. settings maps fields to the settings that they come from; fields of extra
// parameters are added.
func NewSent(req *model.Request, body map[string]any, settings map[string]string) Sent {
	s := Sent{Settings: map[string]string{}, Input: model.EstimateInput(req)}
	s.Model, _ = body["model"].(string)
	for _, t := range req.Tools {
		s.Tools = append(s.Tools, t.Name)
	}
	var extra map[string]json.RawMessage
	_ = json.Unmarshal(req.Params.Extra, &extra) // merged into the body before
	for field := range body {
		if slices.Contains(required, field) {
			continue
		}
		s.Settings[field] = settings[field]
		if _, ok := extra[field]; ok {
			s.Settings[field] = settingExtra + field
		}
	}
	return s
}

// Fields returns the names of the fields of a patch, each with the setting that it comes from.
func Fields(patch, setting string) map[string]string {
	fields := map[string]any{}
	_ = Merge(fields, patch) // merged into the body before
	named := map[string]string{}
	for field := range maps.Keys(fields) {
		named[field] = setting
	}
	return named
}
