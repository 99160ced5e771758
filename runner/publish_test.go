package runner

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Whoever stops or pauses a Run does not wait until its work is published.
func TestPublishingHeedsWhatPeopleSay(t *testing.T) {
	cases := map[string]struct {
		durable bool
		said    string
		ends    bool
	}{
		"a stop":                            {false, `{"stop":true}`, true},
		"a pause":                           {true, `{"pause":true}`, true},
		"a pause that nothing goes on from": {false, `{"pause":true}`, false},
		"anything else":                     {true, `{"at":5}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &work{task: task.Task{Durable: tc.durable}, operator: newOperator()}
				wait, end := context.WithCancel(t.Context())
				defer end()
				go w.untilTold(wait, end)
				synctest.Wait()
				w.operator.hear([]byte(tc.said), slog.New(slog.DiscardHandler))
				synctest.Wait()
				if ended := wait.Err() != nil; ended != tc.ends {
					t.Errorf("it ended: %t", ended)
				}
			})
		})
	}
}
