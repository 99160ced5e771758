package delegate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// An office answers for every agent, and remembers what it was handed.
type office struct {
	tool.Session
	handed []tool.Delegation
	result tool.Result
	err    error
}

func (o *office) Delegate(_ context.Context, d tool.Delegation) (tool.Result, error) {
	o.handed = append(o.handed, d)
	return o.result, o.err
}

var self = task.Agent{Name: "self"}

var agents = []task.Agent{{Name: "reviewer", Description: "Reviews\n a change."}, {Name: "writer"}}

const typed = `{"type":"object","required":["file"],"additionalProperties":false,"properties":{
	"file":{"type":"string"},"prompt":{"type":"string"},"lines":{"type":"integer"}}}`

func agent(t *testing.T, a task.Agent, name string) tool.Tool {
	t.Helper()
	made, err := Agent(a, name)
	if err != nil {
		t.Fatalf("Agent: %v", err)
	}
	return made
}

func remote(t *testing.T, a task.Agent) tool.Tool {
	t.Helper()
	made, err := Run(a, "")
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return made
}

func TestCalls(t *testing.T) {
	reviewer := agent(t, agents[0], "")
	fixer := agent(t, task.Agent{Name: "fixer", InputSchema: json.RawMessage(typed)}, "fix")
	far := remote(t, task.Agent{Name: "reviewer"})
	filled := agent(t, task.Agent{Name: "filler", InputSchema: json.RawMessage(`{"type":"object","properties":{"file":{"type":"string"},"lines":{"type":"integer","default":3}}}`)}, "")
	farTyped := remote(t, task.Agent{Name: "fixer", InputSchema: json.RawMessage(typed)})
	const result = "Done."
	cases := map[string]struct {
		tool   tool.Tool
		args   string
		handed *tool.Delegation
		want   string // the text, or the error
	}{
		"task, to itself":               {Task(self, agents), `{"prompt":"Find it"}`, &tool.Delegation{Prompt: "Find it"}, result},
		"task, to another":              {Task(self, agents), `{"prompt":"Find it","agent":"writer"}`, &tool.Delegation{Agent: "writer", Prompt: "Find it"}, result},
		"task, to nobody":               {Task(self, agents), `{"prompt":"Find it","agent":"tester"}`, nil, "Error: There is no agent \"tester\" to hand work to.\n- There are: reviewer, writer.\n- Leave agent out to hand it to a fresh session of your own kind."},
		"task, of nothing":              {Task(self, agents), `{"prompt":" "}`, nil, "Error: The prompt is empty.\n- Write the whole task into it: the other session knows nothing else."},
		"task, without agents":          {Task(self, nil), `{"prompt":"Find it"}`, &tool.Delegation{Prompt: "Find it"}, result},
		"task, where there is none":     {Task(self, nil), `{"prompt":"Find it","agent":"x"}`, nil, "Error: Invalid arguments for Task: `agent` is not known; there are: prompt (required)."},
		"an agent":                      {reviewer, `{"prompt":"Look"}`, &tool.Delegation{Agent: "reviewer", Prompt: "Look", Input: json.RawMessage(`{"prompt":"Look"}`)}, result},
		"an agent, of nothing":          {reviewer, `{}`, nil, "Error: Invalid arguments for reviewer: `prompt` is missing; there are: prompt (required)."},
		"a typed agent":                 {fixer, `{"file": "a.go", "lines": 3}`, &tool.Delegation{Agent: "fixer", Prompt: `{"file":"a.go","lines":3}`, Input: json.RawMessage(`{"file": "a.go", "lines": 3}`)}, result},
		"a typed agent with prompt":     {fixer, `{"file":"a.go","prompt":"Fix it"}`, &tool.Delegation{Agent: "fixer", Prompt: "Fix it", Input: json.RawMessage(`{"file":"a.go","prompt":"Fix it"}`)}, result},
		"an agent in a Run":             {far, `{"prompt":"Look"}`, &tool.Delegation{Agent: "reviewer", Run: true, Prompt: "Look", Input: json.RawMessage(`{"prompt":"Look"}`)}, result},
		"a typed agent in a Run":        {farTyped, `{"file":"a.go"}`, &tool.Delegation{Agent: "fixer", Run: true, Prompt: `{"file":"a.go"}`, Input: json.RawMessage(`{"file":"a.go"}`)}, result},
		"an agent in a Run, of nothing": {far, `{"prompt":""}`, nil, "Error: The prompt is empty.\n- Write the whole task into it: the other session knows nothing else."},
		"a prompt that is empty":        {fixer, `{"file":"a.go","prompt":""}`, &tool.Delegation{Agent: "fixer", Prompt: `{"file":"a.go","prompt":""}`, Input: json.RawMessage(`{"file":"a.go","prompt":""}`)}, result},
		"an agent with a default":       {filled, `{"file":"a.go"}`, &tool.Delegation{Agent: "filler", Prompt: `{"file":"a.go","lines":3}`, Input: json.RawMessage(`{"file":"a.go","lines":3}`)}, result},
		"arguments that do not fit":     {fixer, `{"file":1}`, nil, "Error: Invalid arguments for fix: `file` must be a string; got an integer."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &office{result: tool.Result{Text: result}}
			got, err := tc.tool.Call(t.Context(), tool.Call{ID: "s1c2", Args: json.RawMessage(tc.args), Session: o})
			if err != nil {
				t.Fatalf("Call: %v", err)
			}
			if diff := cmp.Diff(tc.want, got.Render()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var want []tool.Delegation
			if tc.handed != nil {
				tc.handed.Call = "s1c2"
				want = []tool.Delegation{*tc.handed}
			}
			if diff := cmp.Diff(want, o.handed); diff != "" {
				t.Errorf("handed over -want +got:\n%s", diff)
			}
		})
	}
}

