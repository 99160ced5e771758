package policy_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

func compiled(t testing.TB, rules ...policy.Rule) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(rules, nil)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return p
}

// call is a call of the shell by an agent that another one called.
func call(line string) policy.Call {
	args, _ := json.Marshal(map[string]any{"command": line, "timeout": 5, "large": uint64(1) << 63, "share": 0.5, "on": true, "many": []int{1, 2, 3}, "more": make([]int, 2000), "list": []string{"a", "b"}})
	return policy.Call{
		Tool: "shell", Args: args, Shell: line,
		Agent: policy.Agent{Name: "reviewer", Depth: 1},
		Run:   policy.Run{Namespace: "dev", Name: "fix", User: "oidc:ann", Labels: map[string]string{"team": "x"}},
	}
}

func TestConditions(t *testing.T) {
	cases := map[string]bool{
		`tool == "shell"`: true, `tool == "Write"`: false, `tool in ["shell", "Write"]`: true,
		`args.command == "git push -f"`: true, `args.timeout == 5`: true, `args.timeout > 4.5`: true, `args.large > 9223372036854775807`: true, `args.share < 1`: true, `args.on`: true,
		`args.list.exists(x, x == "b")`: true, `args.list.all(x, x == "b")`: false, `size(args.list) == 2`: true, `has(args.command)`: true, `has(args.other)`: false,
		`"other" in args`: false, `has(args.other) && args.other == 1`: false, `args["command"].startsWith("git")`: true, `args.command.matches("^git +push")`: true,
		`args.command.lowerAscii().contains("PUSH")`: false, `"GIT Ä".lowerAscii() == "git Ä"`: true,
		`" a/b ".trim().split("/")[1] == "b"`: true, `"a/b/c".split("/", 2).size() == 2`: true, `"Ä-1".substring(2) == "1" && "Ä-1".substring(0, 1) == "Ä"`: true, `"ab".charAt(1).upperAscii() == "B"`: true,
		`args.?other.orValue('none') == 'none'`: true, `args.?command.orValue('').startsWith('git')`: true, `args.?other.hasValue()`: false, `args.?timeout.optMap(t, t > 4).orValue(false)`: true,
		`run.labels[?'team'].orValue('') == 'x'`: true, `args.list.map(x, x + '!').exists(x, x == 'b!')`: true, `args.list.filter(x, x == 'b').size() == 2`: false,
		`agent.name == "reviewer" && agent.depth == 1`: true, `agent.depth == 0`: false,
		`run.namespace == "dev" && run.name == "fix" && run.user == "oidc:ann"`: true, `run.labels.team == "x"`: true, `"a" in run.labels`: false,
		`shell.runs("git")`: true, `shell.runs("git", "push")`: true, `shell.runs("git", "push", "-f")`: true, `shell.runs("git", "pull")`: false, `shell.runs("rm")`: false,
		`shell.runs("git") && !shell.runs("git", "pull")`: true, `shell.opaque()`: false, `shell == shell`: true,
		`size(args.many) == 3`:               true, // beside it, a list that is too long to be looked into
		`tool == "shell" || args.other == 1`: true, // what is true need not be asked further
		`args.other == 1 || tool == "shell"`: true,
	}
	for when, want := range cases {
		t.Run(when, func(t *testing.T) {
			p := compiled(t, policy.Rule{Name: "r", When: when, Answer: policy.Deny})
			got := p.Decide(t.Context(), call("git push -f"))
			if got.Failed || (got.Answer == policy.Deny) != want {
				t.Errorf("Decide() = %+v", got)
			}
		})
	}
}

