package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	runnerTally  = `{"layer":"runner","seed":7,"runs":900,"kills":{"runner at a record":2000,"pod, by force":700},"effects":{"done and reported as done":5000}}`
	operatorGood = `{"layer":"operator","seed":7,"runs":80,"kills":{"operator, of two that lead":300},"effects":{}}`
	operatorBad  = `{"layer":"operator","seed":7,"runs":80,"kills":{"operator, of two that lead":300},"violations":[
		{"run":3,"invariant":"I1","text":"two"},{"run":3,"invariant":"I1","text":"three"}]}`
)

func TestThePageShowsWhatWasCounted(t *testing.T) {
	cases := map[string]struct {
		operator   string
		violations int
		want       []string
	}{
		"no violation": {
			operatorGood, 0,
			[]string{
				"`SOAK_SEED=7`, on 2030-01-01: 2 cores.", "| 900 | 2700 | 0 of 2700, 95 %: < 3/2700 (0.11 %) |",
				"| all | | 980 | 3000 | 0 of 3000, 95 %: < 3/3000 (0.1 %) |",
				"| I1 | a Run has at most one live pod | 0 of 3000, 95 %: < 3/3000 (0.1 %) |",
				"| runner | pod, by force | 700 |", "| runner | done and reported as done | 5000 |",
			},
		},
		"two violations of one Run": {
			operatorBad, 2,
			[]string{"| 80 | 300 | **1 of 300** |", "| all | | 980 | 3000 | **1 of 3000** |", "live pod | **2 of 3000** |"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, violations := written(t, tc.operator)
			if violations != tc.violations {
				t.Errorf("there are %d violations, want %d", violations, tc.violations)
			}
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("the page lacks %q:\n%s", want, text)
				}
			}
		})
	}
}

// written is the page of two layers.
func written(t *testing.T, operatorTally string) (text string, violations int) {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{"where": "on 2030-01-01: 2 cores\n", "runner.json": runnerTally, "operator.json": operatorTally} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "soak.md")
	violations, err := write(dir, page)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), violations
}

func TestWithoutATallyNoPageIsWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "where"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := write(dir, filepath.Join(dir, "soak.md")); err == nil {
		t.Error("it is written")
	}
}
