package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestSkillsAreDescribedWithinABound(t *testing.T) {
	agent := func(n int) (a task.Agent) {
		for i := range n {
			a.Skills = append(a.Skills, task.Skill{Name: fmt.Sprintf("s%02d", i)})
		}
		return a
	}
	long := skills{"s00": strings.Repeat("é", 1024)}
	for i := 1; i < 16; i++ {
		long[fmt.Sprintf("s%02d", i)] = strings.Repeat("a", 600)
	}
	for name, tc := range map[string]struct {
		of     skills
		agent  task.Agent
		lines  int
		cut    bool
		within int
	}{
		"no skill":                {nil, task.Agent{}, 0, false, 0},
		"of another agent":        {skills{"x": "y"}, task.Agent{}, 0, false, 0},
		"one as long as it can":   {long, agent(1), 2, false, 3 << 10},
		"as many as there can be": {long, agent(16), 17, true, maxSkillTexts + 2<<10},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.of.described(tc.agent)
			if n := len(strings.FieldsFunc(got, func(r rune) bool { return r == '\n' })); n != tc.lines || len(got) > tc.within {
				t.Errorf("it has %d lines and %d bytes, want %d and at most %d", n, len(got), tc.lines, tc.within)
			}
			if strings.Contains(got, "…") != tc.cut {
				t.Errorf("cut: %v, want %v: %s", !tc.cut, tc.cut, got)
			}
		})
	}
}
