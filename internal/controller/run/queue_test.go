package run

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/run/queue"
)

func TestAPlaceInTheQueueIsShownAsAnOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := ordinal(n); got != want {
			t.Errorf("ordinal(%d) = %s", n, got)
		}
	}
	p := queueMessage("reviewer", queue.Position{Limit: 2, Active: 2, Number: 3})
	if p.message != "3rd in the queue of Agent reviewer: 2 of 2 Runs are active" || p.wake != 30*second {
		t.Errorf("%q, again in %s", p.message, p.wake)
	}
}
