package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

// A line end in a path or a command leads past no rule that denies or asks, and lets no rule allow
// what follows it.
func TestALineEndIsNoWayPastARule(t *testing.T) {
	const env, ls = `{"path":"/workspace/a\nb/.env"}`, `{"command":"ls x\nrm -rf /"}`
	const onlyLs = `args.command.matches('^ls .*$')`
	for name, tc := range map[string]struct {
		answer     policy.Answer
		when, args string
		decides    bool
	}{
		"a match denies":                        {policy.Deny, `args.path.matches('^/workspace/.*[.]env$')`, env, true},
		"a match asks":                          {policy.Ask, `args.path.matches("^/workspace/.*[.]env$")`, env, true},
		"a function denies":                     {policy.Deny, `matches(args.path, '^/workspace/.*[.]env$')`, env, true},
		"a match with true denies":              {policy.Deny, `args.path.matches('^/workspace/.*[.]env$') == true`, env, true},
		"no match denies":                       {policy.Deny, `!` + onlyLs, ls, true},
		"a match that is false denies":          {policy.Deny, onlyLs + ` == false`, ls, true},
		"a match that is not true denies":       {policy.Deny, onlyLs + ` != true`, ls, true},
		"a match that is in [false] denies":     {policy.Deny, onlyLs + ` in [false]`, ls, true},
		"a choice denies":                       {policy.Deny, `(` + onlyLs + ` ? false : true)`, ls, true},
		"a choice of texts denies":              {policy.Deny, `(` + onlyLs + ` ? 'ls' : 'other') == 'other'`, ls, true},
		"a filter without items denies":         {policy.Deny, `[args.command].filter(c, c.matches('^ls .*$')).size() == 0`, ls, true},
		"a list without true denies":            {policy.Deny, `!(true in [args.command].map(c, c.matches('^ls .*$')))`, ls, true},
		"none that exists denies":               {policy.Deny, `![args.command].exists(c, c.matches('^ls .*$'))`, ls, true},
		"an optional asks":                      {policy.Ask, `args.?command.optMap(c, c.matches('^ls .*$')).orValue(true) == false`, ls, true},
		"an expression that is computed asks":   {policy.Ask, `args.command.matches('^ls ' + '.*$') == false`, ls, true},
		"a computed match denies":               {policy.Deny, `args.path.matches('^/workspace/' + '.*[.]env$')`, env, true},
		"a match allows":                        {policy.Allow, onlyLs, ls, false},
		"a match that is true allows":           {policy.Allow, onlyLs + ` == true`, ls, false},
		"a match that is not false allows":      {policy.Allow, onlyLs + ` != false`, ls, false},
		"no match allows":                       {policy.Allow, `!args.path.matches('^/workspace/.*[.]env$')`, env, false},
		"a match that is false allows":          {policy.Allow, `args.path.matches('^/workspace/.*[.]env$') == false`, env, false},
		"a match allows a command of one line":  {policy.Allow, onlyLs, `{"command":"ls x"}`, true},
		"an expression that takes line ends":    {policy.Allow, `args.command.matches('(?s)^ls .*$')`, ls, true},
		"an expression that says it takes none": {policy.Deny, `args.path.matches('(?-s)^/workspace/.*[.]env$')`, env, false},
		"line ends that decide nothing":         {policy.Allow, `args.command.matches('^ls') == true`, ls, true},
		"one match of two in each reading": {
			policy.Deny, `args.path.matches('^/workspace/.*[.]env$') && ` + onlyLs + ` == false`, `{"path":"/workspace/a\nb/.env","command":"ls x\nrm"}`, true,
		},
	} {
		p := compiled(t, policy.Rule{Name: "r", When: tc.when, Answer: tc.answer})
		if got := p.Decide(t.Context(), policy.Call{Tool: "Read", Args: []byte(tc.args)}); got.Failed || (got.Rule == "r") != tc.decides {
			t.Errorf("%s: %+v, want a decision: %t", name, got, tc.decides)
		}
	}
}

