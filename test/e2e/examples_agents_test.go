//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// looks are turns that each look for something else.
func looks(n int, delayMS int64) []modeltest.Turn {
	list := make([]modeltest.Turn, n)
	for i := range list {
		list[i] = costing(does(call("Glob", args{"pattern": fmt.Sprintf("*.%d", i)})), 100, 0, 10)
		list[i].DelayMS = delayMS
	}
	return list
}

// agentExamples are about agents that work together, and about how far they go.
var agentExamples = map[string]example{
	"task.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-sonnet-5": turns(
				costing(does(call("Task", args{"prompt": "Write about the tide."}), call("Task", args{"prompt": "Write about the fog."})), 1000, 0, 100),
				costing(says("Two articles. The last says: {{.LastToolResult}}"), 2000, 0, 100),
			),
			"claude-haiku-4-5": turns(
				costing(does(call("Ls", args{"path": "/workspace"})), 1000, 0, 100),
				costing(says("Article: {{.LastUserMessage}}"), 1000, 0, 100),
			),
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("task"), "Article: Write about the fog.")
			p := s.runs["task"].Status.Progress
			// 3,000 and 200 at 3 and 15 dollars a million, 4,000 and 400 at 1 and 5.
			if p.Usage.InputTokens != 7000 || p.Usage.OutputTokens != 600 || *p.Usage.CostMicroUSD != 12_000+6_000 || p.Counts.Steps != 6 {
				s.t.Errorf("all of it is %+v, %+v", p.Usage, p.Counts)
			}
			if got := s.children("task", step.EventChildStarted); !slices.Equal(got, []string{"s2c1", "s2c2"}) {
				s.t.Errorf("sessions are %v", got)
			}
		},
	},
	"agents.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-sonnet-5": turns(
				costing(does(call("mate", args{"ropes": "many"})), 1000, 0, 100),
				costing(does(call("mate", args{"ropes": 3})), 1000, 0, 100),
				costing(says("The mate says: {{.LastToolResult}}"), 1000, 0, 100),
			),
			"claude-sonnet-5?You see to it that 3 ropes": turns(
				costing(does(call("give_to_deckhand", args{"prompt": "Coil 3 ropes."})), 1000, 0, 100),
				costing(does(call("Finish", args{"coiled": 3})), 1000, 0, 100),
			),
			"claude-haiku-4-5": turns(
				costing(does(call("Write", args{"path": "log.txt", "content": "{{.LastUserMessage}} Done.\n"})), 1000, 0, 100),
				costing(says("Coiled."), 1000, 0, 100),
			),
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("agents"), `{"coiled":3}`)
			p := s.runs["agents"].Status.Progress
			// Five turns at 3 and 15 dollars a million, two at 1 and 5.
			if p.Usage.InputTokens != 7000 || p.Usage.OutputTokens != 700 || *p.Usage.CostMicroUSD != 5*4_500+2*1_500 || p.Counts.Steps != 7 {
				s.t.Errorf("all of it is %+v, %+v", p.Usage, p.Counts)
			}
			if got := s.children("agents", step.EventChildStarted); !slices.Equal(got, []string{"s4c1", "s4c1.s2c1"}) {
				s.t.Errorf("sessions are %v", got)
			}
			s.has("arguments that do not fit", s.results("agents", "mate")[0].Text(), "ropes")
			if len(p.Result.Files) != 1 || p.Result.Files[0].Path != "/workspace/log.txt" {
				s.t.Errorf("files are %+v", p.Result.Files)
			}
		},
	},
	"limits.yaml": {
		models: map[string]modeltest.Dialogue{
			"gpt-5-mini": {Turns: looks(20, 0)},
			"gpt-5-mini?Give it to a sub-agent": turns(
				does(call("Task", args{"prompt": "Look around."})),
				says("I did it myself, because: {{.LastToolResult}}"),
			),
		},
		check: func(s *exampleFixture) {
			s.has("the message", message(s.ended("model-calls", "False StepLimit")), "Used 3 of 3 modelCalls")
			s.has("the message", message(s.ended("tool-calls", "False StepLimit")), "Used 2 of 2 toolCalls")
			if c := s.runs["tool-calls"].Status.Progress.Counts; c.ToolCalls != 2 {
				s.t.Errorf("counts are %+v", c)
			}
			s.has("the answer", s.says("depth"), "limits.depth")
		},
	},
	"stuck.yaml": {
		models: map[string]modeltest.Dialogue{"gpt-5-mini": {Turns: []modeltest.Turn{does(call("Ls", args{"path": "/workspace"}))}, After: modeltest.Repeat}},
		check: func(s *exampleFixture) {
			s.has("the message", message(s.ended("stuck", "False Stuck")), "repeated itself", "Ls")
			if got := len(s.events("stuck", step.EventNudged)); got != 1 {
				s.t.Errorf("it was told %d times", got)
			}
			if c := s.runs["stuck"].Status.Progress.Counts; c.Steps > 20 {
				s.t.Errorf("it went on for %d steps", c.Steps)
			}
		},
	},
}

// children are the sessions that were opened or have ended, in order.
func (s *exampleFixture) children(run string, what step.EventType) []string {
	s.t.Helper()
	var names []string
	for _, e := range s.events(run, what) {
		var data struct{ Session string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			s.t.Fatal(err)
		}
		names = append(names, data.Session)
	}
	slices.Sort(names)
	return names
}
