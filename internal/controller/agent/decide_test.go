package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
)

// version is a stored version of an Agent, as old as said.
func version(t *testing.T, agent *v1alpha1.Agent, age time.Duration) corev1.ConfigMap {
	t.Helper()
	v, err := snapshot.Of(agent, gen.Objects())
	if err != nil {
		t.Fatal(err)
	}
	cm := v.ConfigMap(agent.Namespace)
	cm.CreationTimestamp = metav1.NewTime(gen.Noon.Add(-age))
	return *cm
}

func otherwise(a *v1alpha1.Agent) { a.Spec.Instructions = "Do it otherwise." }

func TestReady(t *testing.T) {
	cost := v1alpha1.Money("1USD")
	helped := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Agent: "helper"}} })
	help := gen.Objects()
	help.Agents["helper"] = gen.Agent(func(a *v1alpha1.Agent) { a.Name = "helper" })
	cases := map[string]struct {
		world world
		want  string
	}{
		"another Agent is there":          {world{agent: helped, objects: help}, "True Ready"},
		"another Agent is not there":      {world{agent: helped, objects: gen.Objects()}, "False AgentNotFound"},
		"everything is there":             {world{agent: gen.Agent(), objects: gen.Objects()}, "True Ready"},
		"the Model is not there":          {world{agent: gen.Agent()}, "False ModelNotFound"},
		"cost is limited without a price": {world{agent: gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = &cost }), objects: gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec.Prices = nil }))}, "False PricesMissing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.world.now = gen.Noon
			c := decide(tc.world).conditions[0]
			if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != tc.want || c.Message == "" {
				t.Errorf("Ready is %s: %q, want %s", got, c.Message, tc.want)
			}
		})
	}
}

func TestReadyWarnsOfForeignReferences(t *testing.T) {
	for instructions, want := range map[string]string{
		"Work on {{ parameters.file }}.": "True Valid; Runs check Secrets and endpoints; spec.instructions: column 9: {{ parameters.file }} is sent to the model as text; write ${{ input.file }}",
		"Work\non $(params.file).":       "True Valid; Runs check Secrets and endpoints; spec.instructions: line 2, column 4: $(params.file) is sent to the model as text; write ${{ input.file }}",
		"Work on $${{ input.file }}.":    "True Valid; Runs check Secrets and endpoints",
	} {
		agent := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = instructions })
		c := decide(world{agent: agent, objects: gen.Objects(), now: gen.Noon}).conditions[0]
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
		c := meta.FindStatusCondition(decide(world{agent: agent, objects: gen.Objects(), now: gen.Noon}).conditions, v1alpha1.ConditionDurable)
		if c == nil {
			t.Fatalf("durability %q: there is no condition Durable", durability)
		}
		if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != want || c.Message == "" {
			t.Errorf("durability %q: Durable is %s: %q, want %s", durability, got, c.Message, want)
		}
	}
}

func TestWhichVersionsGo(t *testing.T) {
	current, old := version(t, gen.Agent(), time.Hour), version(t, gen.Agent(otherwise), time.Hour)
	young := version(t, gen.Agent(otherwise), 20*time.Second)
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		version corev1.ConfigMap
		unused  bool
		removed bool
		wake    time.Duration
	}{
		"the current one stays":                     {gen.Agent(), current, true, false, 0},
		"an old one that a Run still needs stays":   {gen.Agent(), old, false, false, 0},
		"an old one that nothing needs goes":        {gen.Agent(), old, true, true, 0},
		"a young one may be about to be claimed":    {gen.Agent(), young, true, false, 40 * time.Second},
		"all of a deleted Agent that are unused go": {nil, current, true, true, 0},
		"those that its last Runs need stay":        {nil, current, false, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := world{agent: tc.agent, objects: gen.Objects(), versions: gc.Revisions{Stored: []corev1.ConfigMap{tc.version}, Unused: map[string]bool{tc.version.Name: tc.unused}}, now: gen.Noon}
			p := decide(w)
			if removed := len(p.remove) == 1; removed != tc.removed || p.wake != tc.wake {
				t.Errorf("removed %t, wake %s; want %t, %s", removed, p.wake, tc.removed, tc.wake)
			}
		})
	}
}

// Whatever is stored, after acting there is nothing left to do but to wait for
// what is young.
func TestEveryAgentSettles(t *testing.T) {
	for mask := range 1 << 6 {
		w := world{agent: gen.Agent(), objects: gen.Objects(), versions: gc.Revisions{Unused: map[string]bool{}}, now: gen.Noon}
		if mask&1 != 0 {
			w.agent = nil
		}
		for i := range 5 {
			cm := version(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = fmt.Sprint(i) }), time.Duration(i)*30*time.Second)
			w.versions.Stored = append(w.versions.Stored, cm)
			w.versions.Unused[cm.Name] = mask&(2<<i) != 0
		}
		for range 10 {
			p := decide(w)
			w = without(w, p.remove)
			w.now = w.now.Add(p.wake)
		}
		last := decide(w)
		if len(last.remove) > 0 || last.wake > 0 {
			t.Errorf("world %06b does not settle: %d to remove, wake in %s", mask, len(last.remove), last.wake)
		}
		if diff := cmp.Diff(last, decide(w), cmp.AllowUnexported(plan{})); diff != "" {
			t.Errorf("deciding twice differs:\n%s", diff)
		}
	}
}

func without(w world, gone []corev1.ConfigMap) world {
	var kept []corev1.ConfigMap
	for _, cm := range w.versions.Stored {
		keep := true
		for _, g := range gone {
			keep = keep && g.Name != cm.Name
		}
		if keep {
			kept = append(kept, cm)
		}
	}
	w.versions.Stored = kept
	return w
}
