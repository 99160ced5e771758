package objectcache_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
)

func TestTheDefaultDurabilityOfAgents(t *testing.T) {
	for name, tc := range map[string]struct{ installation, agent, want v1alpha1.Durability }{
		"an Agent says nothing":                     {v1alpha1.DurabilityVolume, "", v1alpha1.DurabilityVolume},
		"an Agent says Pod":                         {v1alpha1.DurabilityVolume, v1alpha1.DurabilityPod, v1alpha1.DurabilityPod},
		"an Agent says Volume":                      {v1alpha1.DurabilityPod, v1alpha1.DurabilityVolume, v1alpha1.DurabilityVolume},
		"the installation and an Agent say nothing": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			agent := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Instructions: "Work.", Workspace: v1alpha1.Workspace{Durability: tc.agent}}}
			var kept any = agent
			for range 2 { // client-go transforms a listed object twice
				var err error
				if kept, err = objectcache.AgentWith(tc.installation)(kept); err != nil {
					t.Fatal(err)
				}
			}
			if got := kept.(*v1alpha1.Agent).Spec.Workspace.Durability; got != tc.want || agent.Spec.Workspace.Durability != tc.agent {
				t.Errorf("the durability is %q, and of the object of the watch %q, want %q", got, agent.Spec.Workspace.Durability, tc.want)
			}
		})
	}
}
