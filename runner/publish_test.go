package runner

import (
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
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
				w := &attempt{task: task.Task{Durable: tc.durable}}
				wait, end := signals.Context(t.Context(), &w.latest, w.endsPublishing, nil)
				defer end()
				synctest.Wait()
				newTestReader(&w.latest).apply([]byte(tc.said))
				synctest.Wait()
				if ended := wait.Err() != nil; ended != tc.ends {
					t.Errorf("it ended: %t", ended)
				}
			})
		})
	}
}
