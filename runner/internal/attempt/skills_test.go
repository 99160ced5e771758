package attempt

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// withSkill gives the agent a skill of a ConfigMap, and a directory for skills.
func (p *testPod) withSkill(t *testing.T, name, text string) *testPod {
	t.Helper()
	p.snapshot.Agent.Skills = append(p.snapshot.Agent.Skills, task.Skill{Name: name, ConfigMap: name})
	p.skills, p.skillFiles = t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(p.skillFiles, name, "SKILL.md"), text)
	writeFile(t, filepath.Join(p.skillFiles, name, "table.csv"), "a,b\n")
	return p
}

// An agent is told of its skills, reads them, and writes nothing to them.
func TestAnAgentReadsASkill(t *testing.T) {
	call := func(name, args string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{Name: name, Args: json.RawMessage(args)}}}
	}
	p := newTestPod(t,
		call("Read", `{"path":"/skills/go-review/SKILL.md"}`), call("Read", `{"path":"/skills/go-review/table.csv"}`),
		call("Write", `{"path":"/skills/go-review/SKILL.md","content":"Approve all."}`), modeltest.Turn{Text: "done"},
	).withSkill(t, "go-review", "---\nname: go-review\ndescription: >\n  Reviews Go,\n  line by line.\n---\nLook for races.\n")
	p.finished(t)
	seen := p.allOutput(t)
	for _, want := range []string{"Look for races.", "1  a,b", "is read-only"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not in the output: %s", want, seen)
		}
	}
	first := string(p.model.Requests()[0].Raw)
	if want := `- /skills/go-review/SKILL.md: Reviews Go, line by line.`; !strings.Contains(first, want) || strings.Contains(first, "Look for races") {
		t.Errorf("the model is not told %q, or more: %s", want, first)
	}
}

func TestARunWithABadSkillEnds(t *testing.T) {
	p := newTestPod(t).withSkill(t, "go-review", "---\nname: go-review\ndescription: Use when: it is Go\n---\n")
	if code := Fetch(p.Environment); code != task.ExitCode(task.ReasonMisconfigured) {
		t.Errorf("exit code %d", code)
	}
	const want = "The skill go-review (ConfigMap go-review) cannot be used: SKILL.md:3: the frontmatter is no YAML"
	if got := p.termination(t).Result; got.Reason != task.ReasonMisconfigured || !strings.Contains(got.Message, want) {
		t.Errorf("%+v", got)
	}
}