// Where line ends decide whether a rule applies, the stricter of both answers counts.
func TestOfTwoReadingsTheStricterCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	const either, fails = `args.command.matches('^ls .*$')`, `args.other == 1`
	allow, ask, deny := policy.Allow, policy.Ask, policy.Deny
	rule := func(name string, answer policy.Answer, when string) policy.Rule {
		return policy.Rule{Name: name, Answer: answer, When: when, Reason: "No."}
	}
	rest := func(answer policy.Answer) policy.Rule { return rule("rest", answer, "") }
	for name, tc := range map[string]struct {
		rules  []policy.Rule
		answer policy.Answer
		by     string
		failed bool
	}{
		"a rule asks, and the next denies":                   {[]policy.Rule{rule("a", ask, either), rest(deny)}, deny, "rest", false},
		"a rule asks, and the next allows":                   {[]policy.Rule{rule("a", ask, either), rest(allow)}, ask, "a", false},
		"two rules ask":                                      {[]policy.Rule{rule("a", ask, either), rest(ask)}, ask, "a", false},
		"a rule asks, and the next denies perhaps":           {[]policy.Rule{rule("a", ask, either), rule("b", deny, "!"+either), rest(allow)}, deny, "b", false},
		"a rule allows, and the next denies":                 {[]policy.Rule{rule("a", allow, either), rest(deny)}, deny, "rest", false},
		"a rule allows, and no other is there":               {[]policy.Rule{rule("a", allow, either)}, allow, "", false},
		"a rule that allows fails in one reading":            {[]policy.Rule{rule("a", allow, either+" && "+fails), rest(allow)}, ask, "a", true},
		"the same, and the next denies":                      {[]policy.Rule{rule("a", allow, either+" && "+fails), rest(deny)}, deny, "rest", false},
		"a rule that fails in both readings":                 {[]policy.Rule{rule("a", deny, fails+" == "+either), rest(deny)}, ask, "a", true},
		"a rule that denies":                                 {[]policy.Rule{rule("a", deny, either), rest(ask)}, deny, "a", false},
		"a search that costs too much only in both readings": {[]policy.Rule{rule("a", deny, `args.many.exists(x, args.many.exists(y, `+either+`))`), rest(allow)}, deny, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			many := strings.TrimSuffix(strings.Repeat("1,", 500), ",")
			got := compiled(t, tc.rules...).Decide(t.Context(), policy.Call{Tool: "x", Args: []byte(`{"command":"ls a\nid","many":[` + many + `]}`)})
			if got.Answer != tc.answer || got.Rule != tc.by || got.Failed != tc.failed {
				t.Errorf("Decide() = %+v", got)
			}
		})
	}
}

// A conditionMaker makes random conditions over matches. Their expressions begin with a mark, one for
// each match.
type conditionMaker struct {
	*rand.Rand
	matches int
	nested  int // comprehensions around
}

// read is a condition where the dots of some matches take line ends: of those with a bit in mask.
func (c *conditionMaker) read(when string, mask int) string {
	for i := range c.matches {
		flag := ""
		if mask>>i&1 == 1 {
			flag = "(?s)"
		}
		when = strings.Replace(when, fmt.Sprintf("<%d>", i), flag, 1)
	}
	return when
}

func (c *conditionMaker) pick(all ...string) string { return all[c.IntN(len(all))] }

// word is a text of a few letters and line ends.
func (c *conditionMaker) word() string {
	letters := make([]byte, 1+c.IntN(5))
	for i := range letters {
		letters[i] = "ab\n"[c.IntN(3)]
	}
	return string(letters)
}

func (c *conditionMaker) match(of string) string {
	c.matches++
	pattern := fmt.Sprintf("<%d>%s", c.matches-1, c.pick("^a.*b$", "a.b", "^[^b]*.$", "^.$", "b..a", "(a.)+$", "^.*a$|b.b"))
	return of + c.pick(`.matches('`+pattern+`')`, `.matches('`+pattern+`' + '')`)
}

