package attempt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// resumesAfterACrash lets an attempt write a note and crash, and another attempt
// read it. It returns all that both left behind.
func resumesAfterACrash(t *testing.T, between func(p *testPod)) string {
	t.Helper()
	p := newTestPod(t)
	call := func(name, args string) []model.Delta {
		return []model.Delta{
			{Call: &model.CallDelta{Name: name, Args: args}},
			{Finish: step.FinishCalls, Usage: &step.Usage{InputTokens: 10, OutputTokens: 1}},
		}
	}
	p.run(p.withDriver(func(turn int, _ func() (string, error)) []model.Delta {
		if turn > 1 {
			panic("boom")
		}
		return call("Write", `{"path":"/memories/note","content":"remember"}`)
	}))
	between(p)
	p.run(p.withDriver(func(turn int, _ func() (string, error)) []model.Delta {
		if turn == 1 {
			return call("Read", `{"path":"/memories/note"}`)
		}
		return []model.Delta{{Text: "done"}, {Finish: step.FinishStop}}
	}))
	seen := p.allOutput(t)
	if !strings.Contains(seen, "Created /memories/note") {
		t.Fatalf("the first attempt wrote nothing: %s", seen)
	}
	return seen
}

func TestAResumedAttemptFindsItsMemories(t *testing.T) {
	seen := resumesAfterACrash(t, func(*testPod) {})
	if !strings.Contains(seen, "1  remember") {
		t.Errorf("the note that the journal says was created is not there: %s", seen)
	}
	if strings.Contains(seen, "below /memories before was lost") {
		t.Error("the model is told that its notes are gone")
	}
}

func TestAResumedAttemptGetsANoteOfLostMemories(t *testing.T) {
	seen := resumesAfterACrash(t, func(p *testPod) {
		if err := os.RemoveAll(filepath.Join(p.State, "memories")); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(seen, "What was written below /memories before was lost.") {
		t.Errorf("the model is not told that its notes are gone: %s", seen)
	}
}
