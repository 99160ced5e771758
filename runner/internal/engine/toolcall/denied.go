package toolcall

import (
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Denial says what denied a call.
type Denial struct {
	// By is one of the task.DeniedBy constants.
	By string
	// Rule is the rule of a policy, or the hook; empty: it has no name.
	Rule string
}

// deny notes what denies the call, and returns its result.
func (t *toolCall) deny(by, rule string, result *tool.Error) *tool.Error {
	t.denied = &Denial{By: by, Rule: rule}
	return result
}

// denial returns what denied a call that has its result; nil: nothing did. A call that was made
// was not denied, whatever a hook says of its result.
func (t *toolCall) denial(res tool.Result) *Denial {
	if t.made != nil || res.Error == nil {
		return nil
	}
	if t.denied != nil {
		return t.denied
	}
	for _, h := range t.report.Hooks() {
		if h.Did == step.HookVetoed {
			return &Denial{By: task.DeniedByHook, Rule: h.Name}
		}
	}
	return nil
}

// finished shows a call that has its result.
func (t *toolCall) finished(st step.Step, res tool.Result) {
	res.Summary = t.runner.config.Redact.String(res.Summary) // whole: a piece of a secret would not be known
	if denied := t.denial(res); denied != nil {
		t.runner.session.ShowDenied(t.call, *denied)
	}
	t.runner.session.ShowFinished(t.call, st, summarize(t, st, res))
}

// count adds a call that has its result. One beyond the limit is an error, but no call.
func (t *toolCall) count(m *step.Meter, st step.Step) {
	if st.IsError {
		m.Errors++
	}
	if t.overLimit {
		return
	}
	m.ToolCalls++
	if st.IsError {
		m.ToolErrors++
	}
}