// condition is one of at most so many levels, and with four matches at most.
func (c *conditionMaker) condition(depth int) string {
	if c.matches >= 4 {
		return c.pick("true", "false", "args.s == 'a'", "args.none == 1")
	}
	if depth == 0 {
		return c.match(c.pick("args.s", "args.t", "args['s']"))
	}
	next := func() string { return "(" + c.condition(depth-1) + ")" }
	kind := c.IntN(14)
	if kind >= 10 {
		if c.nested++; c.nested > 2 {
			kind = 0
		}
		defer func() { c.nested-- }()
	}
	switch kind {
	case 0:
		return next() + " && " + next()
	case 1:
		return next() + " || " + next()
	case 2:
		return "!" + next()
	case 3:
		return next() + c.pick(" == ", " != ") + c.pick("true", "false", next())
	case 4:
		return next() + " ? " + next() + " : " + next()
	case 5:
		return next() + " in [" + c.pick("true", "false", next()) + "]"
	case 6:
		return "string(" + next() + ") == " + c.pick("'true'", "'false'")
	case 7:
		return "{'a': " + next() + "}.a"
	case 8:
		return "[" + next() + ", " + next() + "][" + next() + " ? 0 : 1]"
	case 10:
		return "args.l" + c.pick(".exists(", ".all(", ".exists_one(") + "x, " + c.match("x") + c.pick(" == ", " && ", " || ") + next() + ")"
	case 11:
		return "args.l.filter(x, " + c.match("x") + ").size() " + c.pick("== ", "> ", "!= ") + c.pick("0", "1", "2")
	case 12:
		return c.pick("true", "false") + " in args.l.map(x, " + c.match("x") + " && " + next() + ")"
	case 13:
		return "args.?s.optMap(x, " + c.match("x") + ").orValue(" + next() + ")"
	default:
		return c.condition(depth - 1)
	}
}

// evaluate is what CEL says of a condition; failed: it says nothing.
func evaluate(t *testing.T, env *cel.Env, when string, args map[string]any) (holds, failed bool) {
	t.Helper()
	ast, issues := env.Compile(when)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", when, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	out, _, err := program.Eval(map[string]any{"args": args})
	if err != nil {
		return false, true
	}
	return out.Value() == true, false
}

// A trial is a rule with an answer before one that always applies.
type trial struct{ rule, rest policy.Answer }

// decide returns the answer to a call.
func (tr trial) decide(t *testing.T, when string, args []byte) policy.Answer {
	t.Helper()
	p := compiled(t, policy.Rule{Name: "r", When: when, Answer: tr.rule}, policy.Rule{Name: "rest", Answer: tr.rest})
	return p.Decide(t.Context(), policy.Call{Tool: "x", Args: args}).Answer
}

// want is the answer where the condition has a value.
func (tr trial) want(holds, failed bool) policy.Answer {
	switch {
	case failed:
		return policy.Ask
	case holds:
		return tr.rule
	}
	return tr.rest
}

// Whatever the condition and the text, a rule is no weaker than in any reading of its matches: not in
// that of RE2, not where all dots take line ends, and not where some do.
func TestNoReadingIsStricter(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	c := &conditionMaker{Rand: rand.New(rand.NewPCG(1, 2))}
	for range 100 {
		c.matches = 0
		when := c.condition(3)
		args := map[string]any{"s": c.word(), "t": c.word(), "l": []any{c.word(), c.word()}}
		for _, tr := range []trial{
			{policy.Deny, policy.Allow}, {policy.Ask, policy.Allow}, {policy.Ask, policy.Deny}, {policy.Allow, policy.Deny}, {policy.Allow, policy.Allow},
		} {
			c.checkReadings(t, env, tr, when, args)
		}
	}
}

// checkReadings compares the decision with that in each reading.
func (c *conditionMaker) checkReadings(t *testing.T, env *cel.Env, tr trial, when string, args map[string]any) {
	t.Helper()
	written, _ := json.Marshal(args)
	got := tr.decide(t, c.read(when, 0), written)
	strictness := []policy.Answer{policy.Allow, policy.Ask, policy.Deny}
	all := 1<<c.matches - 1
	for mask := range all + 1 {
		reading := c.read(when, mask)
		holds, failed := evaluate(t, env, reading, args)
		if mask != 0 && mask != all && failed && tr.rule == policy.Allow {
			continue // the promise is about the readings of the whole condition
		}
		if want := tr.want(holds, failed); slices.Index(strictness, got) < slices.Index(strictness, want) {
			t.Fatalf("%+v: %s leads to %s for %s; read as %s it leads to %s", tr, c.read(when, 0), got, written, reading, want)
		}
	}
}
