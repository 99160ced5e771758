package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Model is a language model: provider, model ID, API key and prices. Agents in the same
// namespace refer to it by name.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Model
//	metadata: {name: claude}
//	spec:
//	  provider: Anthropic
//	  modelID: claude-sonnet-5
//	  apiKeySecretRef: {name: anthropic, key: api-key}
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mdl,categories=deckhand
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.modelID`
// +kubebuilder:printcolumn:name="Prices",type=string,JSONPath=`.status.prices`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.fallbacks) || !(self.metadata.name in self.spec.fallbacks)",message="spec.fallbacks must not contain the Model itself: remove it"
type Model struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how requests reach the model. It can be changed at any time; an active Run keeps
	// the settings with which it started.
	// +required
	Spec ModelSpec `json:"spec"`

	// status is the observed state of the Model. Only a Run finds out whether the endpoint and
	// the API key work.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status ModelStatus `json:"status,omitempty"`
}

// ModelSpec is how requests reach a language model. It can be changed at any time; an active
// Run keeps the settings with which it started.
//
// +kubebuilder:validation:XValidation:rule="!(self.provider in ['OpenAICompatible', 'AnthropicCompatible', 'Azure']) || has(self.endpoint)",messageExpression="'endpoint is required for provider ' + self.provider + ': write endpoint: ' + (self.provider == 'Azure' ? 'https://name.openai.azure.com' : 'https://host/v1')"
// +kubebuilder:validation:XValidation:rule="!has(self.azure) || self.provider == 'Azure'",messageExpression="'azure is only allowed for provider Azure, and not for ' + self.provider + ': remove azure'"
// +kubebuilder:validation:XValidation:rule="!has(self.bedrock) || self.provider == 'Bedrock'",messageExpression="'bedrock is only allowed for provider Bedrock, and not for ' + self.provider + ': remove bedrock'"
// +kubebuilder:validation:XValidation:rule="self.provider != 'Bedrock' || has(self.bedrock) || has(self.endpoint)",message="bedrock is required for provider Bedrock: write bedrock: {region: us-east-1}, with your region, or write endpoint"
// +kubebuilder:validation:XValidation:rule="!has(self.api) || self.provider != 'Custom'",message="api is not allowed for provider Custom, whose driver decides: remove api"
// +kubebuilder:validation:XValidation:rule="!has(self.api) || !(self.provider in ['OpenAI', 'OpenAICompatible', 'Azure']) || self.api != 'Messages'",messageExpression="'api of provider ' + self.provider + ' must be Responses or ChatCompletions'"
// +kubebuilder:validation:XValidation:rule="!has(self.api) || !(self.provider in ['OpenRouter', 'Ollama']) || self.api == 'ChatCompletions'",messageExpression="'api of provider ' + self.provider + ' must be ChatCompletions: write ChatCompletions, or remove api'"
// +kubebuilder:validation:XValidation:rule="!has(self.api) || !(self.provider in ['Anthropic', 'AnthropicCompatible', 'Bedrock']) || self.api == 'Messages'",messageExpression="'api of provider ' + self.provider + ' must be Messages: write Messages, or remove api'"
// +kubebuilder:validation:XValidation:rule="!has(self.api) || !(self.provider in ['DeepSeek', 'Kimi']) || self.api != 'Responses'",messageExpression="'api of provider ' + self.provider + ' must be ChatCompletions or Messages'"
// +kubebuilder:validation:XValidation:rule="!has(self.custom) || self.provider == 'Custom'",messageExpression="'custom is only allowed for provider Custom, and not for ' + self.provider + ': remove custom'"
// +kubebuilder:validation:XValidation:rule="has(self.custom) || self.provider != 'Custom'",message="custom is required for provider Custom: write custom: {driver: parrot}, with the name of a driver of the custom runner"
type ModelSpec struct {
	// provider is the provider, which determines the API and the default endpoint.
	// OpenAICompatible and AnthropicCompatible are for any other server with one of these APIs.
	// Bedrock is for Claude on Amazon Bedrock, with an Amazon Bedrock API key.
	// Custom is for a driver of a custom runner (podTemplate.runnerImage of the Agent).
	// +kubebuilder:validation:Enum=OpenAI;OpenAICompatible;Anthropic;AnthropicCompatible;Azure;Bedrock;OpenRouter;Ollama;DeepSeek;Kimi;Custom
	// +required
	Provider Provider `json:"provider"`

	// modelID is the provider's name of the model, for example gpt-5-mini; for Bedrock the ID or
	// ARN of an inference profile or a model, for example
	// eu.anthropic.claude-haiku-4-5-20251001-v1:0. If the provider does not know it, a Run ends
	// with reason Misconfigured and the provider's message.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +required
	ModelID string `json:"modelID"`

	// api is the API of the provider that requests use: Responses (OpenAI, OpenAICompatible,
	// Azure), ChatCompletions (these, OpenRouter, Ollama, DeepSeek and Kimi) or Messages
	// (Anthropic, AnthropicCompatible, Bedrock, DeepSeek and Kimi). Default: Messages for
	// Anthropic, AnthropicCompatible and Bedrock; Responses for OpenAI at its own endpoint and
	// for models of OpenAI that reason at Azure, unless inference.extra is set, or the endpoint
	// or azure.apiVersion names chat completions; otherwise ChatCompletions. If the endpoint does not have the API,
	// a Run ends with reason Misconfigured.
	// +kubebuilder:validation:Enum=Responses;ChatCompletions;Messages
	// +optional
	API ModelAPI `json:"api,omitempty"`

	// azure has settings for provider Azure.
	// +optional
	Azure *AzureModel `json:"azure,omitempty"`

	// bedrock has settings for provider Bedrock, for which it or endpoint is required.
	// +optional
	Bedrock *BedrockModel `json:"bedrock,omitempty"`

	// deepSeek was replaced by api. It is refused, and a Model that has it from before is not
	// Ready, reason Invalid.
	// +optional
	DeepSeek *ReplacedFormat `json:"deepSeek,omitempty"`

	// kimi was replaced by api. It is refused, and a Model that has it from before is not
	// Ready, reason Invalid.
	// +optional
	Kimi *ReplacedFormat `json:"kimi,omitempty"`

	// custom has settings for provider Custom, for which it is required.
	// +optional
	Custom *CustomModel `json:"custom,omitempty"`

	// endpoint is the base URL of the API. Default: the provider's own, of Bedrock that of
	// bedrock.region; required for Azure, OpenAICompatible and AnthropicCompatible. If the endpoint does not answer like a model, a
	// Run ends with reason Misconfigured.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/v1"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the key into a Secret that apiKeySecretRef names"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef is the key of a Secret, in the same namespace, with the API key. While
	// the Secret or the key is missing, a Run waits with reason SecretMissing. Default:
	// requests have no API key.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`

	// contextWindow is the maximum number of tokens of a request and its answer together. A
	// session that grows beyond it is compacted. Default: known for well-known models,
	// otherwise 128k.
	// +optional
	ContextWindow *Tokens `json:"contextWindow,omitempty"`

	// maxOutputTokens is the maximum number of tokens that the model can return in one answer.
	// The rest of contextWindow is available to the session. Default: known for well-known
	// models. To request shorter answers, set inference.maxOutputTokens.
	// +optional
	MaxOutputTokens *Tokens `json:"maxOutputTokens,omitempty"`

	// inference are sampling and reasoning settings of every request. A setting that is not set
	// is not sent, so that the provider's default applies. spec.inference of an Agent overrides
	// them.
	// +optional
	Inference *Inference `json:"inference,omitempty"`

	// timeouts bound the waits for an answer. A request that reaches one is sent once more; then
	// the fallbacks are asked, and without one the attempt ends with reason ModelUnavailable
	// and the name of the field. Default: see each field.
	// +optional
	Timeouts *ModelTimeouts `json:"timeouts,omitempty"`

	// requestRepair decides about requests that the provider refuses, or would refuse, for a
	// cause that a change certainly removes. Enabled: the request is sent once more without a
	// field that Deckhand added, with the field or the size of maxOutputTokens that the provider
	// asks for, or with the reasoning of earlier answers; and schemas of tools are sent, and
	// arguments validated, in a form that all providers accept. Disabled: requests are sent as
	// they are, and a refused one ends the Run with reason Misconfigured. Each change is an
	// event in the log, and counts in status.progress.counts.repairs of the Run. Default:
	// Enabled.
	// +kubebuilder:validation:Enum=Enabled;Disabled
	// +kubebuilder:default=Enabled
	// +optional
	RequestRepair RequestRepair `json:"requestRepair,omitempty"`

	// fallbacks are names of up to 8 other Models in the same namespace, which are tried in
	// order while this Model is unavailable. Fallbacks of a fallback are not used. A missing
	// fallback makes the Model not Ready, reason NotFound; a cycle, reason
	// Cycle. Default: none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Fallbacks []ObjectName `json:"fallbacks,omitempty"`

	// headers are HTTP headers of every request, at most 16. Values can be read by every user
	// who may read the Model: for a secret use apiKeySecretRef.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header may be listed once, whether in upper or lower case: remove all but one of them"
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// prices let Deckhand compute the cost of a Run. Default: the list prices of well-known
	// models at the endpoints of their providers; status.prices says which apply. If
	// they are unknown, the cost is empty, and an Agent with limits.cost is not Ready, reason
	// PricesMissing.
	// +optional
	Prices *Prices `json:"prices,omitempty"`
}

