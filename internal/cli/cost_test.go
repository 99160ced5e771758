package cli

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// spending are the Runs of a Workflow, one of which delegates, and a Run without a price.
func spending(t *testing.T) *session {
	t.Helper()
	_, objects := released()
	s := newSession(t, append(objects, namedRun("cheap", v1alpha1.ReasonFinished, used(1, 500, 5, -1)))...)
	s.edit(t, "ship", used(9, 4000, 400, 100_000))       // all of it
	s.edit(t, "ship-build", used(4, 1000, 100, 30_000))  //
	s.edit(t, "ship-test-1", used(5, 3000, 300, 70_000)) // with its helper
	s.edit(t, "ship-test-1-helper", used(2, 1000, 100, 50_000), func(run *v1alpha1.Run) {
		run.Spec.User, run.Labels["team"] = "ann", "blue"
	})
	return s
}

func TestCostCountsNothingTwice(t *testing.T) {
	for by, file := range map[string]string{"agent": "cost-agent.txt", "user": "cost-user.txt", "label=team": "cost-label.txt", "model": "cost-model.txt"} {
		s := spending(t)
		if code := s.run(t, "cost", "--by", by); code != exit.OK {
			t.Fatal(s.text())
		}
		golden(t, file, s.text())
		if !strings.Contains(s.out.String(), "0.10USD") {
			t.Errorf("the sum of %s is not what the Runs cost: %s", by, s.out.String())
		}
	}
}

func TestCostOfSomeRuns(t *testing.T) {
	s := spending(t)
	if code := s.run(t, "cost", "-l", "team=blue", "-o", "json"); code != exit.OK || !strings.Contains(s.out.String(), `"costMicroUSD": 50000`) || strings.Contains(s.out.String(), "fixer") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	for since, want := range map[string]bool{"58m": false, "59m": true, "1d": true} { // ship-build began 59 minutes ago
		s.run(t, "cost", "-l", "deckhand.dev/workflow-node=build", "--since", since)
		if got := strings.Contains(s.text(), "0.03USD"); got != want {
			t.Errorf("--since %s: %s", since, s.text())
		}
	}
	for _, args := range [][]string{{"--by", "moon"}, {"--by", "label="}, {"--since", "yesterday"}, {"--since", "-1h"}} {
		if code := s.run(t, append([]string{"cost"}, args...)...); code != exit.Usage {
			t.Errorf("%v: exit code %d: %s", args, code, s.text())
		}
	}
}

// One Run whose runner lied, in a cluster whose schema is older, does not spoil the sums of the others.
func TestUsageThatCannotBeTrueIsLeftOutAndNamed(t *testing.T) {
	for name, n := range map[string]int64{"the most": math.MaxInt64, "one more than can be": v1alpha1.MaxUsage + 1, "less than nothing": -1} {
		s := spending(t)
		s.edit(t, "cheap", func(run *v1alpha1.Run) { run.Status.Progress.Usage.CostMicroUSD = &n })
		code := s.run(t, "cost", "-o", "json")
		if code != exit.OK || !strings.Contains(s.err.String(), "cheap. See status.progress.usage") || !strings.Contains(s.out.String(), `"cost": "0.10USD"`) {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
	}
}

func TestNoRunsAreAnEmptyListAsJSON(t *testing.T) {
	for command, field := range map[string]string{"cost": "rows", "list": "items"} {
		s := newSession(t)
		var got map[string]any
		code := s.run(t, command, "-o", "json")
		if err := json.Unmarshal(s.out.Bytes(), &got); err != nil || code != exit.OK {
			t.Fatalf("%s: exit code %d, %v: %s", command, code, err, s.text())
		}
		if list, is := got[field].([]any); !is || len(list) > 0 {
			t.Errorf("%s: printed %s", command, s.out.String())
		}
	}
}
