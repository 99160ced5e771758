package ready

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// agentRevision returns a stored revision of an Agent of an age.
func agentRevision(t *testing.T, agent *v1alpha1.Agent, age time.Duration) corev1.ConfigMap {
	t.Helper()
	v, err := snapshot.Of(agent, gen.Objects())
	if err != nil {
		t.Fatal(err)
	}
	cm := v.ConfigMap(agent.Namespace)
	cm.CreationTimestamp = metav1.NewTime(gen.Noon.Add(-age))
	return *cm
}

func otherInstructions(a *v1alpha1.Agent) { a.Spec.Instructions = "Do it otherwise." }

func TestCheckAgent(t *testing.T) {
	cost := v1alpha1.Money("1USD")
	helped := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Agent: "helper"}} })
	help := gen.Objects()
	help.Agents["helper"] = gen.Agent(func(a *v1alpha1.Agent) { a.Name = "helper" })
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		objects snapshot.Objects
		want    string
	}{
		"another Agent is there":          {helped, help, "True Ready"},
		"another Agent is not there":      {helped, gen.Objects(), "False NotFound"},
		"everything is there":             {gen.Agent(), gen.Objects(), "True Ready"},
		"the Model is not there":          {gen.Agent(), snapshot.Objects{}, "False NotFound"},
		"cost is limited without a price": {gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = &cost }), gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec.Prices = nil })), "False PricesMissing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := checkAgent(tc.agent, tc.objects).ready
			if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != tc.want || c.Message == "" {
				t.Errorf("Ready is %s: %q, want %s", got, c.Message, tc.want)
			}
		})
	}
}

func TestCheckAgentWarnsOfForeignReferences(t *testing.T) {
	for instructions, want := range map[string]string{
		"Work on {{ parameters.file }}.": "True Valid; Runs check Secrets and endpoints; spec.instructions: column 9: {{ parameters.file }} is sent to the model as text; write ${{ input.file }}",
		"Work\non $(params.file).":       "True Valid; Runs check Secrets and endpoints; spec.instructions: line 2, column 4: $(params.file) is sent to the model as text; write ${{ input.file }}",
		"Work on $${{ input.file }}.":    "True Valid; Runs check Secrets and endpoints",
	} {
		agent := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = instructions })
		c := checkAgent(agent, gen.Objects()).ready
		if got := fmt.Sprintf("%s %s", c.Status, c.Message); got != want {
			t.Errorf("%q: Ready is %s\nwant %s", instructions, got, want)
		}
	}
}

func TestDurable(t *testing.T) {
	for durability, want := range map[v1alpha1.Durability]string{
		v1alpha1.DurabilityPod:    "False PodDurability",
		v1alpha1.DurabilityVolume: "True VolumeDurability",
	} {
		agent := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Workspace.Durability = durability })
		c := meta.FindStatusCondition(checkAgent(agent, gen.Objects()).more, v1alpha1.ConditionDurable)
		if c == nil {
			t.Fatalf("durability %q: there is no condition Durable", durability)
		}
		if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != want || c.Message == "" {
			t.Errorf("durability %q: Durable is %s: %q, want %s", durability, got, c.Message, want)
		}
	}
}
