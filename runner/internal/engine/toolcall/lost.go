package toolcall

import (
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// MaxCaptured bounds what is told of the output of a call that was cut: its end.
const MaxCaptured = 16 << 10

// SettleLost gives a result to each call that was begun, was never answered
// and must not be repeated. The others stay open and run again.
func (r *Runner) SettleLost(st state.Session) error {
	if len(st.Intents) == 0 {
		return nil
	}
	open := st.Open()
	last := st.Steps[len(st.Steps)-1]
	for i, c := range last.Calls {
		intent, begun := st.Intents[c.ID]
		if !begun || !contains(open, c.ID) || repeatable(tool.Effect(intent.Effect)) {
			continue
		}
		t := &toolCall{runner: r, call: c, seq: last.Seq + int64(i) + 1}
		if err := t.settle(r.interruptedResult(ResultLost, c.ID), r.config.Now()); err != nil {
			return err
		}
	}
	return nil
}

// settleBelow gives a result to each call that is open in the sessions below a
// call. That is needed where the call gets its own without going on with them:
// nobody goes back to them then.
func (r *Runner) settleBelow(call string) error {
	for _, name := range r.sessionsBelow(call) {
		below := r.session.Below(name)
		st := below.read()
		last := st.Steps[len(st.Steps)-1]
		open := st.Open() // the last result closes the turn, and with it what is known of it
		for i, c := range last.Calls {
			if !contains(open, c.ID) {
				continue
			}
			t := &toolCall{runner: below, call: c, seq: last.Seq + int64(i) + 1}
			if err := t.settle(r.interruptedResult(ResultLost, c.ID), r.config.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// sessionsBelow are the sessions below a call that have open calls, deepest first.
func (r *Runner) sessionsBelow(call string) (open []string) {
	r.config.State.View(func(now *state.Run) { open = now.OpenBelow(call) })
	return open
}

// repeatable says whether a call of this class that was cut may run again.
func repeatable(e tool.Effect) bool {
	switch e {
	case tool.ReadOnly, tool.Idempotent, tool.Resumable:
		return true
	case tool.Once:
		return false
	}
	return false
}

// interruptedResult is the result of a call that was cut, with what it had put out.
func (r *Runner) interruptedResult(message, call string) tool.Result {
	if r.config.Captured == nil {
		return tool.Fail(message)
	}
	out := strings.TrimSpace(r.config.Redact.String(r.config.Captured(call))) // whole: a piece of a secret would not be known
	if cut := len(out) - MaxCaptured; cut > 0 {
		out = "…" + strings.ToValidUTF8(out[cut:], "")
	}
	if out == "" {
		return tool.Fail(message)
	}
	return tool.Fail(message + "\nIts output until then:\n" + out)
}
