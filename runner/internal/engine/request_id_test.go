package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The digits are of what is called, not of what is shown, which is cut.
func TestTheIDIsOfTheCompleteArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", 2*task.MaxArgs)
		one, two := `{"a":"`+long+`1`+long+`"}`, `{"a":"`+long+`2`+long+`"}`
		c := newSignals()
		s := governedRun(c, calls("Bash "+one, "Bash "+two), says("ok"))
		end := s.running(t.Context())
		synctest.Wait()
		p := s.reporter.last().Pending
		if len(p) != 2 || p[0].Args != p[1].Args || p[0].ID != requested("s2c1", "Bash", one) || p[1].ID != requested("s2c2", "Bash", two) {
			t.Errorf("pending %+v", p)
		}
		c.say(approve("d", requested("s2c1", "Bash", two), ""))
		c.say(approve("e", requested("s2c2", "Bash", two), ""))
		end()
		if made := s.doneWith("Bash"); len(made) != 1 || made[0] != two {
			t.Errorf("%d calls were made", len(made))
		}
	})
}

// What the model wrote of a secret is not what is called: the tool is called without
// it, and the digits are of that.
func TestTheIDIsOfWhatIsCalledWhereAModelWritesASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"key":"`+canary+`"}`), says("ok"))
		s.Redact = redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(canary)})
		end := s.running(t.Context())
		synctest.Wait()
		c.say(approve("d", s.reporter.last().Pending[0].ID, ""))
		end()
		made := s.doneWith("Bash")
		if len(made) != 1 || s.reporter.last().Decided[0].Digest != digest.Call("Bash", json.RawMessage(made[0])) {
			t.Errorf("made %v for %+v", made, s.reporter.last().Decided)
		}
	})
}

// Requests that are asked at once are shown in the order of their calls, whatever
// their ids end in.
func TestRequestsAreShownInTheOrderOfTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := governedRun(newSignals(), calls(`Bash {}`, `Ask {"q":"a"}`, `Bash {"n":1}`, `Ask {"q":"b"}`), says("ok"))
		s.Actor.Agent.ParallelTools = 4
		s.Actor.Tools = enginetest.Toolbox{echo("Bash", tool.ReadOnly), askTool()}
		end := s.running(t.Context())
		synctest.Wait()
		var got []string
		for _, p := range s.reporter.last().Pending {
			got = append(got, approval.CallOf(p.ID))
		}
		if !slices.Equal(got, []string{"s2c1", "s2c2", "s2c3", "s2c4"}) {
			t.Errorf("shown are %v", got)
		}
		end()
	})
}
