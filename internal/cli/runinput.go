package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A declaration is what the Agent or Workflow of a Run says of its input. The zero one says
// nothing: a user may create Runs without reading Agents.
type declaration struct {
	known  bool
	input  *v1alpha1.Input      // nil: none is declared
	limits v1alpha1.AgentLimits // of the Agent
	most   snapshot.Most        // what limits of the Run may not be above
	// waits says what the Run waits for before it begins; empty: nothing is known.
	waits string
}

// declaration reads what the Agent or Workflow of a Run declares. If that does not exist, it is an
// error, because the Run would wait for it; a manifest may be created before its Agent. An Agent that
// is not Ready is a note to the user.
func (r runCreator) declaration(ctx context.Context, c client.Client, run *v1alpha1.Run) (declaration, error) {
	kind, name := "Agent", run.Spec.Agent
	var agent v1alpha1.Agent
	var workflow v1alpha1.Workflow
	var into client.Object = &agent
	if run.Spec.Workflow != "" {
		kind, name, into = "Workflow", run.Spec.Workflow, &workflow
	}
	key := client.ObjectKey{Namespace: run.Namespace, Name: name}
	err := c.Get(ctx, key, into)
	isManifest := len(r.o.files) > 0
	switch {
	case apierrors.IsForbidden(err):
		return declaration{}, nil
	case apierrors.IsNotFound(err) && !isNotInstalled(err) && isManifest:
		return declaration{waits: fmt.Sprintf("%s %s not found in namespace %s; the Run waits until it exists", kind, name, run.Namespace)}, nil
	case apierrors.IsNotFound(err) && !isNotInstalled(err):
		if other := otherTarget(ctx, c, kind, key); other != "" {
			return declaration{}, usageErrorf("there is no %s %s in namespace %s, but %s: write %s", kind, name, run.Namespace, other, other)
		}
		return declaration{}, notFound(ctx, c, kind, key)
	case err != nil:
		return declaration{}, err
	case kind == "Agent":
		d := declarationOf(&agent)
		d.waits = notReady(kind, name, agent.Status.Conditions)
		return d, nil
	}
	return declaration{known: true, input: workflow.Spec.Input, most: snapshot.MostOfWorkflow(workflow.Spec.Limits), waits: notReady(kind, name, workflow.Status.Conditions)}, nil
}

// otherTarget returns KIND/NAME of the Workflow that has the name of a missing Agent, or of the Agent that
// has the name of a missing Workflow; empty: there is none, or it cannot be read.
func otherTarget(ctx context.Context, c client.Client, missing string, key client.ObjectKey) string {
	var other client.Object = &v1alpha1.Workflow{}
	kind := "workflow"
	if missing == "Workflow" {
		kind, other = "agent", &v1alpha1.Agent{}
	}
	if c.Get(ctx, key, other) != nil {
		return ""
	}
	return kind + "/" + key.Name
}

// notReady returns the note that a Run waits because its Agent or Workflow is not Ready; empty: it is
// Ready, or the operator has not read it yet.
func notReady(kind, name string, conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s %s is not ready: %s; the Run waits until then", kind, name, strings.TrimSuffix(ready.Message, "."))
}

// declarationOf returns what an Agent declares; nil: it is not known.
func declarationOf(a *v1alpha1.Agent) declaration {
	if a == nil {
		return declaration{}
	}
	return declaration{known: true, input: a.Spec.Input, limits: a.Spec.Limits, most: snapshot.MostOf(a.Spec.Limits)}
}

// check returns an error if the operator would refuse the input or the prompt of a Run.
func (d declaration) check(run *v1alpha1.Run) error {
	if p := snapshot.CheckInputSize(run.Spec); p != nil {
		return usageErrorf("%s", p.Message)
	}
	if run.Spec.Agent == "" {
		return d.checkWorkflow(run)
	}
	if problem := podtask.FirstProblem(run, snapshot.LimitsOf(d.limits)); problem != "" {
		return usageErrorf("%s", problem)
	}
	return d.checkAgent(run)
}

