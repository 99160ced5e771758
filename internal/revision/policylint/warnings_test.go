package policylint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/revision/policylint"
	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

func TestWarnings(t *testing.T) {
	tools := policy.ToolKinds{"Read": policy.Files, "Write": policy.Files, "shell": policy.Shell, "ask": policy.Other}
	withServer := policy.ToolKinds{"Read": policy.Files, "shell": policy.Shell, "hub__*": policy.Plain}
	arguments := policylint.Arguments{"Read": {"path", "limit"}, "Write": {"path", "content"}, "shell": {"command"}, "ask": {"question"}}
	const undecided = ", so the condition cannot be decided for these calls"
	const unapplied = ", so the rule never applies"
	const pth, path = "no tool that it matches has the argument pth", "; did you mean path?"
	const none = "the condition is true for no tool of this Agent" + unapplied + ". For several tools write, for example, tool in ['Read', 'Write']"
	for name, tc := range map[string]struct {
		tools policy.ToolKinds
		rule  policy.Rule
		want  string
	}{
		"an argument that some tools have":        {tools, policy.Rule{When: `args.path == 'x'`}, ""},
		"an argument that no tool has":            {tools, policy.Rule{When: `args.pth == 'x'`}, "column 5: " + pth + undecided + path},
		"the same, as an index":                   {tools, policy.Rule{When: `args['pth'] == 'x'`}, "column 5: " + pth + undecided + path},
		"the same, deep in it":                    {tools, policy.Rule{When: `[args.pth].exists(p, p.startsWith('/x'))`}, "column 6: " + pth + undecided + path},
		"an argument that is called otherwise":    {tools, policy.Rule{When: `tool == 'Write' && args.file_path == 'x'`}, "column 24: the tool Write does not have the argument file_path" + undecided + "; there are content, path"},
		"an argument of another tool":             {tools, policy.Rule{When: `args.path == '/x' && tool == 'shell'`}, "column 5: the tool shell does not have the argument path" + undecided + "; there are command"},
		"an argument of the tools of a rule":      {tools, policy.Rule{Tools: []string{"shell"}, When: `args.path == '/x'`}, "column 5: the tool shell does not have the argument path" + undecided + "; there are command"},
		"each tool has its own":                   {tools, policy.Rule{When: `tool == 'shell' ? args.command == 'x' : (tool == 'ask' || args.path == '/x')`}, ""},
		"an alternative for a tool":               {tools, policy.Rule{When: `tool == 'Read' && args.path == 'x' || tool == 'shell' && args.comand == 'x'`}, "column 62: the tool shell does not have the argument comand" + undecided + "; did you mean command?"},
		"a tool whose arguments are not known":    {withServer, policy.Rule{When: `args.pth == 'x'`}, ""},
		"the tool of a server":                    {withServer, policy.Rule{When: `tool == 'hub__get' && args.pth == 'x'`}, ""},
		"the rest has no such argument":           {withServer, policy.Rule{When: `!tool.startsWith('hub__') && args.pth == 'x'`}, "column 34: " + pth + undecided + path},
		"the tools of a rule with an asterisk":    {withServer, policy.Rule{Tools: []string{"hub__*"}, When: `args.pth == 'x'`}, ""},
		"has of an argument that no tool has":     {tools, policy.Rule{When: `has(args.pth) && args.pth == 'x'`}, "column 4: " + pth + unapplied + path},
		"in args":                                 {tools, policy.Rule{When: `'pth' in args`}, "column 7: " + pth + unapplied + path},
		"a value that is never there":             {tools, policy.Rule{When: `args.?pth.hasValue()`}, "column 19: " + pth + unapplied + path},
		"a default that does not match":           {tools, policy.Rule{When: `args.?pth.orValue('').startsWith('/etc')`}, "column 18: " + pth + unapplied + path},
		"the same in lower case":                  {tools, policy.Rule{When: `args.?pth.orValue('X').lowerAscii() in ['y', 'z']`}, "column 18: " + pth + unapplied + path},
		"a default that matches":                  {tools, policy.Rule{When: `args.?pth.orValue('').matches('^$')`}, ""},
		"a default that is not equal":             {tools, policy.Rule{When: `args.?pth.orValue('') != 'x'`}, ""},
		"another argument is there":               {tools, policy.Rule{When: `has(args.path) && args.path == 'x' || has(args.pth) && args.pth == 'x'`}, ""},
		"an argument that must be absent":         {tools, policy.Rule{When: `!has(args.pth)`}, ""},
		"two names at once":                       {tools, policy.Rule{When: `tool == 'Write' && tool == 'Read'`}, "column 17: " + none},
		"the same with a list":                    {tools, policy.Rule{When: `tool == 'Write' && (agent.depth == 0 && tool in ['Read', 'shell'])`}, "column 17: " + none},
		"the same, and something else":            {tools, policy.Rule{When: `shell.opaque() && (tool == 'Write' && !(tool != 'Read'))`}, "column 16: " + none},
		"two names of a server":                   {withServer, policy.Rule{When: `tool == 'hub__get' && tool == 'hub__put'`}, "column 20: " + none},
		"a name and its begin":                    {withServer, policy.Rule{When: `tool == 'hub__get' && tool.startsWith('hub__g') && !tool.startsWith('hub__p')`}, ""},
		"a name without its begin":                {withServer, policy.Rule{When: `tool == 'shell' && tool.startsWith('hub__')`}, "column 17: " + none},
		"a begin that some tools may have":        {withServer, policy.Rule{When: `tool.startsWith('hub__admin_')`}, ""},
		"a name that the rule is not about":       {tools, policy.Rule{Tools: []string{"Read"}, When: `tool == 'Write'`}, "column 6: " + none},
		"either name":                             {tools, policy.Rule{When: `tool == 'Write' || tool == 'Read'`}, ""},
		"a name that is compared with a value":    {tools, policy.Rule{When: `tool == run.user && tool == 'Read'`}, ""},
		"a rule that is switched off":             {tools, policy.Rule{When: `false`}, ""},
		"a rule without a condition":              {tools, policy.Rule{}, ""},
		"a condition that Compile refuses":        {tools, policy.Rule{When: `args.pth = 'x'`}, ""},
		"a tool that Compile refuses":             {tools, policy.Rule{When: `tool == 'Wrote'`}, ""},
		"tools that are not known":                {nil, policy.Rule{When: `args.pth == 'x' && tool == 'a' && tool == 'b'`}, ""},
		"an argument in a comparison with itself": {tools, policy.Rule{When: "agent.depth > 0 &&\n  args.pth == args.path"}, "line 2, column 7: " + pth + undecided + path},
	} {
		t.Run(name, func(t *testing.T) {
			tc.rule.Name, tc.rule.Answer = "r", policy.Ask
			want := []string(nil)
			if tc.want != "" {
				want = []string{`rule 2 "r": when, ` + tc.want}
			}
			var got []string
			for _, w := range policylint.Warnings([]policy.Rule{{Name: "first", Answer: policy.Deny}, tc.rule}, tc.tools, arguments) {
				got = append(got, w.Error())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