// RequestRepair decides about requests that a provider refuses.
type RequestRepair string

// The values of requestRepair.
const (
	RequestRepairEnabled  RequestRepair = "Enabled"
	RequestRepairDisabled RequestRepair = "Disabled"
)

// Provider is the provider of a model.
type Provider string

// The providers.
const (
	ProviderOpenAI              Provider = "OpenAI"
	ProviderOpenAICompatible    Provider = "OpenAICompatible"
	ProviderAnthropic           Provider = "Anthropic"
	ProviderAnthropicCompatible Provider = "AnthropicCompatible"
	ProviderAzure               Provider = "Azure"
	ProviderBedrock             Provider = "Bedrock"
	ProviderOpenRouter          Provider = "OpenRouter"
	ProviderOllama              Provider = "Ollama"
	ProviderDeepSeek            Provider = "DeepSeek"
	ProviderKimi                Provider = "Kimi"
	ProviderCustom              Provider = "Custom"
)

// AzureModel has settings for provider Azure.
type AzureModel struct {
	// deployment is the name of the deployment. Default: modelID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Deployment string `json:"deployment,omitempty"`

	// apiVersion is the version of the API, for example 2024-10-21. Default: the v1 API, which
	// has no version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
}

// BedrockModel has settings for provider Bedrock.
type BedrockModel struct {
	// region is the region of AWS whose endpoint is asked, for example eu-central-1. An endpoint
	// of the Model overrides it. If the region does not have the model, or the key is for
	// another one, a Run ends with reason Misconfigured and the provider's message.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+(-[a-z]+)+-[0-9]+$')",message="must be the code of a region of AWS, for example eu-central-1 for Frankfurt"
	// +required
	Region string `json:"region"`
}

