package turnroute_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/turnroute"
)

func TestHolds(t *testing.T) {
	full := turnroute.Left{Steps: 1, Tokens: 1, Cost: 1}
	cases := map[string]struct {
		when string
		turn turnroute.Turn
		want bool
	}{
		"a turn after the first":               {"turn > 1", turnroute.Turn{Number: 2}, true},
		"the first turn is 1":                  {"turn > 1", turnroute.Turn{Number: 1}, false},
		"tokens at the bound":                  {"estimatedTokens > 100000", turnroute.Turn{EstimatedTokens: 100_000}, false},
		"tokens above the bound":               {"estimatedTokens > 100000", turnroute.Turn{EstimatedTokens: 100_001}, true},
		"a budget that is not limited":         {"budgetLeft.cost < 0.2", turnroute.Turn{Left: full}, false},
		"a part of the cost is left":           {"budgetLeft.cost < 0.2", turnroute.Turn{Left: turnroute.Left{Cost: 0.19, Steps: 1, Tokens: 1}}, true},
		"tokens and steps are others":          {"budgetLeft.tokens < 0.5 && budgetLeft.steps == 1.0", turnroute.Turn{Left: turnroute.Left{Tokens: 0.4, Steps: 1}}, true},
		"a whole number against a part":        {"budgetLeft.steps < 1", turnroute.Turn{Left: turnroute.Left{Steps: 0.99}}, true},
		"each third turn":                      {"turn % 3 == 0", turnroute.Turn{Number: 9}, true},
		"a part times tokens":                  {"double(estimatedTokens) * budgetLeft.tokens > 10.0", turnroute.Turn{EstimatedTokens: 100, Left: full}, true},
		"a failure that the other side spares": {"turn == 1 || 1 / (turn - 1) > 0", turnroute.Turn{Number: 1}, true},
		"a list of turns":                      {"turn in [1, 2]", turnroute.Turn{Number: 2}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := turnroute.Compile(c.when)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := condition.Holds(t.Context(), c.turn); got != c.want || err != nil {
				t.Errorf("%s is %v, %v", c.when, got, err)
			}
		})
	}
}

