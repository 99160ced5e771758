package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/inputs"
	"github.com/deckhand-dev/deckhand/internal/schema"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A declaration is what the Agent or Workflow of a Run says of its input. The zero one says
// nothing: a user may create Runs without reading Agents.
type declaration struct {
	known bool
	input *v1alpha1.Input // nil: none is declared
}

// declaration reads what the Agent or Workflow of a Run declares. If the command line names one that
// does not exist, that is an error: the Run would wait for it.
func (r runCreator) declaration(ctx context.Context, c client.Client, run *v1alpha1.Run) (declaration, error) {
	var agent v1alpha1.Agent
	var workflow v1alpha1.Workflow
	var err error
	if run.Spec.Agent != "" {
		err = r.find(ctx, c, "Agent", run.Spec.Agent, &agent)
	} else {
		err = r.find(ctx, c, "Workflow", run.Spec.Workflow, &workflow)
	}
	switch {
	case apierrors.IsForbidden(err), err != nil && r.o.target == "":
		return declaration{}, nil
	case err != nil:
		return declaration{}, err
	case run.Spec.Agent != "":
		return declarationOf(&agent), nil
	}
	return declaration{true, workflow.Spec.Input}, nil
}

// declarationOf returns what an Agent declares; nil: it is not known.
func declarationOf(a *v1alpha1.Agent) declaration {
	if a == nil {
		return declaration{}
	}
	return declaration{true, a.Spec.Input}
}

// check returns an error if the operator would refuse the input or the prompt of a Run.
func (d declaration) check(run *v1alpha1.Run) error {
	if !d.known {
		return nil
	}
	if run.Spec.Agent != "" {
		if d.input == nil && run.Spec.Prompt == "" && run.Spec.Input == nil {
			return usageErrorf("Agent %s needs a prompt: add -p TEXT, or write the text in quotes behind the Agent", run.Spec.Agent)
		}
		agent := task.Agent{}
		if d.input != nil {
			agent.InputSchema = inputs.Schema(d.input)
		}
		if p := snapshot.CheckRun(run.Spec, agent); p != nil {
			return usageErrorf("%s", p.Message)
		}
		return nil
	}
	given, of := json.RawMessage("{}"), inputs.Schema(d.input)
	if run.Spec.Input != nil {
		given = run.Spec.Input.Raw
	}
	if err := schema.Validate(of, schema.Fill(of, given)); err != nil {
		return usageErrorf("the input does not fit that of Workflow %s: %v", run.Spec.Workflow, err)
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
		object[p.key] = d.value(p.key, p.value)
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

// value returns a value of the command line as JSON. Where a text is declared, it is one, unless it
// is quoted: 3 is "3", and "3" is "3", too.
func (d declaration) value(key, value string) json.RawMessage {
	raw := json.RawMessage(value)
	isQuoted := strings.HasPrefix(strings.TrimSpace(value), `"`)
	if json.Valid(raw) && (isQuoted || !d.isText(key)) {
		return raw
	}
	text, _ := json.Marshal(value) // a string always encodes
	return text
}

// isText reports whether a value is declared as a text.
func (d declaration) isText(key string) bool {
	if !d.known {
		return false
	}
	var declared struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(inputs.Schema(d.input), &declared) // of another form: nothing is known
	return declared.Properties[key].Type == "string"
}