func TestTaskTakesTheInputOfAnAgent(t *testing.T) {
	const defaulted = `{"type":"object","properties":{"file":{"type":"string"},"lines":{"type":"integer","default":3}}}`
	const closed = `{"type":"object","additionalProperties":false,"properties":{"lines":{"type":"integer","default":3}}}`
	declared := Task(task.Agent{Name: "self", InputSchema: json.RawMessage(typed)}, []task.Agent{
		{Name: "fixer", InputSchema: json.RawMessage(typed)},
		{Name: "filler", InputSchema: json.RawMessage(defaulted)},
		{Name: "closed", InputSchema: json.RawMessage(closed)},
		{Name: "writer"},
	})
	alone := Task(task.Agent{Name: "self", InputSchema: json.RawMessage(typed)}, nil)
	ownFilled := Task(task.Agent{Name: "self", InputSchema: json.RawMessage(defaulted)}, nil)
	to := func(agent, input string) *tool.Delegation {
		d := tool.Delegation{Call: "s1c2", Agent: agent, Prompt: "Fix it"}
		if input != "" {
			d.Input = json.RawMessage(input)
		}
		return &d
	}
	const advice = "\n- Write the input that the description of this tool names."
	cases := map[string]struct {
		tool   tool.Tool
		args   string
		handed *tool.Delegation
		want   string // the text, or the error
	}{
		"all that is required":         {declared, `{"prompt":"Fix it","agent":"fixer","input":{"file":"a.go"}}`, to("fixer", `{"file":"a.go","prompt":"Fix it"}`), "Done."},
		"a prompt of its own":          {declared, `{"prompt":"Fix it","agent":"fixer","input":{"file":"a.go","prompt":"b"}}`, to("fixer", `{"file":"a.go","prompt":"b"}`), "Done."},
		"a number with all its digits": {declared, `{"prompt":"Fix it","agent":"filler","input":{"lines":9007199254740993}}`, to("filler", `{"lines":9007199254740993,"prompt":"Fix it"}`), "Done."},
		"a default":                    {declared, `{"prompt":"Fix it","agent":"filler"}`, to("filler", `{"lines":3,"prompt":"Fix it"}`), "Done."},
		"no prompt beside it":          {declared, `{"prompt":"Fix it","agent":"closed"}`, to("closed", `{"lines":3}`), "Done."},
		"its own kind":                 {alone, `{"prompt":"Fix it","input":{"file":"a.go"}}`, to("", `{"file":"a.go","prompt":"Fix it"}`), "Done."},
		"its own kind, without input":  {declared, `{"prompt":"Fix it"}`, to("", ""), "Done."},
		"its own kind, empty input":    {declared, `{"prompt":"Fix it","input":{}}`, to("", ""), "Done."},
		"its own kind, a default":      {ownFilled, `{"prompt":"Fix it"}`, to("", `{"lines":3,"prompt":"Fix it"}`), "Done."},
		"an agent without a schema":    {declared, `{"prompt":"Fix it","agent":"writer"}`, to("writer", ""), "Done."},
		"an empty input":               {declared, `{"prompt":"Fix it","agent":"writer","input":{}}`, to("writer", ""), "Done."},
		"no input":                     {declared, `{"prompt":"Fix it","agent":"fixer"}`, nil, "Error: The input of the agent fixer does not fit: `file` is missing; there are: file (required), lines, prompt." + advice},
		"another type":                 {declared, `{"prompt":"Fix it","agent":"fixer","input":{"file":1}}`, nil, "Error: The input of the agent fixer does not fit: `file` must be a string; got an integer." + advice},
		"its own kind, another type":   {alone, `{"prompt":"Fix it","input":{"file":1}}`, nil, "Error: The input of the agent self does not fit: `file` must be a string; got an integer." + advice},
		"no object":                    {declared, `{"prompt":"Fix it","agent":"fixer","input":"a.go"}`, nil, "Error: Invalid arguments for Task: `input` must be an object; got a string."},
		"what is not taken":            {declared, `{"prompt":"Fix it","agent":"writer","input":{"file":"a.go"}}`, nil, "Error: The agent writer takes no input.\n- Leave input out, and write all that the agent needs into prompt."},
		"no agent":                     {alone, `{"prompt":"Fix it","agent":"fixer"}`, nil, "Error: Invalid arguments for Task: `agent` is not known; there are: prompt (required), input."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &office{result: tool.Result{Text: "Done."}}
			got, err := tc.tool.Call(t.Context(), tool.Call{ID: "s1c2", Args: json.RawMessage(tc.args), Session: o})
			if err != nil {
				t.Fatalf("Call: %v", err)
			}
			var want []tool.Delegation
			if tc.handed != nil {
				want = []tool.Delegation{*tc.handed}
			}
			if diff := cmp.Diff(tc.want, got.Render()) + cmp.Diff(want, o.handed); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, words := range []string{"\n- fixer\n  input: {\"type\":\"object\",\"required\":[\"file\"],", "\n- writer", "\n\nInput of your own kind: {\"type\":\"object\","} {
		if !strings.Contains(declared.Description, words) {
			t.Errorf("there is no %q in the description:\n%s", words, declared.Description)
		}
	}
}

// Rules see the defaults of the agent that a call of Task names, as they see those of an agent with a tool of its own.
func TestTaskShowsPoliciesTheWholeInput(t *testing.T) {
	const target = `{"type":"object","properties":{"env":{"type":"string","default":"prod"},"prompt":{"type":"string","default":"-"}}}`
	deployer := task.Agent{Name: "deployer", InputSchema: json.RawMessage(target)}
	made := Task(deployer, []task.Agent{deployer, {Name: "fixer", InputSchema: json.RawMessage(typed)}, {Name: "writer"}})
	rule := policy.Rule{Name: "prod", When: `has(args.input) && has(args.input.env) && args.input.env == "prod"`, Answer: policy.Deny, Reason: "no"}
	rules, err := policy.Compile([]policy.Rule{rule}, policy.ToolKinds{NameTask: policy.Plain})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ args, want, rule string }{
		"a default":                 {`{"prompt":"x","agent":"deployer"}`, `{"agent":"deployer","input":{"env":"prod"},"prompt":"x"}`, "prod"},
		"an input without it":       {`{"prompt":"x","agent":"deployer","input":{}}`, `{"agent":"deployer","input":{"env":"prod"},"prompt":"x"}`, "prod"},
		"the default of its own":    {`{"prompt":"x"}`, `{"input":{"env":"prod"},"prompt":"x"}`, "prod"},
		"another value":             {`{"prompt":"x","agent":"deployer","input":{"env":"test"}}`, `{"prompt":"x","agent":"deployer","input":{"env":"test"}}`, ""},
		"a prompt in the input":     {`{"prompt":"x","agent":"deployer","input":{"prompt":"y"}}`, `{"agent":"deployer","input":{"env":"prod","prompt":"y"},"prompt":"x"}`, "prod"},
		"an input that is missing":  {`{"prompt":"x","agent":"fixer"}`, `{"prompt":"x","agent":"fixer"}`, ""},
		"an agent without a schema": {`{"prompt":"x","agent":"writer"}`, `{"prompt":"x","agent":"writer"}`, ""},
		"no agent":                  {`{"prompt":"x","agent":"nobody"}`, `{"prompt":"x","agent":"nobody"}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refused := made.CanonicalArgs(t.Context(), json.RawMessage(tc.args))
			again, _ := made.CanonicalArgs(t.Context(), got)
			if refused != nil || string(got) != tc.want || string(again) != tc.want {
				t.Errorf("the arguments are\n%s, then\n%s, want\n%s (%v)", got, again, tc.want, refused)
			}
			if decided := rules.Decide(t.Context(), policy.Call{Tool: NameTask, Args: got}); decided.Rule != tc.rule {
				t.Errorf("decided by rule %q, want %q", decided.Rule, tc.rule)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	call := func(to tool.Tool, args string, r tool.Result) string {
		got, err := to.Call(t.Context(), tool.Call{Args: json.RawMessage(args), Session: &office{result: r}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Summary
	}
	if got := call(Task(self, nil), `{"prompt":"a\n  b"}`, tool.Result{}); got != "a b" {
		t.Errorf("Summary = %q", got)
	}
	if got := call(agent(t, agents[0], "x"), `{"prompt":"a"}`, tool.Fail("no")); got != "reviewer: a" {
		t.Errorf("Summary = %q", got)
	}
	if got := call(Task(self, nil), `{"prompt":"`+strings.Repeat("é", 500)+`"}`, tool.Result{}); len(got) > task.MaxSummary {
		t.Errorf("Summary has %d bytes", len(got))
	}
	if got := call(Task(self, nil), `{"prompt":"a"}`, tool.Result{Summary: "the session's own"}); got != "the session's own" {
		t.Errorf("Summary = %q", got)
	}
}

func TestAnErrorOfTheSessionIsPassedOn(t *testing.T) {
	lost := errors.New("the journal is full")
	for _, to := range []tool.Tool{Task(self, nil), Task(self, agents), agent(t, agents[0], "")} {
		_, err := to.Call(t.Context(), tool.Call{Args: json.RawMessage(`{"prompt":"x"}`), Session: &office{err: lost}})
		if !errors.Is(err, lost) {
			t.Errorf("%s: error %v, want %v", to.Name, err, lost)
		}
	}
}

func TestSpecs(t *testing.T) {
	long := strings.Repeat("a", 80)
	cases := map[string]struct {
		tool  tool.Tool
		name  string
		words []string
	}{
		"task":                         {Task(self, agents), "Task", []string{"\n\nAgents:\n- reviewer: Reviews a change.\n- writer", "continues where it stopped"}},
		"an agent":                     {agent(t, agents[0], ""), "reviewer", []string{"Reviews\n a change.\n\nIt works in a session of its own"}},
		"an agent without words":       {agent(t, agents[1], ""), "writer", []string{"Has the agent writer do a piece of work."}},
		"an agent in a Run":            {remote(t, agents[0]), "reviewer", []string{"Reviews\n a change.\n\nIt works in a Run of its own", "no files"}},
		"an agent by another name":     {agent(t, agents[1], "write"), "write", []string{"agent writer"}},
		"a name that providers refuse": {agent(t, task.Agent{Name: "team.x/rév"}, ""), "team_x_r_v", nil},
		"a name that is too long":      {agent(t, task.Agent{Name: long}, ""), long[:64], nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := tc.tool.Spec
			if spec.Name != tc.name || spec.Effect != tool.Resumable || spec.Timeout != tool.Unbounded || spec.Concurrency != tool.Parallel {
				t.Errorf("Spec() = %+v", spec)
			}
			for _, w := range tc.words {
				if !strings.Contains(spec.Description, w) {
					t.Errorf("there is no %q in the description:\n%s", w, spec.Description)
				}
			}
			if _, err := toolbox.New(tc.tool); err != nil {
				t.Error(err)
			}
		})
	}
	var input struct{ Properties map[string]any }
	if err := json.Unmarshal(Task(self, nil).Input, &input); err != nil || len(input.Properties) != 1 {
		t.Errorf("without agents there are %v to choose from (%v)", input.Properties, err)
	}
	if got := string(agent(t, task.Agent{Name: "x", InputSchema: json.RawMessage(typed)}, "").Input); got != typed {
		t.Errorf("Input = %s", got)
	}
}

func TestAnInputSchemaThatIsNone(t *testing.T) {
	for _, input := range []string{`{"type":"object","oneOf":[]}`, `{"type":"string"}`, `[]`, `nonsense`} {
		_, err := Agent(task.Agent{Name: "x", InputSchema: json.RawMessage(input)}, "")
		var wrong *schema.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "input schema of the agent x") {
			t.Errorf("Agent with %s: error %v", input, err)
		}
	}
}
