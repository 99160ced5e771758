package pattern_test

import (
	"errors"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/pattern"
)

func TestLargeExpressionsAreRefused(t *testing.T) {
	cases := map[string]struct {
		expression string
		fits       bool
	}{
		"an ordinary expression":                     {`^v[0-9]+(\.[0-9]+){2}(-[a-z0-9.]{1,40})?$`, true},
		"a name of letters of any script":            {`^[\p{L}\p{N}_]{1,253}$`, true},
		"a long list of words":                       {strings.Repeat("kubectl|", 500) + "x", true},
		"one large repetition":                       {`.{1000}`, true},
		"many repetitions in sequence":               {strings.Repeat(`.{1000}`, 500), false},
		"repetitions in repetitions":                 {`((a{10}){10}){10}`, true},
		"many repetitions in repetitions":            {`(((abcdefghij){10}){10}){10}`, false},
		"an upper bound alone":                       {strings.Repeat(`[a-c]{0,1000}`, 20), false},
		"a repetition without an upper bound":        {strings.Repeat(`(?:ab){900,}`, 20), false},
		"a repetition in an alternative and a group": {`x|(y|(?i:(?P<n>z{999}` + strings.Repeat(`|z{1,999}`, 12) + `)))`, false},
		"many classes with many ranges":              {strings.Repeat(`(\pL)`, 900), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := pattern.Compile(tc.expression)
			_, large := errors.AsType[*pattern.SizeError](err)
			if tc.fits && err != nil || !tc.fits && !large {
				t.Errorf("Compile() = %v", err)
			}
		})
	}
	if _, err := pattern.Compile(`(`); err == nil || !strings.HasPrefix(err.Error(), "error parsing regexp: ") {
		t.Errorf("Compile() of what is no expression = %v", err)
	}
}

// The estimate is at most a few times too small: it bounds what the compiler makes.
func TestTheEstimateBoundsTheProgram(t *testing.T) {
	for seed := range uint64(3000) {
		expression := random(rand.New(rand.NewPCG(seed, 3)), 4)
		estimate, err := pattern.Instructions(expression)
		if err != nil || estimate > 200_000 {
			continue // refused, and too large to compile in a test
		}
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(program.Inst); got > 3*estimate+4 {
			t.Errorf("seed %d: %s has %d instructions, and the estimate is %d", seed, expression, got, estimate)
		}
	}
}

// random returns an expression of a certain depth.
func random(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "bc", ".", `\d`, `[^x-z]`, `\pL`, "^", "$", `\b`, ""}[r.IntN(10)]
	}
	below := func() string { return "(?:" + random(r, depth-1) + ")" }
	switch r.IntN(8) {
	case 0:
		return below() + "*"
	case 1:
		return below() + "?"
	case 2:
		return below() + []string{"{3}", "{7,}", "{0,9}", "{2,40}", "{0}", "{1,}"}[r.IntN(6)]
	case 3:
		return below() + "|" + below()
	case 4:
		return "(" + random(r, depth-1) + ")+"
	case 5:
		return "(?i)" + below()
	}
	return below() + below()
}