func (d declaration) checkAgent(run *v1alpha1.Run) error {
	if !d.known {
		return nil
	}
	if err := d.given(run); err != nil {
		return err
	}
	agent := task.Agent{}
	if d.input != nil {
		agent.InputSchema = inputs.Schema(d.input)
	}
	if p := snapshot.CheckRun(run.Spec, agent); p != nil {
		return usageErrorf("%s", p.Message)
	}
	if p := snapshot.CheckLimits(run.Spec.Limits, d.most, "Agent "+run.Spec.Agent); p != nil {
		return usageErrorf("%s", p.Message)
	}
	return nil
}

// given returns an error if a Run gives its Agent nothing to do.
func (d declaration) given(run *v1alpha1.Run) error {
	switch {
	case !d.known || run.Spec.Prompt != "" || run.Spec.Input != nil:
		return nil
	case d.input == nil:
		return usageErrorf("Agent %s needs a prompt: add -p TEXT, or write the text in quotes behind the Agent", run.Spec.Agent)
	case len(d.input.Fields) > 0:
		return usageErrorf("Agent %s needs a prompt or an input: add -p TEXT, or --input NAME=VALUE (%s)", run.Spec.Agent, strings.Join(d.fields(), ", "))
	}
	return usageErrorf("Agent %s needs a prompt or an input: add -p TEXT, or --input NAME=VALUE", run.Spec.Agent)
}

func (d declaration) checkWorkflow(run *v1alpha1.Run) error {
	if !d.known {
		return nil
	}
	given, of := json.RawMessage("{}"), inputs.Schema(d.input)
	if run.Spec.Input != nil {
		given = run.Spec.Input.Raw
	}
	if err := schema.Validate(of, schema.Fill(of, given)); err != nil {
		return usageErrorf("the input does not fit that of Workflow %s: %v", run.Spec.Workflow, err)
	}
	if p := snapshot.CheckLimits(run.Spec.Limits, d.most, "Workflow "+run.Spec.Workflow); p != nil {
		return usageErrorf("%s", p.Message)
	}
	return nil
}

// merged returns an input with values of the form KEY=VALUE added.
func (d declaration) merged(input *runtime.RawExtension, values []string) (*runtime.RawExtension, error) {
	object := map[string]json.RawMessage{}
	if input != nil {
		if err := json.Unmarshal(input.Raw, &object); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
	}
	pairs, err := pairsOf("--input", values)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		if d.known && d.input != nil && len(d.input.Fields) > 0 && !slices.Contains(d.fields(), p.key) {
			return nil, usageErrorf("--input %s is not declared%s; there are: %s", p.key, template.Similar(p.key, d.fields()), strings.Join(d.fields(), ", "))
		}
		if object[p.key], err = d.value(p.key, p.value); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(object)
	return &runtime.RawExtension{Raw: data}, err
}

// fields returns the names of the values that are declared one by one.
func (d declaration) fields() []string {
	var names []string
	for _, f := range d.input.Fields {
		names = append(names, f.Name)
	}
	return names
}

// forms are what to write for values that are no texts, by their types in JSON Schema.
var forms = map[string]struct{ what, example string }{
	"boolean": {"true or false", "true"},
	"integer": {"a whole number", "3"},
	"number":  {"a number", "0.5"},
	"array":   {"a list in JSON", `'["a","b"]'`},
	"object":  {"an object in JSON", `'{"a":"b"}'`},
}

// value returns a value of the command line as JSON. Where a text is declared, it is one, unless it
// is quoted: 3 is "3", and "3" is "3", too.
func (d declaration) value(key, value string) (json.RawMessage, error) {
	raw := json.RawMessage(value)
	isQuoted := strings.HasPrefix(strings.TrimSpace(value), `"`)
	declared := d.typeOf(key)
	if json.Valid(raw) && (isQuoted || declared != "string") {
		return raw, nil
	}
	if form, is := forms[declared]; is {
		return nil, usageErrorf("--input %s=%s: write %s, for example --input %s=%s", key, untrusted.Line(value, 64), form.what, key, form.example)
	}
	return json.Marshal(value)
}

// typeOf returns the type in JSON Schema with which a value is declared; empty: it is not known.
func (d declaration) typeOf(key string) string {
	if !d.known {
		return ""
	}
	var declared struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(inputs.Schema(d.input), &declared) // of another form: nothing is known
	return declared.Properties[key].Type
}
