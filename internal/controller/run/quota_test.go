package run

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

func TestQuotasThatRequireResourcesNameTheField(t *testing.T) {
	const limitRange = "reate a LimitRange with defaults for them or set containerResources of the chart, and the Run continues"
	cases := map[string]struct {
		says string // the answer of the API server
		want string // of the message; empty: the quota has no room
	}{
		"one resource of the runner": {
			"failed quota: q: must specify limits.cpu for: runner",
			"limits.cpu of container runner. Set them in spec.podTemplate.resources of the Agent and create a new Run, or c" + limitRange,
		},
		"of containers that the same field is for": {
			"failed quota: team-a: must specify limits.cpu for: fetch,install,runner; limits.memory for: runner",
			"limits.cpu of containers fetch, install and runner, limits.memory of container runner. Set them in spec.podTemplate.resources of the Agent and create a new Run, or c" + limitRange,
		},
		"of the sandbox": {
			"failed quota: q: must specify limits.ephemeral-storage for: sandbox",
			"limits.ephemeral-storage of container sandbox. Set them in spec.sandbox.resources of the Agent and create a new Run, or c" + limitRange,
		},
		"of a server": {
			"failed quota: q: must specify limits.cpu for: mcp-git", "limits.cpu of container mcp-git. C" + limitRange,
		},
		"of a server and the runner": {
			"failed quota: q: must specify cpu for: mcp-git,runner",
			"cpu of containers mcp-git and runner. Set them in spec.podTemplate.resources of the Agent and create a new Run, or c" + limitRange + " (the only ways for container mcp-git)",
		},
		"of a container that a webhook adds": {
			"failed quota: q: must specify cpu for: istio-proxy,runner",
			"cpu of containers istio-proxy and runner. Set them in spec.podTemplate.resources of the Agent and create a new Run, or c" + limitRange + " (a LimitRange is the only way for container istio-proxy)",
		},
		"by an older API server": {
			"failed quota: q: must specify limits.cpu,limits.memory",
			"limits.cpu, limits.memory. Set them in spec.podTemplate.resources and spec.sandbox.resources of the Agent and create a new Run, or c" + limitRange,
		},
		"without room": {"exceeded quota: q, requested: limits.cpu=1, used: limits.cpu=4, limited: limits.cpu=4", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			quota, required := apierr.Requirements(forbidden(tc.says))
			if len(required) == 0 {
				if tc.want != "" {
					t.Error("there are no requirements")
				}
				return
			}
			if got := requirementText(required) + ". " + requirementRemedy(required); got != tc.want || !strings.Contains(tc.says, "quota: "+quota+":") {
				t.Errorf("of quota %s:\n%s\nwant\n%s", quota, got, tc.want)
			}
		})
	}
}
