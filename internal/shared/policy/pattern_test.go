package policy_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

func TestLargePatternsAreRefused(t *testing.T) {
	large := strings.Repeat(".{1000}", 500)
	for when, want := range map[string]string{
		"args.x.matches('" + large + "')":                            "column 16: the pattern is too large: it compiles to about 500",
		"matches(args.x, '" + large + "')":                           "column 17: the pattern is too large: it compiles to about 500",
		"args.xs.exists(x, !x.matches('((abcdefghijklm){30}){30}'))": "the pattern is too large: ",
		"matches()":            "found no matching overload for 'matches'",
		"matches(args.x, '(')": "column 17: invalid matches argument; the syntax is RE2",
		"args.x.matches('^[\\\\p{L}\\\\p{N}]{1,253}$')":              "",
		"args.x.matches('.{1000}') && args.x.matches('[a-z]{1,63}')": "",
	} {
		_, err := policy.Compile([]policy.Rule{{Name: "r", Answer: policy.Deny, When: when}}, nil)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
}

func TestThePatternsOfAPolicyAreBoundedTogether(t *testing.T) {
	var rules []policy.Rule
	for i := range policy.MaxRules {
		rules = append(rules, policy.Rule{Name: fmt.Sprintf("r%d", i), Answer: policy.Deny, When: "args.x.matches('" + strings.Repeat(".{900}", 10) + "')"})
	}
	_, err := policy.Compile(rules, nil)
	wrong, one := errors.AsType[*policy.Error](err)
	if !one || wrong.Rule != 5 || wrong.Name != "r5" || !strings.Contains(wrong.Message, "the patterns of the rules so far compile to about 54") {
		t.Errorf("Compile() = %v", err)
	}
	if _, err := policy.Compile(rules[:5], nil); err != nil {
		t.Errorf("Compile() of fewer rules = %v", err)
	}
}

// Package regexp copies the ranges of a class for each instruction of some patterns.
func TestThePatternsOfAPolicyHoldLittleMemory(t *testing.T) {
	condition := strings.TrimSuffix(strings.Repeat(`args.a.matches('^\\pL{980}$') || `, 15), " || ")
	var rules []policy.Rule
	for i := range 2 {
		rules = append(rules, policy.Rule{Name: fmt.Sprintf("r%d", i), Answer: policy.Deny, When: condition})
	}
	if _, err := policy.Compile(rules[:1], nil); err != nil { // what is made once
		t.Fatal(err)
	}
	before := held()
	p, err := policy.Compile(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := held() - before; got > 8<<20 {
		t.Errorf("the policy holds %d bytes", got)
	}
	runtime.KeepAlive(p)
}

// Nothing is made of the pattern with which those of a policy become too large.
func TestPatternsThatAreTooLargeTogetherAreNotCompiled(t *testing.T) {
	condition := strings.TrimSuffix(strings.Repeat("args.x.matches('.{900}') || ", 100), " || ")
	var rules []policy.Rule
	for i := range policy.MaxRules {
		rules = append(rules, policy.Rule{Name: fmt.Sprintf("r%d", i), Answer: policy.Deny, When: condition})
	}
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	_, err := policy.Compile(rules, nil)
	runtime.ReadMemStats(&end)
	if wrong, one := errors.AsType[*policy.Error](err); !one || wrong.Rule != 0 || wrong.Name != "r0" || wrong.Field != "when" {
		t.Errorf("Compile() = %v", err)
	}
	if made := end.TotalAlloc - start.TotalAlloc; made > 8<<20 {
		t.Errorf("%d bytes are made", made)
	}
}

// held returns the bytes that are held in memory.
func held() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
