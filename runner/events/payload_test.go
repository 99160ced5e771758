package events_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
)

// sectionTitle is the title in AGENTS.md of the places of an event.
const sectionTitle = "Add an event of the log"

func TestEveryTypeOfEventHasAPayload(t *testing.T) {
	source, err := os.ReadFile("../step/event.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range events.Payloads {
		known[string(p.EventType())] = true
	}
	types := regexp.MustCompile(`(?m)^\tEvent\w+ +EventType = "(.*)"$`).FindAllSubmatch(source, -1)
	if len(types) == 0 {
		t.Fatal("runner/step/event.go has no types of events")
	}
	for _, m := range types {
		if !known[string(m[1])] {
			t.Errorf("%s of runner/step/event.go is not in Payloads of runner/events/payload.go; see %q in AGENTS.md", m[1], sectionTitle)
		}
	}
	if len(types) != len(events.Payloads) {
		t.Errorf("runner/step/event.go has %d types, Payloads has %d; see %q in AGENTS.md", len(types), len(events.Payloads), sectionTitle)
	}
}
