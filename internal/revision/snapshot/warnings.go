package snapshot

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// keyedProviders are the providers whose own endpoints refuse a request without a key.
var keyedProviders = []v1alpha1.Provider{
	v1alpha1.ProviderOpenAI, v1alpha1.ProviderAnthropic, v1alpha1.ProviderBedrock, v1alpha1.ProviderOpenRouter, v1alpha1.ProviderDeepSeek, v1alpha1.ProviderKimi,
}

// ModelWarnings returns what is likely wrong in a Model that is Ready: that it has no key for an
// endpoint which requires one, that its endpoint is the pod of the Run or the address of one call, that
// its name is not that of a known model or that of another region, or that the provider documents another
// limit or level.
func ModelWarnings(spec v1alpha1.ModelSpec) []string {
	var out []string
	// A header may have another credential, and a proxy with another endpoint may add the key.
	if slices.Contains(keyedProviders, spec.Provider) && spec.Endpoint == "" && spec.APIKeySecretRef == nil && len(spec.Headers) == 0 {
		out = append(out, fmt.Sprintf("spec.provider: the endpoint of %s refuses requests without an API key: set spec.apiKeySecretRef", spec.Provider))
	}
	if host := loopbackHost(spec.Endpoint); host != "" {
		out = append(out, fmt.Sprintf("spec.endpoint: %s is the pod of the Run, in which no model is served: write the name of the Service, for example http://ollama:11434/v1", host))
	}
	return slices.Concat(out, endpointWarnings(spec), modelIDWarnings(spec), bedrockWarnings(spec), factWarnings(spec))
}

// loopbackHost returns the host of a URL if it is the machine itself, otherwise nothing.
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

// shown is a value as a manifest has it; empty: it has none.
func shown[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// leastMemory is the least limit of memory for a runner: a long Run takes half of it
// (docs/performance.md), and the container runtime needs some to start a container.
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
