package attempt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestEventsOfADurableRunAreStored(t *testing.T) {
	for name, tc := range map[string]struct {
		durable bool
		events  string
		stored  bool
	}{
		"with a volume":                 {true, "Full", true},
		"with a volume, without events": {true, "None", false},
		"without a volume":              {false, "Full", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestPod(t, writeTurn("a.txt", "the key is "+secret), modeltest.Turn{Text: "Done with " + secret + "."})
			p.task.Durable, p.snapshot.Agent.Events = tc.durable, tc.events
			if code := p.run(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			events, err := filepath.Glob(filepath.Join(p.State, task.EventsFolder, "*"))
			if err != nil || len(events) > 0 != tc.stored {
				t.Fatalf("stored %v: %v", events, err)
			}
			if !tc.stored {
				return
			}
			content, err := os.ReadFile(events[0])
			text := string(content)
			if err != nil || !strings.Contains(text, `"type":"run.started"`) || !strings.Contains(text, `"type":"run.finished"`) || !strings.Contains(text, "Done with ‹secret:") {
				t.Errorf("stored %s: %v", text, err)
			}
			if strings.Contains(text, secret) || strings.Contains(text, ".delta") {
				t.Errorf("stored a secret or a delta: %s", text)
			}
		})
	}
}
