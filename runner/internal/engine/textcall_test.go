package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	hermes  = "I'll write the file now.\n<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"report.md\"}}\n</tool_call>"
	mistral = "[TOOL_CALLS]Read{\"path\": \"report.md\"}"
)

// writes is a testRun whose agent has Write and Read, and how often it wrote.
func writes(turns ...turn) (*testRun, *int) {
	written := 0
	write := newTool("Write", tool.Idempotent, func(context.Context, tool.Call) (tool.Result, error) {
		written++
		return tool.Result{Text: "written"}, nil
	})
	write.Input = []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	return newTestRun(enginetest.Toolbox{write, echo("Read", tool.ReadOnly), ending("Finish")}, turns...), &written
}

func TestACallAsTextDoesNotEndTheWork(t *testing.T) {
	for name, tc := range map[string]struct {
		turns   []turn
		prompt  string
		schema  string
		want    task.Reason
		written int
		nudges  int
	}{
		"the model is told, and calls the tool":       {turns: []turn{says(hermes), calls(`Write {"path":"report.md"}`), says("Report written.")}, want: task.ReasonFinished, written: 1, nudges: 1},
		"the model is told, and ends with its result": {turns: []turn{says(hermes), says("I could not write the report.")}, want: task.ReasonFinished, nudges: 1},
		"the same again":                               {turns: []turn{says(hermes), says(hermes), says("never")}, want: task.ReasonInvalidOutput, nudges: 1},
		"again in other words":                         {turns: []turn{says(hermes), says(mistral), says("never")}, want: task.ReasonInvalidOutput, nudges: 1},
		"again after a call that was made":             {turns: []turn{says(hermes), calls(`Write {"path":"report.md"}`), says(mistral), says("Report written.")}, want: task.ReasonFinished, written: 1, nudges: 2},
		"after an empty answer":                        {turns: []turn{says(""), says(hermes), says(mistral), says("never")}, want: task.ReasonInvalidOutput, nudges: 2},
		"again with a tool that is not offered":        {turns: []turn{says(hermes), says(`<tool_call>{"name":"write_file","arguments":{"path":"a"}}</tool_call>`), says("never")}, want: task.ReasonInvalidOutput, nudges: 1},
		"again with an invented result":                {turns: []turn{says(hermes), says("<function=create_file>\n<parameter=path>a</parameter>\n</function>\n<result>ok</result>\nReport written."), says("never")}, want: task.ReasonInvalidOutput, nudges: 1},
		"again as a script":                            {turns: []turn{says(hermes), says("calling it now\n```bash\ncat > report.md <<EOF\n# A\nEOF\n```"), says("never")}, want: task.ReasonInvalidOutput, nudges: 1},
		"where the output has a schema":                {turns: []turn{says(hermes), calls(`Write {"path":"report.md"}`), calls(`Finish {"ok":true}`)}, schema: `{"type":"object","required":["ok"]}`, want: task.ReasonFinished, written: 1, nudges: 1},
		"what the prompt asked to see":                 {turns: []turn{says(hermes)}, prompt: "Show me an example of a tool call.", want: task.ReasonFinished},
		"what the prompt has in it":                    {turns: []turn{says(hermes)}, prompt: "Repeat this: " + hermes, want: task.ReasonFinished},
		"a text that explains calls":                   {turns: []turn{says("The parser did not find the `<tool_call>` of Write.")}, want: task.ReasonFinished},
		"a finish with such a text is an end as it is": {turns: []turn{calls(`Finish {"text":"<tool_call>{\"name\":\"Write\"}</tool_call>"}`)}, want: task.ReasonFinished},
	} {
		t.Run(name, func(t *testing.T) {
			s, written := writes(tc.turns...)
			if tc.prompt != "" {
				s.Task.Prompt = tc.prompt
			}
			if tc.schema != "" {
				s.Actor.Agent.OutputSchema = []byte(tc.schema)
			}
			out := s.run(t)
			if out.Reason != tc.want {
				t.Errorf("ended %s, want %s: %s", out.Reason, tc.want, out.Message)
			}
			if *written != tc.written {
				t.Errorf("written %d times, want %d", *written, tc.written)
			}
			if got := len(s.sink.of(step.EventNudged)); got != tc.nudges {
				t.Errorf("%d nudges, want %d", got, tc.nudges)
			}
		})
	}
}

// The message names the tool and what the owner of the server can do.
func TestTheEndByACallAsTextNamesItsCause(t *testing.T) {
	s, _ := writes(says(hermes), says(mistral))
	out := s.run(t)
	for _, part := range []string{"Read", "as text", "--tool-call-parser"} {
		if !strings.Contains(out.Message, part) {
			t.Errorf("the message has no %q: %s", part, out.Message)
		}
	}
}

// A runner that is killed after the first text knows of it, so that the second ends the Run.
func TestACallAsTextIsRememberedAfterARestart(t *testing.T) {
	first, _ := writes(says(hermes), fails(errKilled))
	first.run(t)
	next := first.again(first.Actor.Tools.(enginetest.Toolbox), says(mistral), says("never"))
	if out := next.run(t); out.Reason != task.ReasonInvalidOutput {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

// A value of the output schema is the output, though it has the form of a call.
func TestAnOutputThatLooksLikeACallIsAskedForWithFinish(t *testing.T) {
	s, _ := writes(says(`{"name":"Write","arguments":{"path":"a"}}`), calls(`Finish {"name":"Write","arguments":{"path":"a"}}`))
	s.Actor.Agent.OutputSchema = []byte(`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name","arguments"]}`)
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if said := s.transcript(t); !strings.Contains(said, nudgeFinish) {
		t.Errorf("the session is\n%s", said)
	}
}
