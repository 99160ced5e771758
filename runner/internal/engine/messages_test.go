package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func message(name, value string) task.Decision {
	return task.Decision{Name: name, By: "ann", Type: task.DecisionMessage, Value: value}
}

func TestAPersonSpeaksToARunningAgent(t *testing.T) {
	c := newSignals()
	s := runWithQuestions(c, calls("Read {}"), says("ok"))
	read := newTool("Read", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		c.say(message("m1", "faster"))
		c.say(message("m2", "and better"))
		return tool.Result{Text: "read"}, nil
	})
	s.Actor.Tools = enginetest.Toolbox{read}
	out := s.run(t)
	if got, want := s.transcript(t), "user: go\nassistant:  Read{}\ntool: read\nuser: faster\nuser: and better\nassistant: ok"; got != want {
		t.Errorf("the session is\n%s\nwant\n%s", got, want)
	}
	if got := s.steps(t)[3].Note; got != step.NoteMessage {
		t.Errorf("its note is %q", got)
	}
	if diff := cmp.Diff([]task.Decided{{Name: "m1"}, {Name: "m2"}}, out.Progress.Decided, typeless); diff != "" {
		t.Errorf("decided -want +got:\n%s", diff)
	}
}

// Whatever a person says is heard once, wherever the runner is killed.
func TestWhatAPersonSaysIsHeardOnce(t *testing.T) {
	play := func(t *testing.T, s *testRun, log journal.Log) Outcome {
		c := newSignals(message("m", "hello"))
		s.withApprovers(c)
		s.Journal = log
		s.Actor.Model.Model = bySession{1, `Ask {"q":"a"}`}
		end := s.running(t.Context())
		synctest.Wait()
		c.say(answers("a", "s3c1", "main"))
		return end()
	}
	total := 20
	for at := 0; at < total; at++ {
		synctest.Test(t, func(t *testing.T) {
			s := runWithQuestions(newSignals())
			left := at
			play(t, s, crashingLog{Memory: s.journal, left: &left})
			next := s.again(enginetest.Toolbox{askTool()})
			if out := play(t, next, s.journal); out.Reason != task.ReasonFinished {
				t.Fatalf("behind record %d: ended %s: %s", at, out.Reason, out.Message)
			}
			got := next.transcript(t)
			if strings.Count(got, "hello") != 1 || strings.Count(got, "ann says main") != 1 {
				t.Errorf("behind record %d the session is\n%s", at, got)
			}
			sound(t, next)
			total = countRecords(next.journal)
		})
	}
}

// What names a request goes before a message that was said with it, and a
// message answers neither of two questions.
func TestAMessageTakesNoQuestionFromItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := runWithQuestions(c, calls(`Ask {"q":"Which branch?"}`, `Ask {"q":"Which file?"}`), says("ok"))
		end := s.running(t.Context())
		time.Sleep(time.Second)
		c.say(message("a", "hello"))
		time.Sleep(time.Second)
		if p := s.reporter.last(); len(p.Pending) != 2 || len(p.Decided) != 0 {
			t.Errorf("the message answers one of two: %+v", p)
		}
		c.say(answers("r.s2c2", "s2c2", "a.go"))
		c.say(answers("r.s2c1", "s2c1", "main"))
		end()
		want := "tool: ann says main\ntool: ann says a.go\nuser: hello\nassistant: ok"
		if got := s.transcript(t); !strings.Contains(got, want) {
			t.Errorf("the session is\n%s", got)
		}
	})
}
