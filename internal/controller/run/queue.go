package run

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
)

// queued waits until the queue of the Agent lets the Run start.
func queued(s state) (plan, bool) {
	t := s.position
	if s.facts.queued != nil {
		t = *s.facts.queued // another Run has taken the place since
	}
	if s.attempt() > 0 || t.Number == 0 {
		return plan{}, false
	}
	return queueMessage(s.run.Spec.Agent, t), true
}

// A Run in the queue is reconciled when a Run before it ends. The position in its message is updated from time to time,
// less often for later positions.
const (
	nearWait = 10 * time.Second
	farWait  = 5 * time.Minute
)

func queueMessage(agent string, t queue.Position) plan {
	are := "are"
	if t.Limit == 1 {
		are = "is"
	}
	message := fmt.Sprintf("%s in the queue of Agent %s: %d of %s %s active", ordinal(t.Number), agent, t.Active, count(t.Limit, "Run"), are)
	return waiting(v1alpha1.ReasonQueued, message, min(time.Duration(t.Number)*nearWait, farWait))
}

// ordinal returns 1st, 2nd, 3rd, 4th and so on.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