// BaseURL returns the endpoint of a Model, also if its provider has one for each region. Empty: the
// default of the provider.
func (s *ModelSpec) BaseURL() string {
	if s.Endpoint == "" && s.Bedrock != nil {
		return "https://bedrock-runtime." + s.Bedrock.Region + ".amazonaws.com"
	}
	return s.Endpoint
}

// ReplacedFormat is what api replaced.
//
// +kubebuilder:validation:XValidation:rule="false",messageExpression="'was replaced by api: remove it, and write api: ' + (has(self.format) && self.format == 'Anthropic' ? 'Messages' : 'ChatCompletions')"
type ReplacedFormat struct {
	// format was OpenAI, for api: ChatCompletions, or Anthropic, for api: Messages.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Format string `json:"format,omitempty"`
}

// CustomModel has settings for provider Custom.
type CustomModel struct {
	// driver is the name of a driver that is built into the custom runner
	// (podTemplate.runnerImage of the Agent). If the runner does not have it, a Run ends with
	// reason Misconfigured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Driver string `json:"driver"`
}

// ModelAPI is an API of providers.
type ModelAPI string

// The APIs of providers.
const (
	APIResponses       ModelAPI = "Responses"
	APIChatCompletions ModelAPI = "ChatCompletions"
	APIMessages        ModelAPI = "Messages"
)

// ModelTimeouts bound the waits for one answer of a model. A network path that is dead is found
// within 20s, whatever they are.
//
// +kubebuilder:validation:XValidation:rule="!has(self.firstByte) || !has(self.total) || !self.firstByte.matches('^([0-9]{1,7}(h|m|s))+$') || !self.total.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self.firstByte) <= duration(self.total)",message="total must not be shorter than firstByte: raise total, or remove it"
type ModelTimeouts struct {
	// firstByte is the longest time without a byte before the answer begins, 1s to 24h: the
	// model reads the prompt, or reasons without showing it. Each keep-alive of the server
	// restarts it. Default: 15m for Ollama, OpenAICompatible and AnthropicCompatible, which may
	// be slow hardware; 2m for other providers. For Custom the driver decides.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="must be at least 1s and at most 24h: write 30m, or remove it"
	// +optional
	FirstByte *Duration `json:"firstByte,omitempty"`

	// betweenBytes is the longest time without a byte after the answer began, 1s to 24h. A
	// keep-alive of the server is a byte. Default: 15m or 2m, as for firstByte.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="must be at least 1s and at most 24h: write 5m, or remove it"
	// +optional
	BetweenBytes *Duration `json:"betweenBytes,omitempty"`

	// total is the longest time from the request to the end of the answer, 1s to 24h, whatever
	// comes in between. Default: firstByte and 1h more.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="must be at least 1s and at most 24h: write 3h, or remove it"
	// +optional
	Total *Duration `json:"total,omitempty"`
}

