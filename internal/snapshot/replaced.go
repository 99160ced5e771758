package snapshot

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// replacedField is a field of an Agent that another one replaced. The schema refuses it, but an
// Agent that was stored before may have it.
type replacedField struct {
	field, value string
	// standard is the value that the schema filled in, and that the new field has by default: it
	// says nothing.
	standard string
	by, name string // the path of the new field, and its name
}

// replacedFields returns the fields of an Agent that were replaced, with the values that it has.
func replacedFields(spec v1alpha1.AgentSpec) []replacedField {
	return []replacedField{
		{"spec.events", spec.Events, string(v1alpha1.LogFull), "spec.log", "log"},
		{"spec.workspace.instructions", spec.Workspace.Instructions, string(v1alpha1.AgentsFileAuto), "spec.workspace.agentsFile", "agentsFile"},
	}
}

// checkReplaced checks that an Agent has no field that was replaced: its value would have no effect.
func checkReplaced(spec v1alpha1.AgentSpec) *NotReadyError {
	for _, f := range replacedFields(spec) {
		if f.value != "" && f.value != f.standard {
			return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("%s was replaced by %s: remove it, and write %s: %s", f.field, f.by, f.name, f.value)}
		}
	}
	return nil
}
