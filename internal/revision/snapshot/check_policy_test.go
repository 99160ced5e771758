package snapshot_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// ruled is an Agent of files, a shell, a Toolset and another agent, with rules.
func ruled(rules ...v1alpha1.PolicyRule) *v1alpha1.Agent {
	a := using("debian:1", v1alpha1.Tool{Builtin: v1alpha1.BuiltinFiles}, aShell, ofToolset("hub"), ofToolset("api"), v1alpha1.Tool{Agent: "other"})
	a.Spec.Policy = rules
	return a
}

// readOnly is a ruled Agent that only reads files.
func readOnly(rules ...v1alpha1.PolicyRule) *v1alpha1.Agent {
	a := ruled(rules...)
	a.Spec.Tools[0].Allow = []string{"Read", "Ls", "Glob", "Grep"}
	return a
}

func rule(name, when string) v1alpha1.PolicyRule {
	return v1alpha1.PolicyRule{Name: name, When: when, Answer: v1alpha1.PolicyAsk}
}

// around are the Objects that a ruled Agent reaches.
func around() snapshot.Objects {
	o := withToolsets(toolset("hub", apart), toolset("api", func(s *v1alpha1.ToolsetSpec) {
		s.Requests = &v1alpha1.Requests{BaseURL: "https://api.example", Tools: []v1alpha1.RequestTool{{Name: "get", Description: "Gets.", Method: "GET", Path: "/x"}}}
	}))
	o.Agents["other"] = gen.Agent(func(a *v1alpha1.Agent) {
		a.Name = "other"
		a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinBrowse}}
	})
	return o
}

func TestPoliciesAreCompiled(t *testing.T) {
	approved := func(tool int, when string) *v1alpha1.Agent {
		a := ruled()
		a.Spec.Tools[tool].Approval = &v1alpha1.Approval{When: when}
		return a
	}
	plain := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Policy = []v1alpha1.PolicyRule{rule("r", "shell.opaque()")} })
	custom := gen.Agent(func(a *v1alpha1.Agent) {
		a.Spec.Policy = []v1alpha1.PolicyRule{rule("r", `tool == "mine" && shell.opaque()`)}
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "mine:1"}
	})
	cases := map[string]struct {
		agent *v1alpha1.Agent
		want  string // empty: it is Ready
	}{
		"good rules":                        {ruled(rule("a", `shell.runs("git", "push")`), rule("b", `tool == "Write" && args.file_path.startsWith("/workspace/docs")`), rule("c", "")), ""},
		"a tool that a server may offer":    {ruled(rule("a", `tool == "hub__create_issue"`)), ""},
		"a tool that allow leaves out":      {readOnly(rule("a", `tool == "Write"`)), `there is no tool "Write"; the agent has`},
		"a tool that allow names":           {readOnly(rule("a", `tool == "Read"`)), ""},
		"a request":                         {ruled(rule("a", `tool == "api__get"`)), ""},
		"a request that is not there":       {ruled(rule("a", `tool == "api__put"`)), `spec.policy: rule 1 "a": when, column 9: there is no tool "api__put"; the agent has`},
		"a tool of an agent that it calls":  {ruled(rule("a", `tool == "Browse"`)), ""},
		"an agent that it calls":            {ruled(rule("a", `tool == "other"`)), ""},
		"a tool that nobody has":            {ruled(rule("a", ""), rule("b", `tool == "Bash"`)), `spec.policy: rule 2 "b": when, column 9: there is no tool "Bash"; the agent has Browse, Edit,`},
		"the end of a Run is not governed":  {ruled(rule("a", `tool == "Finish"`)), `there is no tool "Finish"`},
		"a former name of a tool":           {ruled(rule("a", ""), rule("b", `tool == "shell" && shell.runs("rm")`)), `spec.policy: rule 2 "b": when, column 9: the tool shell is called Shell: write 'Shell'`},
		"a test of a former name":           {ruled(rule("a", `tool.startsWith("shell")`)), `spec.policy: rule 1 "a": when, column 16: this holds for shell, as the tool Shell was called, and not for Shell`},
		"no condition":                      {ruled(rule("a", "args.size()")), `spec.policy: rule 1 "a": when, column 1: this is a value of type int, not a condition`},
		"no CEL":                            {ruled(rule("a", `tool = "Write"`)), `spec.policy: rule 1 "a": when, column 6:`},
		"two rules of one name":             {ruled(rule("a", ""), rule("a", "")), `spec.policy: rule 2 "a": name: another rule has this name; give each its own`},
		"the shell of an agent without one": {plain, "shell is about the tool that runs command lines, and the agent has none"},
		"tools of a runner of one's own":    {custom, ""},
		"approvals of all kinds":            {approved(1, `shell.runs("rm")`), ""},
		"an approval of a whole Toolset":    {approved(2, ""), ""},
		"an approval that is no CEL":        {approved(1, "args.command &&"), "spec.tools: approval of builtin Shell: when, column "},
		"an approval of files":              {approved(0, `tool == "Write"`), ""},
		"an approval of a request":          {approved(3, `args.x == 1 and true`), "spec.tools: approval of toolset api: when, column"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Of(tc.agent, around())
			if tc.want == "" {
				if err != nil {
					t.Errorf("Of() = %v", err)
				}
				return
			}
			var problem *snapshot.NotReadyError
			if !errors.As(err, &problem) || problem.Reason != v1alpha1.ReasonInvalid || !strings.Contains(problem.Message, tc.want) {
				t.Errorf("Of() = %v, want %s and %q", err, v1alpha1.ReasonInvalid, tc.want)
			}
		})
	}
}

