package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
)

// factWarnings returns which settings of a Model contradict what its provider documents of it. The
// table may be older than the model, so they do not make the Model not Ready.
func factWarnings(spec v1alpha1.ModelSpec) []string {
	out := answerWarnings("spec.maxOutputTokens", spec.MaxOutputTokens, spec, "")
	if spec.Inference != nil {
		out = append(out, answerWarnings("spec.inference.maxOutputTokens", spec.Inference.MaxOutputTokens, spec, "")...)
	}
	row, known := modelfacts.Of(listprices.Sellers(spec), spec.ModelID)
	if !known {
		return out
	}
	f := facts{row, spec.ModelID}
	if f.Instead != "" {
		out = append(out, fmt.Sprintf("spec.modelID: its provider no longer serves %s %s: write %s", f.name, f.source(), f.Instead))
	}
	return append(out, f.inference(spec.Inference)...)
}

// agentFactWarnings returns which settings of an Agent contradict what is documented of its Models.
func agentFactWarnings(a *v1alpha1.Agent, o Objects) []string {
	var out []string
	for _, name := range chain(a.Spec.Model, o) {
		m := o.Models[name]
		if m == nil || a.Spec.Inference == nil {
			continue
		}
		of := " of Model " + name
		out = append(out, answerWarnings("spec.inference.maxOutputTokens", a.Spec.Inference.MaxOutputTokens, m.Spec, of)...)
		if row, known := modelfacts.Of(listprices.Sellers(m.Spec), m.Spec.ModelID); known {
			out = append(out, facts{row, m.Spec.ModelID + of}.inference(a.Spec.Inference)...)
		}
	}
	return out
}

// facts are what is documented of a model, by the name that messages have for it.
type facts struct {
	modelfacts.Row

	name string
}

// source says where the facts are from.
func (f facts) source() string {
	return fmt.Sprintf("(%s, read %s)", strings.Join(f.Sources, ", "), f.Date)
}

// answerWarnings returns that an answer of so many tokens is longer than what the Model says or its
// provider documents, or that it leaves no room for a request. The name of a Model is added with of.
func answerWarnings(field string, limit *v1alpha1.Tokens, m v1alpha1.ModelSpec, of string) []string {
	most, own, window := tokens(limit), tokens(m.MaxOutputTokens), tokens(m.ContextWindow)
	if window == 0 {
		window, _ = modelfacts.Sizes(m.ModelID)
	}
	row, _ := modelfacts.Of(listprices.Sellers(m), m.ModelID)
	f := facts{row, m.ModelID + of}
	switch {
	case f.MaxOutput > 0 && most > f.MaxOutput:
		return []string{fmt.Sprintf("%s: %d is more than the %d tokens that %s returns at most %s: write %d, or remove it", field, most, f.MaxOutput, f.name, f.source(), f.MaxOutput)}
	case own > 0 && most > own:
		return []string{fmt.Sprintf("%s: %d is more than maxOutputTokens%s, %d: write %d, or remove it", field, most, cmp.Or(of, " of the Model"), own, own)}
	case window > 0 && most >= window:
		return []string{fmt.Sprintf("%s: %d leaves no room for a request in the context window of %s, which has %d tokens: write less than that, or remove it", field, most, f.name, window)}
	}
	return nil
}

func (f facts) inference(i *v1alpha1.Inference) []string {
	if i == nil {
		return nil
	}
	var out []string
	if i.Reasoning != "" && f.Levels != nil && !slices.Contains(f.Levels, i.Reasoning) {
		out = append(out, fmt.Sprintf("spec.inference.reasoning: %s is no level of %s %s: %s", i.Reasoning, f.name, f.source(), levelAdvice(f.Levels)))
	}
	for _, p := range []struct {
		field, parameter string
		isSet            bool
	}{{"temperature", "temperature", i.Temperature != nil}, {"topP", "top_p", i.TopP != nil}} {
		if p.isSet && slices.Contains(f.Refused, p.parameter) {
			out = append(out, fmt.Sprintf("spec.inference.%s: %s refuses it %s: remove it", p.field, f.name, f.source()))
		}
	}
	return append(out, f.extra(i)...)
}

// extra returns which fields of inference.extra the provider refuses.
func (f facts) extra(i *v1alpha1.Inference) []string {
	var fields map[string]json.RawMessage
	if i.Extra == nil || json.Unmarshal(i.Extra.Raw, &fields) != nil {
		return nil // an error is that of checkInference
	}
	var out []string
	for _, p := range f.Refused {
		if _, has := fields[p]; has {
			out = append(out, fmt.Sprintf("spec.inference.extra.%s: %s refuses it %s: remove it", p, f.name, f.source()))
		}
	}
	return out
}

// levelAdvice says which level to write.
func levelAdvice(levels []string) string {
	if len(levels) == 0 {
		return "remove it"
	}
	quoted := slices.Clone(levels)
	for i, l := range quoted {
		if l == "Off" {
			quoted[i] = `"Off"` // YAML reads it as false without quotes
		}
	}
	return fmt.Sprintf("write %s, or remove it", strings.Join(quoted, " or "))
}
