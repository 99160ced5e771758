package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const source = `package p

func f(a, b int) bool {
	if a < b && !done() {
		return true
	}
	notify(3)
	return false
}
`

func TestFaultsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	faults, err := faultsOfFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, strings.TrimPrefix(f.String(), filepath.ToSlash(file)+" f: "))
		if string(f.undone().apply([]byte(source))) != source || string(f.apply([]byte(source))) == source {
			t.Errorf("%s changes nothing, or is not undone", f)
		}
	}
	slices.Sort(got)
	const guard = " IN if a < b && !done() {"
	want := []string{
		"! -> nothing" + guard, "&& -> ||" + guard, "3 -> 4 IN notify(3)", "< -> <=" + guard,
		"a < b && !done() -> false && (a < b && !done())" + guard, "a < b && !done() -> true || (a < b && !done())" + guard,
		"false -> true IN return false", "notify(3) -> nothing IN notify(3)", "true -> false IN return true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults %q, want %q", got, want)
	}
}

func TestFaultsOfAPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	text := "# a == b\nmetadata:\n  name: p\n  - expression: a == b && x.all(y, y)\n    message: a == b\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	faults, err := faultsOfPolicy(file)
	if err != nil || len(faults) != 3 {
		t.Errorf("faults %v: %v", faults, err)
	}
	for _, f := range faults {
		if f.function != "p" || !strings.HasPrefix(f.line, "- expression") {
			t.Errorf("fault %s", f)
		}
	}
}

func TestTheBarOfAPackage(t *testing.T) {
	for name, tc := range map[string]struct {
		r    result
		want string
	}{
		"nine of ten":        {result{noticed: 9, survivors: make([]string, 1)}, ""},
		"eight of ten":       {result{noticed: 8, survivors: make([]string, 2)}, "notice 8 of 10 faults"},
		"few equivalent":     {result{noticed: 18, equivalent: 2}, ""},
		"too many of them":   {result{noticed: 17, equivalent: 3}, "3 of 20 faults are called equivalent"},
		"nothing was tested": {result{dir: "p"}, "no fault of p was tested"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&tc.r).failure()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestVerdictOf(t *testing.T) {
	const timeout = "panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestA (1m0s)\n"
	for name, tc := range map[string]struct {
		output string
		want   verdict
	}{
		"a test that failed":                      {"--- FAIL: TestA (0.00s)\nFAIL\n", noticed},
		"a test that panicked":                    {"panic: index out of range\nFAIL\tp\t0.1s\n", noticed},
		"a test that did not end":                 {timeout, timedOut},
		"a test that failed, another did not end": {"--- FAIL: TestB (0.00s)\n" + timeout, noticed},
		"a program that went out of memory":       {"fatal error: runtime: out of memory\nFAIL\tp\t0.1s\n", noticed},
		"an API server that did not start":        {"unable to start control plane itself\nFAIL\tp\t61.2s\n", untested},
		"a program that is no Go":                 {"FAIL\tp [build failed]\n", untested},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictOf(tc.output); got != tc.want {
				t.Errorf("verdict %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheSummaryCountsTimeoutsApart(t *testing.T) {
	r := result{dir: "p"}
	for _, v := range []verdict{noticed, timedOut, noticed, untested, survived} {
		r.count(fault{}, v)
	}
	if got := strings.Join(strings.Fields(r.String()), " "); got != "p 3 noticed, 1 of them by a timeout, 1 not, 0 equivalent" {
		t.Errorf("summary %q", got)
	}
}

// Each line of equivalent.txt names a place that exists, and says why.
func TestEquivalentFaultsExist(t *testing.T) {
	t.Chdir("../..")
	all := map[string]bool{}
	for _, target := range targets {
		faults, err := target.faults("")
		if err != nil {
			t.Fatalf("%s: %v", target.dir, err)
		}
		for _, f := range faults {
			all[f.String()] = true
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(equivalents), "\n") {
		known, why, is := strings.Cut(line, " # ")
		if strings.HasPrefix(line, "FILE ") {
			continue
		}
		if !is || why == "" || !all[known] {
			t.Errorf("no fault, or no reason: %s", line)
		}
	}
}
