package events_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// sectionTitle is the title in AGENTS.md of the places of an event.
const sectionTitle = "Add an event of the log"

func TestEveryTypeOfEventHasAPayload(t *testing.T) {
	source, err := os.ReadFile("../step/step.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range events.Payloads {
		known[string(p.EventType())] = true
	}
	types := regexp.MustCompile(`(?m)^\tEvent\w+ +EventType = "(.*)"$`).FindAllSubmatch(source, -1)
	if len(types) == 0 {
		t.Fatal("runner/step/step.go has no types of events")
	}
	for _, m := range types {
		if !known[string(m[1])] {
			t.Errorf("%s of runner/step/step.go is not in Payloads of runner/events/payload.go; see %q in AGENTS.md", m[1], sectionTitle)
		}
	}
	if len(types) != len(events.Payloads) {
		t.Errorf("runner/step/step.go has %d types, Payloads has %d; see %q in AGENTS.md", len(types), len(events.Payloads), sectionTitle)
	}
}

// What is not in the digest could be another text in a forged log.
func TestTheDisplayDigestCoversWhatAUserSees(t *testing.T) {
	request := func(mods ...func(*events.Pending)) string {
		p := events.Pending{
			ID: "s4c1-f75d", Kind: "Approval", Agent: "fixer", Question: "May I?", Tool: "Bash", Args: `{"command":"ls"}`, Digest: "f75d", Rule: "commands",
			Approvers: &task.Approvers{Groups: []string{"sre", "release"}}, Schema: "{}", AskedAt: "2000-01-01T00:00:00Z",
		}
		for _, mod := range mods {
			mod(&p)
		}
		return p.ComputeDisplayDigest()
	}
	cases := map[string]func(*events.Pending){
		"another id":                 func(p *events.Pending) { p.ID = "s4c2-f75d" },
		"another kind":               func(p *events.Pending) { p.Kind = "Question" },
		"another agent":              func(p *events.Pending) { p.Agent = "" },
		"another question":           func(p *events.Pending) { p.Question = "May I" },
		"another tool":               func(p *events.Pending) { p.Tool = "bash" },
		"other arguments":            func(p *events.Pending) { p.Args = `{"command":"ls "}` },
		"the digest of another call": func(p *events.Pending) { p.Digest = "f75e" },
		"another rule":               func(p *events.Pending) { p.Rule = "" },
		"another schema":             func(p *events.Pending) { p.Schema = "{ }" },
		"fewer groups":               func(p *events.Pending) { p.Approvers.Groups = p.Approvers.Groups[:1] },
		"a user besides":             func(p *events.Pending) { p.Approvers.Users = []string{"ann"} },
		"a user in place of a group": func(p *events.Pending) {
			p.Approvers = &task.Approvers{Groups: []string{"sre"}, Users: []string{"release"}}
		},
		"no groups":                         func(p *events.Pending) { p.Approvers = nil },
		"a text that moves into the next":   func(p *events.Pending) { p.Question, p.Tool = p.Question+p.Tool[:1], p.Tool[1:] },
		"two groups whose names are joined": func(p *events.Pending) { p.Approvers.Groups = []string{"srerelease"} },
	}
	for name, mod := range cases {
		t.Run(name, func(t *testing.T) {
			if request(mod) == request() {
				t.Error("the digest is the same")
			}
		})
	}
	later := func(p *events.Pending) {
		p.AskedAt, p.ExpiresAt, p.DisplayDigest = "2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z", "81ab"
	}
	if request(later) != request() {
		t.Error("the digest depends on times, or on itself")
	}
	const golden = "2780d86bfca6dce60bd30f16e912893e987837299fe757dd47dacfb79d38e212" // it must never change: a runner and a command of different releases compare it
	if got := request(); got != golden {
		t.Errorf("ComputeDisplayDigest() = %s, want %s", got, golden)
	}
}
