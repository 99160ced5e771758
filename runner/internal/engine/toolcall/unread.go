package toolcall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// unread refuses a call that ends the session with success if another call of its turn
// failed: the model wrote its result before it could read of the failure. A rejection of
// the work stands.
func (r *Runner) unread(t *toolCall) *tool.Error {
	if !t.ends() || task.IsReject(t.call.Name) {
		return nil
	}
	failed := r.failedCalls()
	if len(failed) == 0 {
		return nil
	}
	return &tool.Error{Message: fmt.Sprintf(ResultUnread, task.Cut(strings.Join(failed, ", "), task.MaxSummary))}
}

// failedCalls returns the names of the calls of the turn under way that failed or were not
// made, each once. The results are those of the journal, which may be an earlier attempt's.
func (r *Runner) failedCalls() []string {
	st := r.read()
	var names []string
	for _, c := range st.Steps[len(st.Steps)-1].Calls {
		res, known := st.Results[c.ID]
		if known && (res.IsError || res.Failed) && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