func TestHoldsFails(t *testing.T) {
	for when, says := range map[string]string{
		"10 / (turn - 1) > 2":                                  "division by zero",
		"5 % (estimatedTokens) == 0":                           "modulus by zero",
		"estimatedTokens - turn - 9223372036854775807 - 3 < 0": "overflow",
	} {
		condition, err := turnroute.Compile(when)
		if err != nil {
			t.Fatal(err)
		}
		_, err = condition.Holds(t.Context(), turnroute.Turn{Number: 1})
		if says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: error %v, want one with %q", when, err, says)
		}
	}
	condition, err := turnroute.Compile("estimatedTokens * 2 > 1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = condition.Holds(t.Context(), turnroute.Turn{EstimatedTokens: math.MaxInt64}); err == nil {
		t.Error("an overflow is no error")
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		when  []string
		route int
		says  string
	}{
		"no route":                                    {nil, 0, ""},
		"routes that differ":                          {[]string{"turn > 9", "budgetLeft.cost < 0.2", ""}, 0, ""},
		"a variable that is not there":                {[]string{"turn > 9", "tokens > 5"}, 1, "column 1: undeclared reference to 'tokens'; a condition reads turn, estimatedTokens, budgetLeft.steps, budgetLeft.tokens and budgetLeft.cost"},
		"another variable that is not there":          {[]string{"turn > 9 && session.length > 5"}, 0, "column 13: undeclared reference to 'session'; a condition reads turn"},
		"a budget without its limit":                  {[]string{"budgetLeft < 0.5"}, 0, "write budgetLeft.steps, budgetLeft.tokens or budgetLeft.cost"},
		"a budget that is not there":                  {[]string{"budgetLeft.time < 0.5"}, 0, "write budgetLeft.steps, budgetLeft.tokens or budgetLeft.cost"},
		"a number in place of a condition":            {[]string{"estimatedTokens"}, 0, "column 1: this is a value of type int, not a condition; compare it, as in estimatedTokens > 100000"},
		"a text in place of a condition":              {[]string{"'turn > 1'"}, 0, "a value of type string, not a condition"},
		"a number in quotes":                          {[]string{"turn > '3'"}, 0, "compare numbers, without quotes: write turn > 10"},
		"a number with a unit":                        {[]string{"estimatedTokens > 100k"}, 0, "numbers have no unit: write 100000"},
		"a part in per cent":                          {[]string{"budgetLeft.cost < 20% || turn > 3"}, 0, "column"},
		"a part compared with a whole number":         {[]string{"budgetLeft.cost == 1"}, 0, "write 1.0 in place of 1"},
		"money":                                       {[]string{"budgetLeft.cost < $2"}, 0, "values have no mark here"},
		"words in place of operators":                 {[]string{"turn > 1 and turn < 5"}, 0, "write &&"},
		"an assignment":                               {[]string{"turn = 1"}, 0, "write =="},
		"the begin of an expression":                  {[]string{"turn >"}, 0, "incomplete"},
		"numbers of two kinds":                        {[]string{"estimatedTokens * budgetLeft.cost > 5"}, 0, "calculate with numbers of one kind"},
		"a function that is not there":                {[]string{"sum(turn) > 5"}, 0, "compare the variables with numbers"},
		"a macro":                                     {[]string{"[1, 2].all(n, n < turn)"}, 0, "undeclared reference"},
		"a text that is too long":                     {[]string{"turn > 1" + strings.Repeat(" ", 512)}, 0, "at most 512 characters, and this has 520; make several routes of it"},
		"blanks alone":                                {[]string{"   "}, 0, "incomplete"},
		"a second line":                               {[]string{"turn > 1 &&\n tokens > 5"}, 0, "line 2, column 2: undeclared reference"},
		"a failure that needs no turn":                {[]string{"1 / 0 > 1"}, 0, "division by zero"},
		"a route behind one without a condition":      {[]string{"", "turn > 9"}, 1, "this route is never used: spec.routes[0] applies to every turn. Move it to the end"},
		"a route behind true":                         {[]string{"turn > 3", "true", "turn > 9"}, 2, "spec.routes[1] applies to every turn"},
		"a route behind a range that is the whole":    {[]string{"turn >= 1", "turn > 9"}, 1, "spec.routes[0] applies to every turn"},
		"a route behind the same from the other side": {[]string{"0 <= estimatedTokens", "turn > 9"}, 1, "spec.routes[0] applies to every turn"},
		"a route behind a disjunction with true":      {[]string{"turn > 9 || budgetLeft.cost <= 1", "turn > 3"}, 1, "spec.routes[0] applies to every turn"},
		"a route behind a negation":                   {[]string{"!(turn < 1)", "turn > 3"}, 1, "spec.routes[0] applies to every turn"},
		"a conjunction with true is no whole":         {[]string{"turn > 9 && budgetLeft.cost <= 1.0", "turn > 3"}, 0, ""},
		"a constant comparison":                       {[]string{"1 < 2", "turn > 3"}, 1, "spec.routes[0] applies to every turn"},
		"the same condition twice":                    {[]string{"turn > 3", "turn  > 3"}, 1, "this route is never used: spec.routes[0] has the same when"},
		"false":                                       {[]string{"false"}, 0, "it is true in no turn"},
		"dollars that are left":                       {[]string{"budgetLeft.cost > 5"}, 0, "budgetLeft is from 0 to 1"},
		"tokens that are left":                        {[]string{"budgetLeft.tokens == 1000.0"}, 0, "it is true in no turn"},
		"a turn before the first":                     {[]string{"turn < 1"}, 0, "turn begins at 1"},
		"a conjunction with what is never":            {[]string{"turn > 3 && budgetLeft.steps < 0"}, 0, "it is true in no turn"},
		"a bound of the range that is reached":        {[]string{"turn <= 1", "budgetLeft.cost >= 1", "budgetLeft.cost <= 0", "estimatedTokens == 0", "budgetLeft.steps != 0.5"}, 0, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wrong := turnroute.Check(c.when, func(i int) string { return fmt.Sprintf("spec.routes[%d]", i) })
			switch {
			case c.says == "" && wrong != nil:
				t.Errorf("route %d: %v", wrong.Route, wrong)
			case c.says != "" && wrong == nil:
				t.Errorf("nothing is wrong, want %q", c.says)
			case c.says != "" && (wrong.Route != c.route || !strings.Contains(wrong.Error(), c.says)):
				t.Errorf("route %d: %v; want route %d: %s", wrong.Route, wrong, c.route, c.says)
			}
		})
	}
}
