package loopdetect_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/loopdetect"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// What the StuckDetector of OpenHands flags, this package flags too, and the
// other way round, but for these.
// https://github.com/OpenHands/software-agent-sdk, openhands/sdk/conversation/stuck_detector.py
var differences = map[string]string{
	// Flagged by OpenHands alone.
	"a background job is polled":                 "The tool reports that the job still runs. Waiting ends with the job, or by limits.steps and limits.duration, which have defaults.",
	"a background job is polled beside a look":   "As above.",
	"a background job is polled between looks":   "As above.",
	"the same call four times in one turn":       "The calls of one turn were made before any of their results was seen.",
	"the same call, more often each time":        "Turns are compared as a whole: each turn does more than the one before.",
	"three texts":                                "The loop ends a session at a text without calls, or, where one is not enough, after one reminder.",
	"nothing is said, three times":               "As for three texts.",
	"the same text, and another in between":      "As for three texts.",
	"the same text with another image each time": "Images are compared by their bytes: the agent sees something new.",
	"another image alone each time":              "As above.",

	// Flagged here alone.
	"arguments that are written differently":     "Arguments are compared by their meaning.",
	"the same calls in one turn, in any order":   "Calls of one turn are compared as a set.",
	"forty calls in one turn":                    "The last 30 turns are compared, not the last 20 events.",
	"ten summaries":                              "OpenHands has a rule for repeated condensation that always says no at present.",
	"one tool fails with three calls in turn":    "OpenHands has no rule for one tool that keeps failing.",
	"one tool fails, whatever it is given":       "As above.",
	"one tool fails twice in each of six turns":  "As above.",
	"one tool fails, others learn nothing new":   "As above.",
	"reads of three names that are guessed over": "As above.",
	"a poll does not forgive what fails":         "As above.",
}

// openHands reports whether the StuckDetector of OpenHands flags a session. The
// thoughts of a model are left out of the comparison, which flags more.
func openHands(steps []step.Step) bool {
	var events []event
	for _, s := range steps {
		switch {
		case s.Role == step.RoleUser && (s.Note == "" || s.Note == step.NoteMessage || s.Note == step.NoteStuck):
			events = nil // only what comes after a message of a user counts
		case s.Role == step.RoleAssistant && len(s.Calls) == 0:
			events = append(events, event{kind: message})
		case s.Role == step.RoleAssistant:
			for _, c := range s.Calls {
				events = append(events, event{kind: action, name: c.Name, text: canonical(c.Args)})
			}
		case s.Role == step.RoleTool && s.IsError:
			events = append(events, event{kind: failure, text: s.Text()})
		case s.Role == step.RoleTool:
			events = append(events, event{kind: observation, name: s.Name, text: s.Text()})
		}
	}
	events = events[max(0, len(events)-20):]
	actions, observations := latest(events, action), latest(events, observation, failure)
	return alike(actions, 4, 1) && alike(observations, 4, 1) ||
		alike(actions, 3, 1) && allFailed(observations, 3) ||
		messages(events) >= 3 ||
		len(events) >= 6 && alike(actions, 6, 2) && alike(observations, 6, 2)
}

// An event is what OpenHands compares.
type event struct {
	kind       kind
	name, text string
}

type kind int

const (
	action kind = iota
	observation
	failure
	message
)

// latest are the events of some kinds, the last first.
func latest(events []event, kinds ...kind) []event {
	var found []event
	for _, e := range slices.Backward(events) {
		if slices.Contains(kinds, e.kind) {
			found = append(found, e)
		}
	}
	return found
}

// alike reports whether each of the first n events equals the one so many behind.
func alike(events []event, n, period int) bool {
	if len(events) < n {
		return false
	}
	for i := range n - period {
		if events[i] != events[i+period] {
			return false
		}
	}
	return true
}

func allFailed(events []event, n int) bool {
	return len(events) >= n && len(latest(events[:n], failure)) == n
}

// messages counts those at the end.
func messages(events []event) int {
	n := 0
	for n < len(events) && events[len(events)-1-n].kind == message {
		n++
	}
	return n
}

func canonical(args []byte) string {
	return string(bytes.ReplaceAll(args, []byte(" "), nil))
}

func TestComparedWithOpenHands(t *testing.T) {
	used := map[string]bool{}
	for name, tc := range samples() {
		var k transcript
		tc.build(&k)
		_, ours := loopdetect.Find(k)
		theirs := openHands(k)
		reason, differs := differences[name]
		used[name] = true
		switch {
		case ours != theirs && !differs:
			t.Errorf("%q: flagged here: %t, by OpenHands: %t, and the table does not say why", name, ours, theirs)
		case ours == theirs && differs:
			t.Errorf("%q: both say %t, but the table says that they differ: %s", name, ours, reason)
		}
	}
	for name := range differences {
		if !used[name] {
			t.Errorf("the table names %q, which is no sample", name)
		}
	}
}
