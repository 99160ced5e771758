package pattern_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
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

func TestInstructionsAreCounted(t *testing.T) {
	for expression, want := range map[string]int{
		``:                       1,
		`abc`:                    3,
		`ab|cd`:                  5,
		`xy.z`:                   4,
		`(a)`:                    2,
		`(?:ab)*`:                3,
		`a{3}`:                   4,
		`a{2,}`:                  3,
		`a{2,5}`:                 8,
		`(?:ab){0,4}`:            12,
		`(?:ab){0,1}`:            3,
		`(?:a{2,}b){3}`:          13,
		`[a-z]`:                  1,
		`[ace-hj-m]`:             1,
		`[ace-hj-mo-q]`:          2,
		`x|([ace-hj-mo-q])`:      5,
		`[ace-hj-mo-q]{3}`:       5,
		`[ace-hj-moqsuwy0-24-6]`: 3,
	} {
		if got, err := pattern.Instructions(expression); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", expression, got, err, want)
		}
	}
	if n, err := pattern.Instructions(`(`); n != 0 || err == nil {
		t.Errorf("what is no expression: %d, %v", n, err)
	}
}

func TestTheBoundIsExact(t *testing.T) {
	most := strings.Repeat("a", pattern.MaxInstructions)
	if err := pattern.Check(most); err != nil {
		t.Error(err)
	}
	want := "it compiles to about 10001 instructions; at most 10000 are allowed. Use smaller numbers in {}, or fewer of them"
	if err := pattern.Check(most + "a"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := pattern.Check(`a{2}(`); err == nil {
		t.Error("what is no expression is taken")
	}
}

// Only an expression with many runes may take much memory as a one-pass program; it keeps its bytes
// otherwise, so that errors and logs show what was written.
func TestSourceChangesOnlyExpressionsWithManyRunes(t *testing.T) {
	for expression, want := range map[string]string{
		`^abcdefghijklmnop`:    `^abcdefghijklmnop`,
		`^abcdefghijklmnopq`:   `(?:)^abcdefghijklmnopq`,
		`^(abcdefgh|[x-z]{9}`:  `^(abcdefgh|[x-z]{9}`, // no expression
		`^abcdefghijkl[a-ce]`:  `^abcdefghijkl[a-ce]`,
		`^abcdefghijklm[a-ce]`: `(?:)^abcdefghijklm[a-ce]`,
	} {
		if got := pattern.Source(expression); got != want {
			t.Errorf("%s becomes %s", expression, got)
		}
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

// The estimate bounds the memory that is held, also of expressions that begin with ^, of which
// package regexp copies the ranges for each instruction.
func TestTheEstimateBoundsTheMemory(t *testing.T) {
	optional := ""
	for r := 'a'; r < 'a'+400; r += 2 {
		optional += string(r) + "?"
	}
	for name, expression := range map[string]string{
		"letters of any script":           `^\pL{980}$`,
		"those from the begin of a text":  `(?:\A\pL{900})\z`,
		"those in groups":                 `^((((\pL{180}))))$`,
		"those with an upper bound":       `^[\p{L}\p{N}_]{1,253}$`,
		"those across lines":              `(?s)^\pL{980}$`,
		"those of either case":            `(?i)^\p{Lu}{900}$`,
		"those of a repetition":           `^(?:\pL{30}){30}$`,
		"literals that may be there":      `^` + optional + `$`,
		"several ranges":                  `^[ace-hj-mo-qsuw-y0-35-9]{950}$`,
		"a range":                         `^[a-z]{950}$`,
		"a text that is quoted to an end": `^\pL{900}\Q$(`,
	} {
		t.Run(name, func(t *testing.T) {
			estimate, err := pattern.Instructions(expression)
			if err != nil {
				t.Fatal(err)
			}
			before := held()
			compiled, err := pattern.Compile(expression)
			if err != nil {
				t.Fatal(err)
			}
			if got, most := held()-before, 250*estimate+32<<10; got > most {
				t.Errorf("%d bytes are held, and the estimate is %d instructions", got, estimate)
			}
			runtime.KeepAlive(compiled)
		})
	}
}

// held returns the bytes that are held in memory.
func held() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestSourceMatchesTheSame(t *testing.T) {
	for _, expression := range []string{
		`^\pL{3}$`, `^\pL|^\pN`, `(?i)^\p{Lu}+$`, `^(\pL)(\pN*)$`, `\A\pL\Q.a`, `^\pL?x|\PL$`, `(?m)^\pL$`, `^kubectl get pods -n [a-z]+$`, `^a$`, `(`,
	} {
		want, err := regexp.Compile(expression)
		got, wrong := pattern.Compile(expression)
		if err != nil || wrong != nil {
			if fmt.Sprint(err) != fmt.Sprint(wrong) {
				t.Errorf("%s: %v, want %v", expression, wrong, err)
			}
			continue
		}
		for _, text := range []string{"", "a", "abc", "ABC", "a12", "ä.a", "x", "1", "a\nb", "kubectl get pods -n x", "abcd"} {
			if diff := cmp.Diff(want.FindStringSubmatchIndex(text), got.FindStringSubmatchIndex(text)); diff != "" {
				t.Errorf("%s in %q: -want +got:\n%s", expression, text, diff)
			}
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
