package config

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// requireConfinement refuses a sandbox whose confinement is not complete. The sandbox cannot
// try NetworkPolicies, so this waits until the runner has shown that they are enforced, and then
// sets Network to Enforced.
func (b *builder) requireConfinement(ctx context.Context, c *sandbox.Confinement) error {
	const required = "sandbox.confinement is Required, but "
	if c.Process != sandbox.Enforced || c.Files != sandbox.Enforced || c.Network == sandbox.Unenforced {
		return misconfigured(required+"on this node process is %s, files are %s and network is %s (Landlock ABI %d). Choose nodes with a newer kernel with podTemplate.nodeSelector, or set BestEffort",
			c.Process, c.Files, c.Network, c.LandlockABI)
	}
	if b.Network == nil {
		return misconfigured(required + "network is PortsOnly: this pod has no NetworkPolicy of Deckhand. Set the chart's value networkPolicies.enabled to true, or set BestEffort")
	}
	switch f := b.Network(ctx); f.State {
	case networkcheck.Closed:
		c.Network = sandbox.Enforced
		return nil
	case networkcheck.Open:
		return misconfigured(required + "network is PortsOnly: this pod connected to a port of the operator that its NetworkPolicy does not allow. Use a network plugin that enforces NetworkPolicies, or set BestEffort. If the plugin does, remove policies of your own that select this pod, and do not name a Service of the operator's namespace in the Agent")
	default:
		return task.End(task.ReasonToolUnavailable, required+"it is unknown whether NetworkPolicies are enforced: %w. See whether the operator is ready, and whether its Service and its NetworkPolicy have the ports 20471 and 20472 of the chart", f.Err)
	}
}
