package toolcall

import (
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// MaxCaptured bounds how much of the end of an interrupted call's output its result has.
const MaxCaptured = 16 << 10

// SettleLost gives a result to each call that was begun, has no result and must not be repeated. Other calls stay open
// and run again.
func (r *Runner) SettleLost(st state.Session) error {
	return r.settleOpen(st, func(call string) bool {
		intent, begun := st.Intents[call]
		return begun && !repeatable(tool.Effect(intent.Effect))
	})
}

// settleBelow gives a result to each open call of the sessions below a call that is about to get its own result:
// nothing resumes those sessions after that.
func (r *Runner) settleBelow(call string) error {
	for _, name := range r.sessionsBelow(call) {
		below := r.session.Below(name)
		if err := below.settleOpen(below.read(), func(string) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// settleOpen gives the open calls that are lost the result of a lost call.
func (r *Runner) settleOpen(st state.Session, isLost func(call string) bool) error {
	open := st.Open() // the last result closes the turn, and with it what is known of it
	if len(open) == 0 {
		return nil
	}
	last := st.Steps[len(st.Steps)-1]
	for i, c := range last.Calls {
		if !contains(open, c.ID) || !isLost(c.ID) {
			continue
		}
		t := &toolCall{runner: r, call: c, seq: last.Seq + int64(i) + 1, began: r.config.Now()}
		if err := t.settle(r.interruptedResult(ResultLost, c.ID)); err != nil {
			return err
		}
	}
	return nil
}

// sessionsBelow returns the sessions below a call that have open calls, deepest first.
func (r *Runner) sessionsBelow(call string) (open []string) {
	r.config.State.View(func(now *state.Run) { open = now.OpenBelow(call) })
	return open
}

// repeatable reports whether an interrupted call of this effect class may run again.
func repeatable(e tool.Effect) bool {
	switch e {
	case tool.ReadOnly, tool.Idempotent, tool.Resumable:
		return true
	case tool.Once:
		return false
	}
	return false
}

// interruptedResult returns the result of an interrupted call, with its output up to then.
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