// A rule of one that works in the pod of another is wrong there as well.
func TestAPolicyOfAnotherAgentIsChecked(t *testing.T) {
	o := around()
	o.Agents["other"].Spec.Policy = []v1alpha1.PolicyRule{rule("a", `tool == "Write"`)}
	_, err := snapshot.Of(ruled(), o)
	if err == nil || !strings.Contains(err.Error(), `Agent "other" is not ready: spec.policy: rule 1 "a"`) {
		t.Errorf("Of() = %v", err)
	}
}

func TestCheckToolset(t *testing.T) {
	request := func(path string) func(*v1alpha1.ToolsetSpec) {
		return func(s *v1alpha1.ToolsetSpec) {
			s.Requests = &v1alpha1.Requests{BaseURL: "https://api.example", Tools: []v1alpha1.RequestTool{{Name: "get", Description: "Gets.", Method: "GET", Path: path}}}
		}
	}
	for name, tc := range map[string]struct {
		spec func(*v1alpha1.ToolsetSpec)
		want string
	}{
		"a server":                      {apart, ""},
		"a request":                     {request("/x"), ""},
		"a request of unknown argument": {request("/x/${{ input.nubmer }}"), "spec.requests.tools[0].path: column 14: there is no field nubmer"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := snapshot.CheckToolset(toolset("set", tc.spec)); p != nil {
				got = p.Message
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("CheckToolset() = %q, want %q", got, tc.want)
			}
		})
	}
}

// The names of a Toolset's tools are its own, whatever it offers.
func TestNoToolIsCalledLikeOneOfAToolset(t *testing.T) {
	agent := using("debian:1", ofToolset("hub"), v1alpha1.Tool{Custom: "x", Name: "Hub__create"})
	_, err := snapshot.Of(agent, withToolsets(toolset("hub", apart)))
	if err == nil || !strings.Contains(err.Error(), "custom x would be called Hub__create, and tools of the Toolset hub begin like that") {
		t.Errorf("Of() = %v", err)
	}
}