// Inference are sampling and reasoning settings of a request to a model.
type Inference struct {
	// maxOutputTokens is the maximum number of tokens of one answer. Default: not sent, except
	// for APIs that require it.
	// +optional
	MaxOutputTokens *Tokens `json:"maxOutputTokens,omitempty"`

	// temperature is the sampling temperature, 0 to 2. Default: the provider's. It is not sent
	// to models that refuse it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +optional
	Temperature *Decimal `json:"temperature,omitempty"`

	// topP is the probability mass of nucleus sampling, 0 to 1. Default: the provider's. It is
	// not sent to models that refuse it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	TopP *Decimal `json:"topP,omitempty"`

	// reasoning is how much the model reasons before it answers: "Off", Low, Medium or High.
	// Off needs quotes in YAML. Default: the provider's.
	// +kubebuilder:validation:Enum=Off;Low;Medium;High
	// +optional
	Reasoning string `json:"reasoning,omitempty"`

	// extra is a JSON object of at most 4 KiB that is merged into the body of the request. It
	// overrides every other setting. If it is not an object or too large, the Agent or Model is
	// not Ready, reason Invalid.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Extra *runtime.RawExtension `json:"extra,omitempty"`
}

// Prices are per million tokens.
type Prices struct {
	// input is the price of a million input tokens that were not read from a prompt cache, for
	// example 3USD.
	// +required
	Input Money `json:"input"`
	// output is the price of a million output tokens, reasoning included.
	// +required
	Output Money `json:"output"`
	// cacheRead is the price of a million input tokens that were read from a prompt cache.
	// Default: input.
	// +optional
	CacheRead *Money `json:"cacheRead,omitempty"`
	// cacheWrite is the price of a million input tokens that were written to a prompt cache.
	// Default: input.
	// +optional
	CacheWrite *Money `json:"cacheWrite,omitempty"`
	// tiers are the prices of long requests, at most 4, in ascending order of above. The last
	// tier whose above is less than the input tokens of a request, those of the prompt cache
	// included, holds for the whole request and its answer. Tiers out of order make the Model
	// not Ready, reason Invalid. Default: the prices above hold for every request.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Tiers []PriceTier `json:"tiers,omitempty"`
}

// PriceTier is the prices of requests with more than a number of input tokens.
type PriceTier struct {
	// above is the number of input tokens that a request must exceed, for example 200k.
	// +required
	Above Tokens `json:"above"`
	// input is the price of a million input tokens that were not read from a prompt cache.
	// +required
	Input Money `json:"input"`
	// output is the price of a million output tokens, reasoning included.
	// +required
	Output Money `json:"output"`
	// cacheRead is the price of a million input tokens that were read from a prompt cache.
	// Default: input of the tier.
	// +optional
	CacheRead *Money `json:"cacheRead,omitempty"`
	// cacheWrite is the price of a million input tokens that were written to a prompt cache.
	// Default: input of the tier.
	// +optional
	CacheWrite *Money `json:"cacheWrite,omitempty"`
}

// ModelStatus is the observed state of a Model.
type ModelStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready: the spec is valid, and every Model in fallbacks exists. Reachable
	// says whether the model answers, from what Runs of the namespace report; it does not change
	// Ready. For GitOps tools there are also Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// prices says where the prices of the Model come from: Model (spec.prices), Catalog (list
	// prices that Deckhand knows, or those of the installation, see priceSource) or Unknown.
	// +kubebuilder:validation:Enum=Model;Catalog;Unknown
	// +optional
	Prices PriceSource `json:"prices,omitempty"`
	// priceSource is the list of prices that prices: Catalog comes from. Absent: the Model has
	// its own prices, or none are known.
	// +optional
	PriceSource *PriceList `json:"priceSource,omitempty"`
}

// PriceList is a list of prices and its date.
type PriceList struct {
	// source is the list: the name and version of a package, the address of a provider's page, or the
	// ConfigMap of the chart value catalog.configMapRef as ConfigMap NAMESPACE/NAME.
	// +kubebuilder:validation:MaxLength=300
	// +required
	Source string `json:"source"`
	// date is the day on which the list was published or the page was read, for example 2026-09-23.
	// Absent: unknown.
	// +kubebuilder:validation:MaxLength=10
	// +optional
	Date string `json:"date,omitempty"`
}

// PriceSource says where prices come from.
type PriceSource string

// The sources of prices.
const (
	PricesOfModel   PriceSource = "Model"
	PricesOfCatalog PriceSource = "Catalog"
	PricesUnknown   PriceSource = "Unknown"
)

// ModelList is a list of Models.
//
// +kubebuilder:object:root=true
type ModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Model `json:"items"`
}