func TestTheFirstRuleDecides(t *testing.T) {
	p := compiled(t,
		policy.Rule{Name: "look", When: `shell.runs("git", "log")`, Answer: policy.Allow},
		policy.Rule{Name: "no force", When: `shell.runs("git", "push", "-f")`, Answer: policy.Deny, Reason: "Push without force."},
		policy.Rule{Name: "git", When: `shell.runs("git")`, Answer: policy.Ask, Reason: "Is this branch right?"},
		policy.Rule{Name: "hidden", Tools: []string{"shell"}, When: `shell.opaque()`, Answer: policy.Ask},
		policy.Rule{Name: "writes", Tools: []string{"Edit", "Write", "hub__*"}, Answer: policy.Deny},
	)
	cases := map[string]struct {
		call policy.Call
		want policy.Result
	}{
		"allowed by a rule": {call("git log"), policy.Result{Answer: policy.Allow, Rule: "look"}},
		"denied":            {call("ls && git push -f"), policy.Result{Answer: policy.Deny, Rule: "no force", Reason: "Push without force."}},
		"asked":             {call("git push"), policy.Result{Answer: policy.Ask, Rule: "git", Reason: "Is this branch right?"}},
		"asked, with what is hidden": {call("./x.sh"), policy.Result{
			Answer: policy.Ask, Rule: "hidden", Reason: `The policy has a rule for this, "hidden".`, Hidden: []string{"runs the file ./x.sh"},
		}},
		"no rule":                       {call("ls"), policy.Result{Answer: policy.Allow}},
		"a rule without a condition":    {policy.Call{Tool: "Write"}, policy.Result{Answer: policy.Deny, Rule: "writes", Reason: `The policy has a rule for this, "writes".`}},
		"a rule for tools of a name":    {policy.Call{Tool: "hub__push"}, policy.Result{Answer: policy.Deny, Rule: "writes", Reason: `The policy has a rule for this, "writes".`}},
		"a tool of another name":        {policy.Call{Tool: "hub"}, policy.Result{Answer: policy.Allow}},
		"a tool that is no shell":       {policy.Call{Tool: "Read", Args: json.RawMessage(`{"command":"./x.sh"}`)}, policy.Result{Answer: policy.Allow}},
		"a line for a plain sh":         {policy.Call{Tool: "shell", Shell: `echo $'\'; git push; #'`, Dialect: "sh"}, policy.Result{Answer: policy.Ask, Rule: "git", Reason: "Is this branch right?"}},
		"the same line, as bash has it": {policy.Call{Tool: "shell", Shell: `echo $'\'; git push; #'`}, policy.Result{Answer: policy.Allow}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, p.Decide(t.Context(), tc.call)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A rule is about the tools that it names, not about tools whose names begin or end like
// these: a rule that allows Read must not allow ReadSecrets.
func TestANameOfAToolIsWhole(t *testing.T) {
	p := compiled(t,
		policy.Rule{Name: "reads", Tools: []string{"Read", "hub__*", "a*b"}, Answer: policy.Allow},
		policy.Rule{Name: "rest", Answer: policy.Deny, Reason: "No."},
	)
	for tool, want := range map[string]policy.Answer{
		"Read": policy.Allow, "ReadSecrets": policy.Deny, "Read2": policy.Deny, "Rea": policy.Deny, "ThreadRead": policy.Deny, "read": policy.Deny, "": policy.Deny,
		"hub__push": policy.Allow, "hub__": policy.Allow, "hub_push": policy.Deny, "my_hub__push": policy.Deny,
		"a*b": policy.Allow, "axb": policy.Deny,
	} {
		if got := p.Decide(t.Context(), policy.Call{Tool: tool}); got.Answer != want {
			t.Errorf("the call of %q gets %s, want %s", tool, got.Answer, want)
		}
	}
}

func TestNoRules(t *testing.T) {
	var none *policy.Policy
	for _, p := range []*policy.Policy{none, compiled(t)} {
		if got := p.Decide(t.Context(), call("rm -rf /")); got.Answer != policy.Allow {
			t.Errorf("Decide() = %+v", got)
		}
	}
}

// A rule that cannot be decided never lets a call pass, whatever its answer is.
func TestARuleThatFailsAsks(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	cases := map[string]struct{ when, args, want string }{
		"an argument that is not there":     {`args.path == "x"`, `{}`, `no such key: path; where an argument may be left out, write has(args.x) && … in the rule`},
		"an argument of another type":       {`args.path.startsWith("x")`, `{"path":1}`, `no such overload; an argument is of another type than the rule expects`},
		"a value that is no condition":      {`args.path`, `{"path":1}`, `its condition is a value of type int, neither true nor false`},
		"an argument twice":                 {`args.path == "x"`, `{"path":"y","path":"x"}`, `the arguments have "path" twice in one object; send it once`},
		"an argument twice, elsewhere":      {`args.path == "x"`, `{"path":"y","z":{"a":1,"a":2}}`, `the arguments have "a" twice in one object; send it once`},
		"arguments that are no object":      {`args.path == "x"`, `["path"]`, `the arguments are no object`},
		"arguments that are no JSON":        {`args.path == "x"`, `{"path":`, `the arguments are not JSON`},
		"arguments that are null":           {`args.path == "x"`, `null`, `the arguments are no object`},
		"a number that is too large":        {`args.n == 1`, `{"n":1e999}`, `the arguments have a number that is too large: 1e999`},
		"a list that is too long":           {`args.a.exists(x, x == 2)`, `{"a":[` + strings.Repeat("1,", 1000) + `1]}`, `the arguments have a list with more than 1000 items`},
		"a list in a list that is too long": {`args.a[0].exists(x, x == 2)`, `{"a":[[` + strings.Repeat("1,", 1000) + `1]]}`, `the arguments have a list with more than 1000 items`},
		"a search that costs too much":      {`args.a.exists(x, 3 in args.a)`, `{"a":[` + strings.Repeat("1,", 900) + `1]}`, `its condition costs too much to decide for this call`},
		"a pattern that is no pattern":      {`"x".matches(args.p)`, `{"p":"("}`, "error parsing regexp: missing closing ): `(`"},
		"a pattern that is too large":       {`"x".matches(args.p)`, `{"p":"` + strings.Repeat(".{1000}", 50) + `"}`, "the pattern compiles to about 50050 instructions; at most 10000 are allowed"},
		"the same in a function":            {`args.p.exists(p, matches("x", p))`, `{"p":["` + strings.Repeat("(ab){900}", 50) + `"]}`, "the pattern compiles to about 135050 instructions; at most 10000 are allowed"},
		"a condition that costs too much":   {`args.a.exists(x, args.a.exists(y, x == y && false))`, `{"a":[` + strings.Repeat("1,", 500) + `1]}`, `its condition costs too much to decide for this call`},
		"a text that costs too much":        {`args.s.contains(args.t)`, `{"s":"` + strings.Repeat("x", 1<<20) + `","t":"` + strings.Repeat("y", 1<<10) + `"}`, `its condition costs too much to decide for this call`},
		"a split that costs too much":       {`args.s.split("").size() == 1`, `{"s":"` + strings.Repeat("x", 1<<20) + `"}`, `its condition costs too much to decide for this call`},
		"an index behind the end":           {`args.s.substring(2) == ""`, `{"s":"x"}`, `index out of range: 2`},
		"a shell that is taken for a thing": {`type(shell) == string`, `{}`, `shell is no type; use shell.runs or shell.opaque`},
	}
	for name, tc := range cases {
		for _, answer := range []policy.Answer{policy.Allow, policy.Deny, policy.Ask} {
			t.Run(name+", "+string(answer), func(t *testing.T) {
				p := compiled(t, policy.Rule{Name: "r", When: tc.when, Answer: answer}, policy.Rule{Name: "rest", Answer: policy.Allow})
				want := policy.Result{Answer: policy.Ask, Rule: "r", Failed: true, Reason: `The rule "r" of the policy could not be decided: ` + tc.want + "."}
				if diff := cmp.Diff(want, p.Decide(t.Context(), policy.Call{Tool: "x", Args: json.RawMessage(tc.args)})); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestACancelledDecisionAsks(t *testing.T) {
	p := compiled(t, policy.Rule{Name: "r", When: `args.a.exists(x, args.a.exists(y, x != x))`, Answer: policy.Allow})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := p.Decide(ctx, policy.Call{Tool: "x", Args: json.RawMessage(`{"a":[` + strings.Repeat("1,", 300) + `1]}`)})
	if got.Answer != policy.Ask || !got.Failed {
		t.Errorf("Decide() = %+v", got)
	}
}

func TestApproval(t *testing.T) {
	p := compiled(t, policy.Approval("shell", `shell.runs("rm") || shell.opaque()`), policy.Approval("send", ""), policy.Approval("hub__*", `has(args.all)`))
	for _, tc := range []struct {
		call policy.Call
		want policy.Answer
	}{
		{call("rm x"), policy.Ask},
		{call("$x"), policy.Ask},
		{call("ls"), policy.Allow},
		{policy.Call{Tool: "Write"}, policy.Allow},
		{policy.Call{Tool: "send"}, policy.Ask},
		{policy.Call{Tool: "hub__x", Args: json.RawMessage(`{"all":1}`)}, policy.Ask},
		{policy.Call{Tool: "hub__x"}, policy.Allow},
	} {
		if got := p.Decide(t.Context(), tc.call); got.Answer != tc.want {
			t.Errorf("Decide(%s %q) = %+v", tc.call.Tool, tc.call.Shell, got)
		}
	}
	_, err := policy.Compile([]policy.Rule{policy.Approval("shell", `true) || (false`)}, nil)
	if want := `rule 1 "approval of shell": when, column 5: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Compile() = %v, want %s…: a condition stands for itself", err, want)
	}
}

// Calls of one turn are decided side by side.
func TestManyAtATime(t *testing.T) {
	p := compiled(t, policy.Rule{Name: "r", When: `shell.runs("rm") && args.command.contains("rm")`, Answer: policy.Deny})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if p.Decide(t.Context(), call("rm x")).Answer != policy.Deny || p.Decide(t.Context(), call("ls")).Answer != policy.Allow {
					t.Error("a call was decided like another")
				}
			}
		})
	}
	all.Wait()
}