// What a literal of a condition is judged by depends on the tools that an Agent and
// the Agents below it have.
func TestLiteralsAreJudgedByTheToolsOfAnAgent(t *testing.T) {
	const relative = `".github/" is relative, and args.path of a file tool is always absolute; write "/workspace/.github/"`
	input := func(schema string) func(*v1alpha1.Agent) {
		return func(a *v1alpha1.Agent) { a.Name, a.Spec.Input = "other", &v1alpha1.Input{Schema: rawOf(schema)} }
	}
	request := func(schema string) func(*v1alpha1.ToolsetSpec) {
		return func(s *v1alpha1.ToolsetSpec) {
			one := v1alpha1.RequestTool{Name: "get", Description: "Gets.", Method: "GET", Path: "/x"}
			if schema != "" {
				one.Input = &v1alpha1.Input{Schema: rawOf(schema)}
			}
			s.Requests = &v1alpha1.Requests{BaseURL: "https://api.example", Tools: []v1alpha1.RequestTool{one}}
		}
	}
	builtin := func(all ...v1alpha1.BuiltinTool) (tools []v1alpha1.Tool) {
		for _, b := range all {
			tools = append(tools, v1alpha1.Tool{Builtin: b})
		}
		return tools
	}
	calls := v1alpha1.Tool{Agent: "other"}
	const path = `args.path.startsWith(".github/")`
	cases := map[string]struct {
		tools   []v1alpha1.Tool
		other   func(*v1alpha1.Agent)
		toolset func(*v1alpha1.ToolsetSpec)
		when    string
		want    string // empty: it is Ready
	}{
		"files alone":                                  {tools: builtin("Files"), when: path, want: relative},
		"every builtin":                                {tools: builtin("Files", "Think", "HTTPRequest", "WebSearch", "Browse", "Ask", "Task", "Recall", "Shell", "Python"), when: path, want: relative},
		"no files":                                     {tools: builtin("Shell"), when: path},
		"an agent that it calls has files":             {tools: append(builtin("Think"), calls), other: func(a *v1alpha1.Agent) { a.Spec.Tools = builtin("Files") }, when: path, want: relative},
		"an agent that is called with a prompt":        {tools: append(builtin("Files"), calls), when: path, want: relative},
		"an agent that is called with a number":        {tools: append(builtin("Files"), calls), other: input(`{"type":"object","properties":{"n":{"type":"integer"}}}`), when: path, want: relative},
		"an agent that is called with a path":          {tools: append(builtin("Files"), calls), other: input(`{"type":"object","properties":{"path":{"type":"string"}}}`), when: path},
		"a request without arguments":                  {tools: append(builtin("Files"), ofToolset("api")), toolset: request(""), when: path, want: relative},
		"a request with a path":                        {tools: append(builtin("Files"), ofToolset("api")), toolset: request(`{"type":"object","properties":{"path":{"type":"string"}}}`), when: path},
		"an MCP server":                                {tools: append(builtin("Files"), ofToolset("api")), toolset: apart, when: path},
		"an MCP server, and a rule for Write":          {tools: append(builtin("Files"), ofToolset("api")), toolset: apart, when: `tool == "Write" && ` + path, want: relative},
		"a tool of one's own":                          {tools: append(builtin("Files"), v1alpha1.Tool{Custom: "x"}), when: path},
		"a URL":                                        {tools: builtin("HTTPRequest"), when: `args.url.startsWith("https://Example.com:443/")`, want: `"https://Example.com:443/" never matches: args.url is canonical; write "https://example.com/"`},
		"a URL of a page":                              {tools: builtin("Browse"), when: `args.url == "https://example.com"`, want: `"https://example.com" never matches: args.url is canonical; write "https://example.com/"`},
		"a method":                                     {tools: builtin("HTTPRequest", "Browse"), when: `args.method == "post"`, want: `"post" never matches: args.method is in upper case; write "POST"`},
		"the same name for a tool of another's own":    {tools: append(builtin("Files"), calls), other: func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Custom: "x", Name: "Write"}} }, when: `tool == "Write" && ` + path},
		"a shell where another has a tool of its name": {tools: append(builtin("Files", "Shell"), calls), other: func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Custom: "shell"}} }, when: "shell.opaque()"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := around()
			o.Agents["other"].Spec.Tools = nil
			if tc.other != nil {
				tc.other(o.Agents["other"])
			}
			if tc.toolset != nil {
				o.Toolsets["api"] = toolset("api", tc.toolset)
			}
			agent := using("debian:1", tc.tools...)
			agent.Spec.Policy = []v1alpha1.PolicyRule{rule("r", tc.when)}
			_, err := snapshot.Of(agent, o)
			problem, refused := errors.AsType[*snapshot.NotReadyError](err)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("Of() = %v", err)
			case tc.want != "" && (!refused || problem.Reason != v1alpha1.ReasonInvalid || !strings.HasSuffix(problem.Message, tc.want)):
				t.Errorf("Of() = %v, want %s and %q", err, v1alpha1.ReasonInvalid, tc.want)
			}
		})
	}
}

