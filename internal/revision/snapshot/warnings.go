package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
)

// keyedProviders are the providers whose own endpoints refuse a request without a key.
var keyedProviders = []v1alpha1.Provider{
	v1alpha1.ProviderOpenAI, v1alpha1.ProviderAnthropic, v1alpha1.ProviderBedrock, v1alpha1.ProviderOpenRouter, v1alpha1.ProviderDeepSeek, v1alpha1.ProviderKimi,
}

// ModelWarnings returns likely mistakes in a Model that is Ready: a missing key for an endpoint that requires one, an
// endpoint in the pod of the Run or at one operation, or the name of an unknown model or of another region. It also
// finds limits and levels that differ from the documented ones.
func ModelWarnings(spec v1alpha1.ModelSpec) []string {
	var out []string
	// A header may have another credential, and a proxy with another endpoint may add the key.
	if slices.Contains(keyedProviders, spec.Provider) && spec.Endpoint == "" && spec.APIKeySecretRef == nil && len(spec.Headers) == 0 {
		out = append(out, fmt.Sprintf("spec.provider: the endpoint of %s refuses requests without an API key: set spec.apiKeySecretRef", spec.Provider))
	}
	if host := loopbackHost(spec.Endpoint); host != "" {
		out = append(out, fmt.Sprintf("spec.endpoint: %s is the pod of the Run, in which no model is served: write the name of the Service, for example http://ollama:11434/v1", host))
	}
	return slices.Concat(out, endpointWarnings(spec), ModelIDWarnings(spec), bedrockWarnings(spec), factWarnings(spec))
}

// loopbackHost returns the host of a URL if it is the machine itself, or an empty text.
func loopbackHost(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return host
	}
	if addr, err := netip.ParseAddr(host); err == nil && (addr.Unmap().IsLoopback() || addr.IsUnspecified()) {
		return host
	}
	return ""
}

// LimitWarnings returns which limits of one object contradict each other. A limit that others set is not
// counted: an Agent may have the longer duration on purpose.
func LimitWarnings(field string, l v1alpha1.Limits) []string {
	duration, deadline := seconds(l.Duration), seconds(l.Deadline)
	if duration == 0 || deadline == 0 || deadline >= duration {
		return nil
	}
	return []string{fmt.Sprintf("%s.duration: %s is never reached, because %s.deadline ends the Run after %s: lower duration, or raise deadline", field, *l.Duration, field, *l.Deadline)}
}

// NodeLimitWarnings returns which limits of a node are above those of its Workflow, which bound all
// nodes together.
func NodeLimitWarnings(node v1alpha1.Limits, whole v1alpha1.WorkflowLimits) []string {
	var out []string
	for _, l := range []struct {
		name       string
		node, most int64
		text, than string
	}{
		{"steps", number(node.Steps), number(whole.Steps), shown(node.Steps), shown(whole.Steps)},
		{"tokens", tokens(node.Tokens), tokens(whole.Tokens), shown(node.Tokens), shown(whole.Tokens)},
		{"cost", microUSD(node.Cost), microUSD(whole.Cost), shown(node.Cost), shown(whole.Cost)},
		{"duration", seconds(node.Duration), seconds(whole.Duration), shown(node.Duration), shown(whole.Duration)},
		{"deadline", seconds(node.Deadline), seconds(whole.Deadline), shown(node.Deadline), shown(whole.Deadline)},
	} {
		if l.most > 0 && l.node > l.most {
			out = append(out, fmt.Sprintf("limits.%s: %s is never reached, because spec.limits.%s of the Workflow is %s for all nodes: lower it, or raise that of the Workflow", l.name, l.text, l.name, l.than))
		}
	}
	return out
}

// shown returns a value in the form of a manifest, or an empty text.
func shown[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// leastMemory is the smallest sensible memory limit of a runner: a long Run takes half of it (docs/performance.md), and
// the container runtime needs some to start a container.
var leastMemory = resource.MustParse("64Mi")

// memoryWarnings returns that the runner of an Agent has less memory than it needs.
func memoryWarnings(t *v1alpha1.PodTemplate) []string {
	if t == nil || t.Resources == nil {
		return nil
	}
	limit, has := t.Resources.Limits[corev1.ResourceMemory]
	if !has || limit.Cmp(leastMemory) >= 0 {
		return nil
	}
	return []string{fmt.Sprintf("spec.podTemplate.resources: the limit of memory %s is less than a runner needs: write %s or more", limit.String(), leastMemory.String())}
}

// factWarnings returns which settings of a Model contradict the documentation of its provider. The table may be older
// than the model, so they do not make the Model not Ready.
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

// agentFactWarnings returns which settings of an Agent contradict the documentation of its Models.
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

// facts are the documented facts of a model, with its name for messages.
type facts struct {
	modelfacts.Row

	name string
}

// source names the source of the facts.
func (f facts) source() string {
	return fmt.Sprintf("(%s, read %s)", strings.Join(f.Sources, ", "), f.Date)
}

// answerWarnings warns that the maximum number of tokens of an answer is larger than the Model or its provider allows,
// or leaves no room for a request. The text of, which may be empty, names the Model.
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

// extra returns a warning for each field of inference.extra that the provider refuses.
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

// levelAdvice returns which level to write.
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
