package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/textcall"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// textCall returns the name of the tool that an answer calls in its text; empty: none. A
// text that is the output, that the model was given, or that the prompt asked for is no
// call, whatever its form. Directly after the notice that nothing was executed, more is one.
func (c *modelCaller) textCall(answer step.Step) string {
	if answer.Role != step.RoleAssistant || len(answer.Calls) > 0 {
		return ""
	}
	steps := c.records.read().Steps
	find := textcall.Find
	if strings.HasPrefix(lastNudge(steps[:max(len(steps)-1, 0)]), nudgeTextCall) {
		find = textcall.FindAgain
	}
	call, found := find(answer.Text(), c.tools)
	if !found || c.isOutput(answer.Text()) {
		return ""
	}
	given, said := []string{c.system}, []string(nil)
	for _, st := range steps {
		switch {
		case st.Role == step.RoleUser && (st.Note == "" || st.Note == step.NoteMessage):
			said = append(said, st.Text())
		case st.Role == step.RoleTool:
			given = append(given, st.Text())
		}
	}
	if call.IsQuotation(append(given, said...)) || call.IsRequested(said, c.system) {
		return ""
	}
	return call.Name
}

// isOutput reports whether a text is a value of the output schema: then the model is to
// call finish with it.
func (c *modelCaller) isOutput(text string) bool {
	if len(c.actor.Agent.OutputSchema) == 0 || !json.Valid([]byte(text)) {
		return false
	}
	tools := c.actor.Tools.Specs()
	i := slices.IndexFunc(tools, func(t step.Tool) bool { return task.EndsRun(t.Name) && !task.IsReject(t.Name) })
	return i >= 0 && c.actor.Tools.Check(tools[i].Name, json.RawMessage(text)) == nil
}
