package policy_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

var tools = policy.ToolKinds{"shell": policy.Shell, "Write": policy.Plain, "github_*": policy.Plain}

func TestCompileTells(t *testing.T) {
	const reads = "; a condition reads tool, args, agent.name, agent.depth, run.namespace, run.name, run.user, run.labels and shell; strings need quotes"
	const has = `a shell has shell.runs('git', 'push') and shell.opaque()`
	cases := map[string]string{ // the condition: what is said of it
		`tool = "Write"`:                   `column 6: token recognition error at: '= '; write ==`,
		`tool === "Write"`:                 `column 8: token recognition error at: '= '; write ==`,
		`tool == "Write" & true`:           `column 17: token recognition error at: '& '; write &&`,
		`tool == "Write" | true`:           `column 17: token recognition error at: '| '; write ||`,
		`tool == "Write" and true`:         `column 17: mismatched input 'and'; write &&`,
		`tool == "Write" or true`:          `column 17: mismatched input 'or'; write ||`,
		`not shell.opaque()`:               `column 5: mismatched input 'shell'; write !`,
		`tool == "Write" true`:             `column 17: extraneous input 'true'; conditions are joined by && and ||`,
		`args.path =~ "x"`:                 `column 11: token recognition error at: '=~'; write args.x.matches('…')`,
		`tool == `:                         `column 9: mismatched input the end; the expression is incomplete`,
		"tool == 'shell' &&\n  args.x == ": `line 2, column 13: mismatched input the end; the expression is incomplete`,
		`tool == "Write`:                   `column 9: token recognition error at: '"Write'; close the quotes`,
		`$tool == "Write"`:                 `column 1: token recognition error at: '$'; values have no mark here: write args.x`,
		`"ü" == tool && x`:                 `column 16: undeclared reference to 'x'` + reads,
		`tool == Write`:                    `column 9: undeclared reference to 'Write'` + reads,
		`agent.nme == "x"`:                 `column 1: undeclared reference to 'agent'; an agent has agent.name and agent.depth`,
		`run.uid == "x"`:                   `column 1: undeclared reference to 'run'; a run has run.namespace, run.name, run.user and run.labels`,
		`tool.name == "x"`:                 `column 5: type 'string' does not support field selection; only args and run.labels have fields; tool is the name itself, as in tool == 'Write'`,
		`tool`:                             `column 1: this is a value of type string, not a condition; compare it, as in tool == 'Write'`,
		`!tool`:                            `column 1: found no matching overload for '!_' applied to '(string)'; only a condition can be negated`,
		`tool && true`:                     `column 1: expected type 'bool' but found 'string'`,
		`tool == 1`:                        `column 6: found no matching overload for '_==_' applied to '(string, int)'; compare values of one type: strings need quotes`,
		`has(args)`:                        `column 5: invalid argument to has() macro; write has(args.x)`,
		`args.x.matches("(")`:              `column 16: invalid matches argument; the syntax is RE2, without look-around and back-references`,
		"optional.of(1)" + strings.Repeat(".optMap(a, a)", 30) + " == optional.of(1)": `column 100: the condition is too complex; make several rules of it`,
		`args.x.replace("a", "b") == ""`:                                              `column 15: undeclared reference to 'replace'; the functions are contains, startsWith, endsWith, matches, charAt, lowerAscii, split, substring, trim, upperAscii, size, exists, all, map and filter, ` + has,
		`shell.run("rm")`:                                                             `column 10: undeclared reference to 'run'; ` + has,
		`shell.opaque`:                                                                `column 6: type 'shell' does not support field selection; ` + has,
		`shell.opaque("x")`:                                                           `column 13: found no matching overload for 'opaque' applied to 'shell.(string)'; write shell.opaque()`,
		`shell.runs()`:                                                                `column 11: found no matching overload for 'runs' applied to 'shell.()'; write a program and at most seven words, each in quotes: shell.runs('git', 'push')`,
		`shell.runs(rm)`:                                                              `column 12: undeclared reference to 'rm'` + reads,
		`shell.runs("git push")`:                                                      `column 12: this is several words in one; write shell.runs('git', 'push')`,
		`shell.runs("git", "push now")`:                                               `column 19: this is several words in one; write shell.runs('push', 'now')`,
		`shell.runs("")`:                                                              `column 12: this names nothing; write a program, as in shell.runs('rm')`,
		`tool == "shel"`:                                                              `column 9: there is no tool "shel"; the agent has Write, github_*, shell`,
		`"shel" != tool`:                                                              `column 1: there is no tool "shel"; the agent has Write, github_*, shell`,
		`tool in ["Write", "Wrote"]`:                                                  `column 19: there is no tool "Wrote"; the agent has Write, github_*, shell`,
		strings.Repeat("(", 60) + "true":                                              `column 1: expression recursion limit exceeded: 50`,
		"true " + strings.Repeat(" ", 4<<10):                                          `a condition has at most 4096 bytes; make several rules of it`,
		`shell.runs("a","b","c","d","e","f","g","h","i")`:                             `column 11: found no matching overload for 'runs' applied to 'shell.(string, string, string, string, string, string, string, string, string)'; write a program and at most seven words, each in quotes: shell.runs('git', 'push')`,
		`args.a.exists(x, args.a.exists(y, args.a.exists(z, z == x)))`: `column 48: comprehension exceeds nesting limit; at most two of exists and all go into each other`,
	}
	for when, want := range cases {
		t.Run(when[:min(len(when), 50)], func(t *testing.T) {
			_, err := policy.Compile([]policy.Rule{{Name: "first", Answer: policy.Allow}, {Name: "r", When: when, Answer: policy.Deny}}, tools)
			e, ok := errors.AsType[*policy.Error](err)
			if !ok {
				t.Fatalf("Compile() = %v", err)
			}
			if strings.HasPrefix(want, "a condition has") {
				want = ": " + want
			} else {
				want = ", " + want
			}
			if diff := cmp.Diff(`rule 2 "r": when`+want, e.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if e.Rule != 1 || e.Name != "r" || e.Field != "when" {
				t.Errorf("the error is of rule %d %q, field %q", e.Rule, e.Name, e.Field)
			}
		})
	}
}

func TestCompileTellsOfRules(t *testing.T) {
	cases := map[string]struct {
		rule policy.Rule
		want string
	}{
		"no name":             {policy.Rule{Answer: policy.Deny}, `rule 2: name: a rule needs a name, which messages show when it decides`},
		"a name of two lines": {policy.Rule{Name: "a\nb", Answer: policy.Deny}, "rule 2 \"a\\nb\": name: a name has at most 100 characters, on one line"},
		"a name too long":     {policy.Rule{Name: strings.Repeat("x", 101), Answer: policy.Deny}, `rule 2 "` + strings.Repeat("x", 100) + `…": name: a name has at most 100 characters, on one line`},
		"the name of another": {policy.Rule{Name: "first", Answer: policy.Deny}, `rule 2 "first": name: another rule has this name; give each its own`},
		"no answer":           {policy.Rule{Name: "r"}, `rule 2 "r": answer: "" is no answer; write Allow, Deny or Ask`},
		"another answer":      {policy.Rule{Name: "r", Answer: "deny"}, `rule 2 "r": answer: "deny" is no answer; write Allow, Deny or Ask`},
		"a long reason":       {policy.Rule{Name: "r", Answer: policy.Ask, Reason: strings.Repeat("x", 1025)}, `rule 2 "r": reason: a reason has at most 1024 bytes`},
		"a tool not there":    {policy.Rule{Name: "r", Answer: policy.Ask, Tools: []string{"Write", "bash"}}, `rule 2 "r": tools: there is no tool "bash"; the agent has Write, github_*, shell`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Compile([]policy.Rule{{Name: "first", Answer: policy.Allow}, tc.rule}, tools)
			if err == nil {
				t.Fatal("Compile took it")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCompileTellsAll(t *testing.T) {
	_, err := policy.Compile([]policy.Rule{{Name: "a", When: "x", Answer: policy.Deny}, {Name: "b", Answer: "No"}}, nil)
	if got := strings.Count(err.Error(), "rule "); got != 2 {
		t.Errorf("Compile() = %v, want both errors", err)
	}
	_, err = policy.Compile(make([]policy.Rule, 129), nil)
	if want := "rule 129: name: a policy has at most 128 rules"; err == nil || err.Error() != want {
		t.Errorf("Compile() = %v, want %s", err, want)
	}
	_, err = policy.Compile([]policy.Rule{{Name: "a", When: `shell.runs("rm")`, Answer: policy.Ask}}, policy.ToolKinds{"Write": policy.Plain})
	if want := `rule 1 "a": when, column 11: shell is about the tool that runs command lines, and the agent has none; leave this out`; err == nil || err.Error() != want {
		t.Errorf("Compile() = %v, want %s", err, want)
	}
}

func TestToolsThatRulesMayName(t *testing.T) {
	for name, want := range map[string]bool{"Write": true, "Wr*": true, "*": true, "github_push": true, "github_*": true, "git*": true, "Edit": false, "Writer*": false, "githu": false} {
		_, err := policy.Compile([]policy.Rule{{Name: "r", Tools: []string{name}, Answer: policy.Ask}}, tools)
		if (err == nil) != want {
			t.Errorf("a rule for %s: %v", name, err)
		}
	}
}

func TestTheConditionsOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`when: "([^"]+)"`).FindAllSubmatch(page, -1)
	if len(found) < 4 {
		t.Errorf("docs/policy.md has %d conditions", len(found))
	}
	agent := policy.ToolKinds{"Write": policy.Files, "Edit": policy.Files, "Shell": policy.Shell}
	for _, when := range found {
		if _, err := policy.Compile([]policy.Rule{{Name: "r", When: string(when[1]), Answer: policy.Ask}}, agent); err != nil {
			t.Errorf("%s: %v", when[1], err)
		}
	}
}

func TestCompileTakes(t *testing.T) {
	cases := []string{
		``, ` `, `true`, `tool == "Write"`, `tool in ["Write", "shell"]`, `tool == "github_push"`, `tool.startsWith("github_")`, `has(args.path) && args.path.startsWith("/etc")`,
		`agent.depth > 0 && agent.name == "x"`, `run.namespace == "prod" || run.user == "oidc:ann" || run.name == "x"`, `"team" in run.labels && run.labels.team == "x"`,
		`shell.runs("rm") || shell.runs("git", "push") || shell.opaque()`, `args.paths.exists(p, p.endsWith(".env"))`, `args.to.all(a, a.endsWith("@acme.com"))`,
		`args.?path.orValue('').startsWith('/etc')`, `args.?path.orValue('none') != 'none'`, `args.?list.hasValue() && args.list.map(x, string(x)).exists(x, x == 'a')`,
		`run.labels[?'team'].orValue('') == 'x'`, `args.to.filter(a, a.endsWith('@acme.com')).size() > 3`, `args.?depth.optMap(d, d > 3).orValue(false)`,
		`args.command.matches("^ls( |$)")`, `args.amount > 100`, `size(args.list) > 3`, `args.url.lowerAscii().contains("acme")`, `shell.runs(args.program)`, `!shell.opaque()`,
		"// a comment\ntrue", "tool == 'shell' &&\n  shell.runs('rm')",
	}
	for _, when := range cases {
		if _, err := policy.Compile([]policy.Rule{{Name: "r", When: when, Answer: policy.Ask}}, tools); err != nil {
			t.Errorf("%q: %v", when, err)
		}
	}
}
