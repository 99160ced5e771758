package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestModelsThatLikelyDoNotAnswerAreWarnedOf(t *testing.T) {
	key := &v1alpha1.SecretKeyRef{Name: "a", Key: "b"}
	for name, tc := range map[string]struct {
		spec v1alpha1.ModelSpec
		want string
	}{
		"OpenAI without a key":                    {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI}, "the endpoint of OpenAI refuses requests without an API key: set spec.apiKeySecretRef"},
		"Kimi without a key":                      {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderKimi}, "the endpoint of Kimi refuses"},
		"Bedrock without a key":                   {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderBedrock, Bedrock: &v1alpha1.BedrockModel{Region: "us-east-1"}}, "the endpoint of Bedrock refuses"},
		"Anthropic with a key":                    {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, APIKeySecretRef: key}, ""},
		"OpenAI behind a proxy that adds the key": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Endpoint: "http://proxy/v1"}, ""},
		"a credential in a header":                {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Headers: []v1alpha1.Header{{Name: "x-key", Value: "y"}}}, ""},
		"Ollama, which needs no key":              {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOllama}, ""},
		"a server at localhost":                   {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOllama, Endpoint: "http://localhost:11434/v1"}, "spec.endpoint: localhost is the pod of the Run"},
		"a server at a loopback address":          {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, Endpoint: "http://127.0.0.2/v1"}, "127.0.0.2 is the pod of the Run"},
		"a server at a loopback address of IPv6":  {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, Endpoint: "http://[::1]:80/v1"}, "::1 is the pod of the Run"},
		"a mapped loopback address":               {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, Endpoint: "http://[::ffff:127.0.0.1]/v1"}, "is the pod of the Run"},
		"a name that begins like localhost":       {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOllama, Endpoint: "http://localhost.example/v1"}, ""},
	} {
		if got := strings.Join(ModelWarnings(tc.spec), "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestLimitsThatContradictEachOtherAreWarnedOf(t *testing.T) {
	hour, day := v1alpha1.Duration("1h"), v1alpha1.Duration("24h")
	for name, tc := range map[string]struct {
		limits v1alpha1.Limits
		want   string
	}{
		"a deadline before the duration": {v1alpha1.Limits{Duration: &day, Deadline: &hour}, "spec.limits.duration: 24h is never reached, because spec.limits.deadline ends the Run after 1h: lower duration, or raise deadline"},
		"a deadline after the duration":  {v1alpha1.Limits{Duration: &hour, Deadline: &day}, ""},
		"the same":                       {v1alpha1.Limits{Duration: &hour, Deadline: &hour}, ""},
		"a deadline alone":               {v1alpha1.Limits{Deadline: &hour}, ""},
	} {
		if diff := cmp.Diff(tc.want, strings.Join(Warnings(&v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Limits: v1alpha1.AgentLimits{Limits: tc.limits}}}, Objects{}), "")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestLimitsOfANodeAboveThoseOfItsWorkflowAreWarnedOf(t *testing.T) {
	one, two := v1alpha1.Tokens("1M"), v1alpha1.Tokens("1500k")
	cheap, dear := v1alpha1.Money("1USD"), v1alpha1.Money("2USD")
	steps := int32(9)
	got := NodeLimitWarnings(v1alpha1.Limits{Tokens: &two, Cost: &dear, Steps: &steps}, v1alpha1.WorkflowLimits{Tokens: &one, Cost: &cheap})
	want := []string{
		"limits.tokens: 1500k is never reached, because spec.limits.tokens of the Workflow is 1M for all nodes: lower it, or raise that of the Workflow",
		"limits.cost: 2USD is never reached, because spec.limits.cost of the Workflow is 1USD for all nodes: lower it, or raise that of the Workflow",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := NodeLimitWarnings(v1alpha1.Limits{Tokens: &one}, v1alpha1.WorkflowLimits{Tokens: &one}); got != nil {
		t.Errorf("the same: %v", got)
	}
}
