package runflags

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Declaration is the declared input and limits of the Agent or Workflow of a Run. The zero Declaration is for users
// who may create Runs but not read Agents.
type Declaration struct {
	Known  bool
	Input  *v1alpha1.Input      // nil: none is declared
	limits v1alpha1.AgentLimits // of the Agent
	Most   snapshot.Most        // the highest limits that the Run may set
	// Waits describes what the Run waits for before it begins; empty: nothing is known.
	Waits string
	// Ends describes why the Run cannot be continued after its end; empty: it can, or that is not known.
	Ends string
}

// DeclarationOf returns the Declaration of an Agent. A nil Agent, which is not known, has the zero Declaration.
func DeclarationOf(a *v1alpha1.Agent) Declaration {
	if a == nil {
		return Declaration{}
	}
	return Declaration{Known: true, Input: a.Spec.Input, limits: a.Spec.Limits, Most: snapshot.MostOf(a.Spec.Limits)}
}

// Check returns an error if the operator would refuse the input or the prompt of a Run.
func (d Declaration) Check(run *v1alpha1.Run) error {
	if p := snapshot.CheckInputSize(run.Spec); p != nil {
		return exit.Usagef("%s", p.Message)
	}
	if run.Spec.Agent == "" {
		return d.checkWorkflow(run)
	}
	if problem := podtask.FirstProblem(run, snapshot.LimitsOf(d.limits)); problem != "" {
		return exit.Usagef("%s", problem)
	}
	return d.checkAgent(run)
}

func (d Declaration) checkAgent(run *v1alpha1.Run) error {
	if !d.Known {
		return nil
	}
	if err := d.Given(run); err != nil {
		return err
	}
	agent := task.Agent{}
	if d.Input != nil {
		agent.InputSchema = inputs.Schema(d.Input)
	}
	if p := snapshot.CheckRun(run.Spec, agent); p != nil {
		return exit.Usagef("%s", p.Message)
	}
	if p := snapshot.CheckLimits(run.Spec.Limits, d.Most, "Agent "+run.Spec.Agent); p != nil {
		return exit.Usagef("%s", p.Message)
	}
	return nil
}

// Given returns an error if a Run gives its Agent nothing to do.
func (d Declaration) Given(run *v1alpha1.Run) error {
	switch {
	case !d.Known || run.Spec.Prompt != "" || run.Spec.Input != nil || run.Spec.ContinueFrom != nil:
		return nil
	case d.Input == nil:
		return exit.Usagef("Agent %s needs a prompt: add -p TEXT, or write the text in quotes behind the Agent", run.Spec.Agent)
	case len(d.Input.Fields) > 0:
		return exit.Usagef("Agent %s needs a prompt or an input: add -p TEXT, or --input NAME=VALUE (%s)", run.Spec.Agent, strings.Join(d.fields(), ", "))
	}
	return exit.Usagef("Agent %s needs a prompt or an input: add -p TEXT, or --input NAME=VALUE", run.Spec.Agent)
}

func (d Declaration) checkWorkflow(run *v1alpha1.Run) error {
	if !d.Known {
		return nil
	}
	given, of := json.RawMessage("{}"), inputs.Schema(d.Input)
	if run.Spec.Input != nil {
		given = run.Spec.Input.Raw
	}
	if err := schema.Validate(of, schema.Fill(of, given)); err != nil {
		return exit.Usagef("the input does not fit that of Workflow %s: %v", run.Spec.Workflow, err)
	}
	if p := snapshot.CheckLimits(run.Spec.Limits, d.Most, "Workflow "+run.Spec.Workflow); p != nil {
		return exit.Usagef("%s", p.Message)
	}
	return nil
}

// merged returns an input with values of the form KEY=VALUE added.
func (d Declaration) merged(input *runtime.RawExtension, values []string) (*runtime.RawExtension, error) {
	object := map[string]json.RawMessage{}
	if input != nil {
		if err := json.Unmarshal(input.Raw, &object); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
	}
	pairs, err := PairsOf("--input", "KEY=VALUE", values)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		if d.Known && d.Input != nil && len(d.Input.Fields) > 0 && !slices.Contains(d.fields(), p.Key) {
			return nil, exit.Usagef("--input %s is not declared%s; there are: %s", p.Key, template.Similar(p.Key, d.fields()), strings.Join(d.fields(), ", "))
		}
		if object[p.Key], err = d.value(p.Key, p.Value); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(object)
	return &runtime.RawExtension{Raw: data}, err
}

// fields returns the names of the values that are declared one by one.
func (d Declaration) fields() []string {
	var names []string
	for _, f := range d.Input.Fields {
		names = append(names, f.Name)
	}
	return names
}

// forms are examples for values that are not texts, by their types in JSON Schema.
var forms = map[string]struct{ what, example string }{
	"boolean": {"true or false", "true"},
	"integer": {"a whole number", "3"},
	"number":  {"a number", "0.5"},
	"array":   {"a list in JSON", `'["a","b"]'`},
	"object":  {"an object in JSON", `'{"a":"b"}'`},
}

// value returns a value of the command line as JSON. If a text is declared, it becomes one, unless it is quoted
// already: both 3 and "3" become "3".
func (d Declaration) value(key, value string) (json.RawMessage, error) {
	raw := json.RawMessage(value)
	isQuoted := strings.HasPrefix(strings.TrimSpace(value), `"`)
	declared := d.typeOf(key)
	if json.Valid(raw) && (isQuoted || declared != "string") {
		return raw, nil
	}
	if form, is := forms[declared]; is {
		return nil, exit.Usagef("--input %s=%s: write %s, for example --input %s=%s", key, untrusted.Line(value, 64), form.what, key, form.example)
	}
	return json.Marshal(value)
}

// typeOf returns the declared type of a value in JSON Schema; empty: not known.
func (d Declaration) typeOf(key string) string {
	if !d.Known {
		return ""
	}
	var declared struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(inputs.Schema(d.Input), &declared) // of another form: nothing is known
	return declared.Properties[key].Type
}
