package approval

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// applyChildResults takes in how child Runs ended that calls wait for. It is called wherever
// something waits. A child Run that nothing waits for is ignored: it was recorded before,
// or never asked for.
func (r *Requests) applyChildResults(ended []task.Child) error {
	if len(ended) == 0 || !r.config.CanStartRuns {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended.Load() != nil {
		return nil // the next attempt hears it
	}
	for _, c := range ended {
		q := r.open.find(c.Request)
		if q == nil || q.Kind != task.PendingDelegation {
			continue
		}
		if err := r.recordChildResult(q, c); err != nil {
			return err
		}
	}
	return nil
}

// recordChildResult records how a child Run ended, with what is charged for it, and hands
// it to the call that waits.
func (r *Requests) recordChildResult(q *Request, c task.Child) error {
	said := journal.Child{
		Request: q.ID, Run: task.Cut(c.Run, MaxField), Reason: task.Cut(string(c.Reason), task.MaxReason),
		Message: task.Cut(r.config.Redact.String(c.Message), maxValue), Text: task.Cut(r.config.Redact.String(c.Text), maxValue),
		Output: r.redactOutput(c.Output), Usage: c.Usage.Charged(),
	}
	if err := q.Session.RecordChild(said); err != nil {
		return fmt.Errorf("recording how the child Run of %s ended: %w", q.ID, err)
	}
	r.activity.noteDecision()
	r.open.close(q)
	close(q.done)
	q.Session.Emit(endOfChild(q.Agent, said), events.ChildFinished{
		Session: q.ID, Run: said.Run, Agent: q.Agent, Reason: task.Reason(said.Reason), Usage: c.Usage,
	})
	r.config.ReportNow()
	return nil
}

// redactOutput is the output of a child Run without secrets, and still JSON if it was.
func (r *Requests) redactOutput(output string) string {
	if !json.Valid([]byte(output)) {
		return r.config.Redact.String(output)
	}
	return string(r.config.Redact.JSON(json.RawMessage(output)))
}

// endOfChild says, for people, how a child Run ended.
func endOfChild(agent string, c journal.Child) string {
	if c.Run == "" {
		return fmt.Sprintf("There is no child Run of Agent %s: %s", agent, c.Message)
	}
	return fmt.Sprintf("Child Run %s of Agent %s ended: %s", c.Run, agent, c.Reason)
}
