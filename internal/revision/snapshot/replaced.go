package snapshot

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A replacedField is a field that another one replaced. The schema refuses it, but an object that was
// stored before may have it.
type replacedField struct {
	field, by string // their paths
	// write is what to write instead of the value; empty: the object does not have the field, or it has the former
	// default, which the schema filled in.
	write string
}

// replacedInAgent returns the fields of Agents that were replaced.
func replacedInAgent(spec v1alpha1.AgentSpec) []replacedField {
	w := spec.Workspace
	return []replacedField{
		{"spec.events", "spec.log", instead("log: %s", spec.Events, "Full")},
		{"spec.podRetention", "spec.retention", instead("retention: {pod: %s}", spec.PodRetention, "1h")},
		{"spec.workspace.instructions", "spec.workspace.agentsFile", instead("agentsFile: %s", w.Instructions, "Auto")},
		{"spec.workspace.retain", "spec.retention", instead("retention: {keepVolume: %s}", w.Retain, "Always")},
		{"spec.workspace.retention", "spec.retention", instead("retention: {volume: %s}", w.Retention, "24h")},
	}
}

// replacedInModel returns the fields of Models that were replaced.
func replacedInModel(spec v1alpha1.ModelSpec) []replacedField {
	api := func(f *v1alpha1.ReplacedFormat) string {
		switch {
		case f == nil:
			return ""
		case f.Format == "Anthropic":
			return "api: Messages"
		default:
			return "api: ChatCompletions"
		}
	}
	return []replacedField{
		{"spec.deepSeek", "spec.api", api(spec.DeepSeek)},
		{"spec.kimi", "spec.api", api(spec.Kimi)},
	}
}

// instead returns what to write instead of a value, in the format.
func instead(format, value, standard string) string {
	if value == "" || value == standard {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// checkReplaced checks that an object has no field that was replaced: its value would have no effect.
func checkReplaced(fields []replacedField) *NotReadyError {
	for _, f := range fields {
		if f.write != "" {
			return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("%s was replaced by %s: remove it, and write %s", f.field, f.by, f.write)}
		}
	}
	return nil
}
