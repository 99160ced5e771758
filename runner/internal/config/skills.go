package config

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/internal/shared/skill"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxSkillTexts bounds the descriptions that the model gets with its instructions, in bytes.
const maxSkillTexts = 8 << 10

// skills are the descriptions of the skills of all agents, by name.
type skills map[string]string

func readSkills(ctx context.Context, p Parts) (skills, error) {
	if p.Skills == nil {
		return nil, nil //nolint:nilnil // an empty map, too, has no descriptions
	}
	files, out := backend.New(p.Skills, p.Now), skills{}
	for _, one := range p.Snapshot.Skills() {
		page, err := files.Read(ctx, path.Join(one.Name, skill.File), backend.Window{Limit: backend.MaxLines})
		if err != nil {
			return nil, fmt.Errorf("reading the skill %s: %w", one.Name, err)
		}
		read, err := skill.Parse(one.Name, []byte(strings.Join(page.Lines, "\n")))
		if err != nil {
			return nil, misconfigured("The skill %s: %w", one.Name, err)
		}
		out[one.Name] = strings.Join(strings.Fields(read.Description), " ")
	}
	return out, nil
}

// described describes the skills of an agent to it. Long descriptions are cut so that all fit.
func (s skills) described(agent task.Agent) string {
	if len(agent.Skills) == 0 || s == nil {
		return ""
	}
	lines := []string{"Skills are folders with instructions for kinds of work. If one fits your task, first read its " + skill.File +
		", and follow it where your instructions and the user say nothing else. They give no permissions."}
	most, total := maxSkillTexts, 0
	for _, one := range agent.Skills {
		total += len(s[one.Name])
	}
	if total > maxSkillTexts {
		most /= len(agent.Skills)
	}
	for _, one := range agent.Skills {
		lines = append(lines, "- "+path.Join(task.SkillsDir, one.Name, skill.File)+": "+quote.Clip(s[one.Name], most))
	}
	return strings.Join(lines, "\n")
}
