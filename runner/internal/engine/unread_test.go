package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// testsAndFinishes returns a testRun whose command fails beside the first call of finish.
func testsAndFinishes() *testRun {
	bash := newTool("Bash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "FAIL: TestTide\nexit code: 1", Failed: true}, nil
	})
	s := newTestRun(enginetest.Toolbox{bash, ending("Finish")})
	s.Actor.Model.Model = byAnswers{calls("Finish {}", `Bash {"n":1}`), calls("Finish {}")}
	return s
}

// byAnswers is a model that goes by the number of its answers in the session, so that it
// does not notice a resume.
type byAnswers []turn

func (b byAnswers) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	n := 0
	for _, s := range req.Steps {
		if s.Role == step.RoleAssistant {
			n++
		}
	}
	return (&fakeModel{turns: []turn{b[min(n, len(b)-1)]}}).Stream(ctx, req)
}

func TestTheModelReadsAFailureBeforeItMayFinish(t *testing.T) {
	s := testsAndFinishes()
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	assertReadBeforeTheEnd(t, s)
}

// A runner that is killed behind any record leaves a session in which the failure is read
// all the same.
func TestAFailureIsReadAlsoAfterARestart(t *testing.T) {
	whole := testsAndFinishes()
	whole.run(t)
	for at := range countRecords(whole.journal) {
		s := testsAndFinishes()
		left := at
		s.Journal = crashingLog{Memory: s.journal, left: &left}
		s.run(t)
		next := testsAndFinishes()
		next.journal, next.Journal = s.journal, s.journal
		if out := next.run(t); out.Reason != task.ReasonFinished {
			t.Fatalf("behind record %d: ended %s: %s", at, out.Reason, out.Message)
		}
		assertReadBeforeTheEnd(t, next)
	}
}

// assertReadBeforeTheEnd asserts that the session ends in the turn after the failure.
func assertReadBeforeTheEnd(t *testing.T, s *testRun) {
	t.Helper()
	said := s.transcript(t)
	if refused := fmt.Sprintf(toolcall.ResultUnread, "Bash"); !strings.Contains(said, refused) || strings.Count(said, "assistant:") != 2 {
		t.Errorf("the session is\n%s", said)
	}
}
