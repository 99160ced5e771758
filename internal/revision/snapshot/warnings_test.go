package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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

func TestAddressesAndNamesOfModelsThatAreLikelyWrongAreWarnedOf(t *testing.T) {
	compatible := v1alpha1.ProviderOpenAICompatible
	for name, tc := range map[string]struct {
		provider v1alpha1.Provider
		endpoint string
		modelID  string
		want     string
	}{
		"the base of OpenAI":           {v1alpha1.ProviderOpenAI, "https://api.openai.com/v1/", "gpt-5-mini", ""},
		"OpenAI without its path":      {v1alpha1.ProviderOpenAI, "https://api.openai.com", "gpt-5-mini", "spec.endpoint: https://api.openai.com is not where this provider has its API: write https://api.openai.com/v1"},
		"Mistral without its path":     {compatible, "https://api.mistral.ai/", "mistral-large-latest", "write https://api.mistral.ai/v1"},
		"Gemini's own API":             {compatible, "https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-pro", "write https://generativelanguage.googleapis.com/v1beta/openai"},
		"the address of a call":        {compatible, "https://llm.example.com/v1/chat/completions", "x", "spec.endpoint: https://llm.example.com/v1/chat/completions is the address of one call, whose path is added to the endpoint: write https://llm.example.com/v1"},
		"a call of OpenAI":             {v1alpha1.ProviderOpenAI, "https://api.openai.com/v1/responses", "gpt-5-mini", "write https://api.openai.com/v1"},
		"a deployment of Azure":        {v1alpha1.ProviderAzure, "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", "gpt-5-mini", "write https://x.openai.azure.com"},
		"a call of Anthropic":          {v1alpha1.ProviderAnthropicCompatible, "https://llm.example.com/v1/messages", "x", "write https://llm.example.com/v1"},
		"Anthropic with a version":     {v1alpha1.ProviderAnthropic, "https://api.anthropic.com/v1", "claude-sonnet-4-5", ""},
		"a driver's own address":       {v1alpha1.ProviderCustom, "https://llm.example.com/v1/messages", "x", ""},
		"a typo at OpenAI":             {v1alpha1.ProviderOpenAI, "", "gpt-5-mni", "spec.modelID: gpt-5-mni is not in the list of models of 20"},
		"a space":                      {v1alpha1.ProviderOpenAI, "", "gpt-5-mini ", "did you mean gpt-5-mini?"},
		"a dated version":              {v1alpha1.ProviderOpenAI, "", "gpt-5-mini-2025-08-07", ""},
		"nothing like it":              {v1alpha1.ProviderOpenAI, "", "my-own-model", ""},
		"OpenAI's model at Anthropic":  {v1alpha1.ProviderAnthropic, "", "gpt-5.9", "spec.modelID: gpt-5.9 is a model of OpenAI, and the endpoint of this Model is of Anthropic: correct modelID, provider or endpoint"},
		"Anthropic's model at OpenAI":  {v1alpha1.ProviderOpenAI, "", "claude-sonnet-5", "claude-sonnet-5 is a model of Anthropic"},
		"Claude's name at DeepSeek":    {v1alpha1.ProviderAnthropicCompatible, "https://api.deepseek.com/anthropic", "claude-sonnet-5", ""},
		"a gateway to all models":      {v1alpha1.ProviderAnthropic, "https://llm.example.com", "gpt-5", ""},
		"a router":                     {v1alpha1.ProviderOpenRouter, "", "anthropic/claude-sonnet-5", ""},
		"tuned from a model":           {v1alpha1.ProviderOpenAI, "", "ft:gpt-4o-mini-2024-07-18:org::id", ""},
		"a name that another gives it": {compatible, "https://llm.example.com/v1", "gpt-5-mni", ""},
	} {
		spec := v1alpha1.ModelSpec{Provider: tc.provider, Endpoint: tc.endpoint, ModelID: tc.modelID, APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "a", Key: "b"}}
		if got := strings.Join(ModelWarnings(spec), "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
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

func TestARunnerWithTooLittleMemoryIsWarnedOf(t *testing.T) {
	limits := func(r corev1.ResourceList) *v1alpha1.PodTemplate {
		return &v1alpha1.PodTemplate{Resources: &corev1.ResourceRequirements{Limits: r}}
	}
	memory := func(q string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
	}
	for name, tc := range map[string]struct {
		template *v1alpha1.PodTemplate
		want     []string
	}{
		"no template":     {},
		"no resources":    {template: &v1alpha1.PodTemplate{}},
		"no limit":        {template: limits(nil)},
		"enough":          {template: limits(memory("64Mi"))},
		"too little":      {limits(memory("4Mi")), []string{"spec.podTemplate.resources: the limit of memory 4Mi is less than a runner needs: write 64Mi or more"}},
		"bytes for MiB":   {limits(memory("256")), []string{"spec.podTemplate.resources: the limit of memory 256 is less than a runner needs: write 64Mi or more"}},
		"a limit of CPUs": {template: limits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})},
	} {
		if diff := cmp.Diff(tc.want, Warnings(&v1alpha1.Agent{Spec: v1alpha1.AgentSpec{PodTemplate: tc.template}}, Objects{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
