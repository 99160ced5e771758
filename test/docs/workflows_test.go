package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// Every Workflow of the page about them, with the Agents of that page, is Ready.
func TestWorkflowsOfThePageAreReady(t *testing.T) {
	ready(t, shown(t, filepath.Join("docs", "workflows.md")))
}

// shown are the objects of a page.
func shown(t *testing.T, page string) workflow.Objects {
	t.Helper()
	o := workflow.Objects{Workflows: map[string]*v1alpha1.Workflow{}, Agents: map[string]*v1alpha1.Agent{}, AgentObjects: map[string]snapshot.Objects{}}
	for _, m := range block.FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1) {
		for doc := range strings.SplitSeq(m[2], "---\n") {
			gather(t, o, doc)
		}
	}
	if len(o.Workflows) == 0 || len(o.Agents) == 0 {
		t.Fatal("the page has none")
	}
	return o
}

// ready wants every Workflow to be so.
func ready(t *testing.T, o workflow.Objects) {
	t.Helper()
	for name, w := range o.Workflows {
		t.Run(name, func(t *testing.T) {
			if _, err := workflow.Of(w, o); err != nil {
				t.Error(err)
			}
		})
	}
}

// gather adds one object of the page to those that there are.
func gather(t *testing.T, o workflow.Objects, doc string) {
	t.Helper()
	var model v1alpha1.Model
	var run v1alpha1.Run
	var decision v1alpha1.Decision
	var agent v1alpha1.Agent
	var flow v1alpha1.Workflow
	var head struct{ Kind string }
	if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"Model": &model, "Run": &run, "Decision": &decision, "Agent": &agent, "Workflow": &flow}[head.Kind]
	if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
		t.Fatalf("%s: %v\n%s", head.Kind, err, doc)
	}
	switch head.Kind {
	case "Workflow":
		o.Workflows[flow.Name] = &flow
	case "Agent":
		o.Agents[agent.Name] = &agent
		o.AgentObjects[agent.Name] = gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Name = agent.Spec.Model }))
	}
}
