package snapshot

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func toolsForRunner(agent *v1alpha1.Agent, o Objects) []task.Tool {
	var out []task.Tool
	for _, t := range agent.Spec.Tools {
		tool := toolForRunner(t)
		if modeOf(t) == v1alpha1.AgentModeRun {
			describeForRunner(&tool, o.agent(agent, tool.Agent))
		}
		out = append(out, tool)
	}
	return out
}

func toolForRunner(t v1alpha1.Tool) task.Tool {
	out := task.Tool{
		Builtin:        string(t.Builtin),
		Agent:          string(t.Agent),
		Toolset:        string(t.Toolset),
		Allow:          t.Allow,
		Deny:           t.Deny,
		Approval:       approvalForRunner(t.Approval),
		Custom:         t.Custom,
		Name:           t.Name,
		TimeoutSeconds: seconds(t.Timeout),
	}
	switch {
	case t.HTTPRequest != nil:
		out.Hosts = hostsForRunner(t.HTTPRequest.Hosts)
	case t.Browse != nil:
		out.Hosts = hostsForRunner(t.Browse.Hosts)
	case t.WebSearch != nil:
		out.Endpoint, out.SecretKey = t.WebSearch.Endpoint, keyForRunner(t.WebSearch.APIKeySecretRef)
	case t.Settings != nil:
		out.Endpoint, out.SecretKey = t.Settings.Endpoint, keyForRunner(t.Settings.APIKeySecretRef)
	}
	return out
}

func hostsForRunner(hosts []v1alpha1.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, string(h))
	}
	return out
}

// agent is one that another names, which may be itself.
func (o Objects) agent(by *v1alpha1.Agent, name string) *v1alpha1.Agent {
	if name == by.Name {
		return by
	}
	return o.Agents[name]
}

// describeForRunner sets what the caller's model reads of an agent that works in a Run of
// its own.
func describeForRunner(t *task.Tool, agent *v1alpha1.Agent) {
	t.Mode, t.Description = task.ModeRun, agent.Spec.Description
	if agent.Spec.Input != nil {
		t.InputSchema = inputs.Schema(agent.Spec.Input)
	}
}