// The first rule that matches decides, and the approvals of the tools come last.
func TestRulesThatNeverDecideAreWarnedOf(t *testing.T) {
	const has = `spec.policy: rule "all" decides about every call, so these never do: `
	const write = ". Give it a when, or move it to the end"
	for name, tc := range map[string]struct {
		rules    []v1alpha1.PolicyRule
		approval bool
		want     string
	}{
		"no rules":                        {nil, true, ""},
		"the last rule has no condition":  {[]v1alpha1.PolicyRule{rule("a", "tool == 'Read'"), rule("all", "")}, false, ""},
		"rules follow":                    {[]v1alpha1.PolicyRule{rule("all", ""), rule("a", "tool == 'Read'"), rule("b", "")}, false, has + `"a", "b"` + write},
		"approvals follow":                {[]v1alpha1.PolicyRule{rule("a", "tool == 'Read'"), rule("all", " true ")}, true, has + "the approvals of spec.tools" + write},
		"each rule has a condition":       {[]v1alpha1.PolicyRule{rule("a", "tool == 'Read'"), rule("b", "true || false")}, true, ""},
		"a rule and approvals follow one": {[]v1alpha1.PolicyRule{rule("all", "true"), rule("a", "tool == 'Read'")}, true, has + `"a", the approvals of spec.tools` + write},
	} {
		agent := gen.Agent(func(a *v1alpha1.Agent) {
			a.Spec.Policy, a.Spec.Tools = tc.rules, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}
			if tc.approval {
				a.Spec.Tools[0].Approval = &v1alpha1.Approval{}
			}
		})
		if got := strings.Join(snapshot.Warnings(agent, snapshot.Objects{}), "\n"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Whether a call can be what a rule asks for is known of tools whose arguments are known.
func TestRulesThatNoCallFulfillsAreWarnedOf(t *testing.T) {
	const undecided = ", so the condition cannot be decided for these calls"
	fields := &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "ticket"}}}
	anything := &v1alpha1.Input{Schema: &runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}}
	for name, tc := range map[string]struct {
		when  string
		tools []v1alpha1.Tool
		input *v1alpha1.Input // of the other Agent
		want  string
	}{
		"an argument of builtins":                     {`args.path == '/tmp/x'`, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}, nil, ""},
		"an argument that no builtin has":             {`args.pth == 'x'`, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}, nil, "column 5: no tool that it matches has the argument pth" + undecided + "; did you mean path?"},
		"an argument of a tool that is not allowed":   {`args.content == 'x'`, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles, Allow: []string{"Read"}}}, nil, "column 5: the tool Read does not have the argument content" + undecided + "; there are limit, offset, path"},
		"the tools of a server":                       {`args.pth == 'x'`, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}, ofToolset("hub")}, nil, ""},
		"requests without arguments":                  {`tool == 'api__get' && args.id == 'x'`, []v1alpha1.Tool{ofToolset("api")}, nil, "column 27: the tool api__get does not have the argument id" + undecided},
		"an agent that is given a prompt":             {`tool == 'other' && args.promt == 'x'`, []v1alpha1.Tool{{Agent: "other"}}, nil, "column 24: the tool other does not have the argument promt" + undecided + "; did you mean prompt?"},
		"an agent that is given fields":               {`tool == 'other' && args.prompt == 'x'`, []v1alpha1.Tool{{Agent: "other"}}, fields, "column 24: the tool other does not have the argument prompt" + undecided + "; there are ticket"},
		"an agent that is given what a schema allows": {`tool == 'other' && args.prompt == 'x'`, []v1alpha1.Tool{{Agent: "other"}}, anything, ""},
		"a tool of the other agent":                   {`args.query == 'x'`, []v1alpha1.Tool{{Agent: "other"}}, nil, ""},
		"a custom tool":                               {`args.query == 'x'`, []v1alpha1.Tool{{Custom: "Search"}, {Builtin: v1alpha1.BuiltinFiles}}, nil, ""},
		"two names at once":                           {`tool == 'Read' && tool == 'Write'`, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}, nil, "column 16: the condition is true for no tool of this Agent, so the rule never applies. For several tools write, for example, tool in ['Read', 'Write']"},
	} {
		t.Run(name, func(t *testing.T) {
			o := around()
			o.Agents["other"].Spec.Tools, o.Agents["other"].Spec.Input = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinWebSearch}}, tc.input
			agent := using("debian:1", tc.tools...)
			agent.Spec.Policy = []v1alpha1.PolicyRule{rule("r", tc.when)}
			want := ""
			if tc.want != "" {
				want = `spec.policy: rule 1 "r": when, ` + tc.want
			}
			if got := strings.Join(snapshot.Warnings(agent, o), "\n"); got != want {
				t.Errorf("Warnings() = %q, want %q", got, want)
			}
			agent.Spec.Policy = nil
			if agent.Spec.Tools[0].Approval = (&v1alpha1.Approval{When: tc.when}); tc.want == "" || len(tc.tools) > 1 {
				return
			}
			if got := strings.Join(snapshot.Warnings(agent, o), "\n"); !strings.HasPrefix(got, "spec.tools: approval of ") || !strings.HasSuffix(got, tc.want) {
				t.Errorf("Warnings() of an approval = %q, want %q", got, tc.want)
			}
		})
	}
}

// The runner bounds the patterns of rules and approvals together.
func TestRulesAndApprovalsAreBoundedTogether(t *testing.T) {
	large := func(times int) string {
		return strings.TrimSuffix(strings.Repeat(`args.command.matches('a{1000}b{1000}c{1000}') || `, times), " || ")
	}
	rules := func(approval int) *v1alpha1.Agent {
		a := ruled(rule("a", large(5)), rule("b", large(5)), rule("c", large(5)))
		a.Spec.Tools[1].Approval = &v1alpha1.Approval{When: large(approval)}
		return a
	}
	if _, err := snapshot.Of(rules(1), around()); err != nil {
		t.Errorf("16 patterns: %v", err)
	}
	if _, err := snapshot.Of(rules(3), around()); err == nil || !strings.Contains(err.Error(), "spec.policy with the approvals of spec.tools: ") {
		t.Errorf("18 patterns: %v", err)
	}
}
