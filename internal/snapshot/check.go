package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/schema"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const maxExtra = 4 << 10

// CheckModel finds what the schema of a Model cannot: a *NotReadyError, or nil.
func CheckModel(m *v1alpha1.Model) *NotReadyError {
	p := m.Spec.Parameters
	if p == nil || p.Extra == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(p.Extra.Raw, &object); err != nil {
		return &NotReadyError{v1alpha1.ReasonParametersInvalid, "spec.parameters.extra must be an object"}
	}
	if len(p.Extra.Raw) > maxExtra {
		return &NotReadyError{v1alpha1.ReasonParametersInvalid, fmt.Sprintf("spec.parameters.extra has %d bytes of JSON; at most %d are allowed", len(p.Extra.Raw), maxExtra)}
	}
	return nil
}

func check(agent *v1alpha1.Agent, m *v1alpha1.Model) error {
	if m == nil {
		return &NotReadyError{v1alpha1.ReasonModelNotFound, fmt.Sprintf("Model %q not found in namespace %s; create it, or name another in spec.model", agent.Spec.Model, agent.Namespace)}
	}
	if p := CheckModel(m); p != nil {
		return &NotReadyError{v1alpha1.ReasonModelNotReady, fmt.Sprintf("Model %q is not ready: %s", m.Name, p.Message)}
	}
	if agent.Spec.Limits.Cost != nil && m.Spec.Prices == nil {
		return &NotReadyError{v1alpha1.ReasonPricesMissing, fmt.Sprintf("limits.cost needs to know what Model %q costs; set its spec.prices, or remove the limit", m.Name)}
	}
	if o := agent.Spec.Output; o != nil {
		if err := schema.Check(o.Schema.Raw); err != nil {
			return &NotReadyError{v1alpha1.ReasonOutputSchemaInvalid, fmt.Sprintf("spec.output.schema: %v", err)}
		}
	}
	return nil
}

// forRunner is what the runner is told of the sources.
func forRunner(s Sources) (task.Snapshot, error) {
	m, err := modelForRunner(s.Model, s.ModelSpec)
	if err != nil {
		return task.Snapshot{}, err
	}
	a := task.Agent{
		Name:          s.Agent,
		Instructions:  s.AgentSpec.Instructions,
		ParallelTools: int(s.AgentSpec.ParallelTools),
		Events:        string(s.AgentSpec.Events),
	}
	for _, t := range s.AgentSpec.Tools {
		entry := task.Tool{Builtin: string(t.Builtin)}
		if t.Timeout != nil {
			d, err := t.Timeout.Value()
			if err != nil {
				return task.Snapshot{}, err
			}
			entry.TimeoutSeconds = int64(d.Seconds())
		}
		a.Tools = append(a.Tools, entry)
	}
	if s.AgentSpec.Output != nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, s.AgentSpec.Output.Schema.Raw); err != nil {
			return task.Snapshot{}, fmt.Errorf("compacting the output schema of Agent %s: %w", s.Agent, err)
		}
		a.OutputSchema = compact.Bytes()
	}
	return task.Snapshot{Version: task.Version, Agent: a, Models: []task.Model{m}}, nil
}

func modelForRunner(name string, spec v1alpha1.ModelSpec) (task.Model, error) {
	m := task.Model{Name: name, Provider: string(spec.Provider), Model: spec.Model, Endpoint: spec.Endpoint}
	if c := spec.Credentials; c != nil {
		m.Secret, m.Key = c.SecretName, c.Key
	}
	for _, h := range spec.Headers {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[h.Name] = h.Value
	}
	var err error
	if spec.ContextWindow != nil {
		if m.ContextWindow, err = spec.ContextWindow.Count(); err != nil {
			return m, err
		}
	}
	if m.Params, err = params(spec.Parameters); err != nil {
		return m, err
	}
	m.Prices, err = prices(spec.Prices)
	return m, err
}

func params(p *v1alpha1.ModelParameters) (step.Params, error) {
	var out step.Params
	if p == nil {
		return out, nil
	}
	out.Reasoning = step.Reasoning(p.Reasoning)
	if p.MaxOutputTokens != nil {
		n, err := p.MaxOutputTokens.Count()
		if err != nil {
			return out, err
		}
		out.MaxOutputTokens = n
	}
	for _, f := range []struct {
		from *v1alpha1.Decimal
		to   **float64
	}{{p.Temperature, &out.Temperature}, {p.TopP, &out.TopP}} {
		if f.from == nil {
			continue
		}
		v, err := json.Number(*f.from).Float64()
		if err != nil {
			return out, fmt.Errorf("reading %q as a number: %w", *f.from, err)
		}
		*f.to = &v
	}
	if p.Extra != nil {
		out.Extra = p.Extra.Raw
	}
	return out, nil
}

func prices(p *v1alpha1.Prices) (*task.Prices, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // no prices is a fact, not a fault
	}
	read, write := p.Input, p.Input
	if p.CacheRead != nil {
		read = *p.CacheRead
	}
	if p.CacheWrite != nil {
		write = *p.CacheWrite
	}
	var out task.Prices
	for _, f := range []struct {
		from v1alpha1.Money
		to   *int64
	}{{p.Input, &out.Input}, {p.Output, &out.Output}, {read, &out.CacheRead}, {write, &out.CacheWrite}} {
		micro, err := f.from.MicroUSD()
		if err != nil {
			return nil, err
		}
		*f.to = micro
	}
	return &out, nil
}
