package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// withFiles gives the Run a workspace in which every file is an image, but for none.png, which is not
// there.
func (tr *testRun) withFiles() {
	tr.LoadFile = func(_ context.Context, path string, _ Allows) (tool.File, error) {
		if path == "none.png" {
			return tool.File{}, errors.New("File '/workspace/none.png' not found")
		}
		return tool.File{Name: "/workspace/" + path, Data: []byte("an image")}, nil
	}
	tr.Attach = func(name string, data []byte) (step.Part, error) {
		return step.Part{Kind: step.PartImage, File: &step.File{Name: name, Digest: string(data)}}, nil
	}
}

// shown returns a message that shows two files, of which one is not there.
func shown(name, value string) task.Decision {
	d := message(name, value)
	d.Images = []string{"docs/chart.png", "none.png"}
	return d
}

const notThere = "[none.png is not shown: File '/workspace/none.png' not found]"

// filesIn returns the names of the files of all steps with a role.
func filesIn(steps []step.Step, role step.Role) string {
	var names []string
	for _, s := range steps {
		for _, p := range s.Parts {
			if p.File != nil && s.Role == role {
				names = append(names, p.File.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

func TestAMessageShowsTheAgentFiles(t *testing.T) {
	c := newSignals()
	s := runWithQuestions(c, calls("Read {}"), says("ok"))
	s.withFiles()
	s.Actor.Tools = enginetest.Toolbox{newTool("Read", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		c.say(shown("m", "look"))
		return tool.Result{Text: "read"}, nil
	})}
	s.run(t)
	if got, want := s.transcript(t), "user: go\nassistant:  Read{}\ntool: read\nuser: look\n"+notThere+"\nassistant: ok"; got != want {
		t.Errorf("the session is\n%s\nwant\n%s", got, want)
	}
	if got := filesIn(s.steps(t), step.RoleUser); got != "/workspace/docs/chart.png" {
		t.Errorf("the files of the message are %q", got)
	}
}

// A message that answers a question shows its files with the answer, once, wherever the runner is
// killed.
func TestAMessageThatAnswersAQuestionShowsItsFiles(t *testing.T) {
	play := func(t *testing.T, s *testRun, log journal.Log) Outcome {
		c := newSignals()
		s.withApprovers(c)
		s.withFiles()
		s.Journal = log
		s.Actor.Model.Model = bySession{1, `Ask {"q":"How does it look?"}`}
		end := s.running(t.Context())
		synctest.Wait()
		c.say(shown("m", "as here"))
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
			if files := filesIn(next.steps(t), step.RoleTool) + filesIn(next.steps(t), step.RoleUser); files != "/workspace/docs/chart.png" ||
				strings.Count(got, "ann says as here\n"+notThere) != 1 {
				t.Errorf("behind record %d the files are %q, and the session is\n%s", at, files, got)
			}
			sound(t, next)
			total = countRecords(next.journal)
		})
	}
}
