package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Model says how to reach a language model: provider, model ID, credentials and prices.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mdl,categories=deckhand
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.modelID`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.fallbacks) || !(self.metadata.name in self.spec.fallbacks)",message="a Model is no fallback of itself: remove it from spec.fallbacks"
type Model struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how to reach the model.
	// +required
	Spec ModelSpec `json:"spec"`

	// status is what the operator found.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status ModelStatus `json:"status,omitempty"`
}

// ModelSpec is how to reach a language model. It may be changed at any time;
// a Run under way keeps what it started with.
//
// +kubebuilder:validation:XValidation:rule="!(self.provider in ['OpenAICompatible', 'AnthropicCompatible', 'Azure']) || has(self.endpoint)",messageExpression="'provider ' + self.provider + ' needs an endpoint: write endpoint: https://host/v1'"
// +kubebuilder:validation:XValidation:rule="!has(self.azure) || self.provider == 'Azure'",messageExpression="'azure is for provider Azure, and this is provider ' + self.provider + ': remove azure'"
// +kubebuilder:validation:XValidation:rule="!has(self.deepSeek) || self.provider == 'DeepSeek'",messageExpression="'deepSeek is for provider DeepSeek, and this is provider ' + self.provider + ': remove deepSeek'"
// +kubebuilder:validation:XValidation:rule="!has(self.kimi) || self.provider == 'Kimi'",messageExpression="'kimi is for provider Kimi, and this is provider ' + self.provider + ': remove kimi'"
// +kubebuilder:validation:XValidation:rule="!has(self.custom) || self.provider == 'Custom'",messageExpression="'custom is for provider Custom, and this is provider ' + self.provider + ': remove custom'"
// +kubebuilder:validation:XValidation:rule="has(self.custom) || self.provider != 'Custom'",message="provider Custom needs the name of a driver that the runner was built with: write custom: {driver: parrot}"
type ModelSpec struct {
	// provider is whose API is spoken: OpenAI, Anthropic, Azure, OpenRouter,
	// Ollama, DeepSeek or Kimi; OpenAICompatible and AnthropicCompatible for any
	// other server with such an API; Custom for a driver of your own, which the
	// runner of podTemplate.runnerImage was built with.
	// +kubebuilder:validation:Enum=OpenAI;OpenAICompatible;Anthropic;AnthropicCompatible;Azure;OpenRouter;Ollama;DeepSeek;Kimi;Custom
	// +required
	Provider Provider `json:"provider"`

	// modelID is the name of the model at the provider, for example gpt-5-mini. A
	// Run whose provider does not know it ends with reason Misconfigured and the
	// provider's message.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ModelID string `json:"modelID"`

	// azure holds what only provider Azure has.
	// +optional
	Azure *AzureModel `json:"azure,omitempty"`

	// deepSeek holds what only provider DeepSeek has.
	// +optional
	DeepSeek *DeepSeekModel `json:"deepSeek,omitempty"`

	// kimi holds what only provider Kimi has.
	// +optional
	Kimi *KimiModel `json:"kimi,omitempty"`

	// custom names the driver of provider Custom, which needs it.
	// +optional
	Custom *CustomModel `json:"custom,omitempty"`

	// endpoint is the base URL of the API. Default: the provider's own; Azure and the
	// compatible ones have none. An endpoint that does not answer like a model ends a Run
	// with reason Misconfigured.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/v1"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef names the key of a Secret that holds the API key. Default:
	// requests carry no API key. While the Secret or the key is missing, a Run
	// waits with reason SecretMissing.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`

	// contextWindow is the most tokens that a request and its answer may have.
	// Default: known for well-known models, else 128k.
	// +optional
	ContextWindow *Tokens `json:"contextWindow,omitempty"`

	// maxOutputTokens is the most tokens that the model can answer with; the rest
	// of the window is for the session. Default: known for well-known models. What
	// a request asks for is in inference.
	// +optional
	MaxOutputTokens *Tokens `json:"maxOutputTokens,omitempty"`

	// inference are settings that are sent with every request. What is absent is left
	// to the provider.
	// +optional
	Inference *Inference `json:"inference,omitempty"`

	// fallbacks name up to 8 other Models in the same namespace, which are used in order
	// while this Model is unavailable. Fallbacks of fallbacks are not followed. A missing
	// fallback makes the Model not Ready, reason FallbackNotFound; a cycle, reason
	// FallbackCycle.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Fallbacks []ObjectName `json:"fallbacks,omitempty"`

	// headers are sent with every request. Do not put a secret here: use
	// apiKeySecretRef.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header may be listed once, in upper or lower case"
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// prices let Deckhand compute the cost of a Run. Without them cost stays empty, and an
	// Agent that limits cost is not Ready, reason PricesMissing.
	// +optional
	Prices *Prices `json:"prices,omitempty"`
}

// Provider is whose API an endpoint speaks.
type Provider string

// The providers.
const (
	ProviderOpenAI              Provider = "OpenAI"
	ProviderOpenAICompatible    Provider = "OpenAICompatible"
	ProviderAnthropic           Provider = "Anthropic"
	ProviderAnthropicCompatible Provider = "AnthropicCompatible"
	ProviderAzure               Provider = "Azure"
	ProviderOpenRouter          Provider = "OpenRouter"
	ProviderOllama              Provider = "Ollama"
	ProviderDeepSeek            Provider = "DeepSeek"
	ProviderKimi                Provider = "Kimi"
	ProviderCustom              Provider = "Custom"
)

// AzureModel holds what only provider Azure has.
type AzureModel struct {
	// deployment is the name of the deployment. Default: modelID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Deployment string `json:"deployment,omitempty"`

	// apiVersion is the version of the API, for example 2024-10-21. Default: the v1
	// API, which has no version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
}

// DeepSeekModel holds what only provider DeepSeek has.
type DeepSeekModel struct {
	// format is the API that requests use, as DeepSeek offers both: OpenAI or
	// Anthropic. Default OpenAI.
	// +kubebuilder:validation:Enum=OpenAI;Anthropic
	// +optional
	Format Format `json:"format,omitempty"`
}

// KimiModel holds what only provider Kimi has.
type KimiModel struct {
	// format is the API that requests use, as Kimi offers both: OpenAI or Anthropic.
	// Default OpenAI.
	// +kubebuilder:validation:Enum=OpenAI;Anthropic
	// +optional
	Format Format `json:"format,omitempty"`
}

// CustomModel names a driver that the runner of podTemplate.runnerImage was built
// with.
type CustomModel struct {
	// driver is the name under which the runner registered the driver. If the runner
	// has no such driver, a Run ends with reason Misconfigured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Driver string `json:"driver"`
}

// Format is which of two APIs is spoken.
type Format string

// The formats.
const (
	FormatOpenAI    Format = "OpenAI"
	FormatAnthropic Format = "Anthropic"
)

// Inference is how a model answers: settings of a request.
type Inference struct {
	// maxOutputTokens bounds one answer.
	// +optional
	MaxOutputTokens *Tokens `json:"maxOutputTokens,omitempty"`

	// temperature is the sampling temperature, 0 to 2.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +optional
	Temperature *Decimal `json:"temperature,omitempty"`

	// topP is the nucleus sampling mass, 0 to 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	TopP *Decimal `json:"topP,omitempty"`

	// reasoning is how hard the model thinks: Off, Low, Medium or High.
	// +kubebuilder:validation:Enum=Off;Low;Medium;High
	// +optional
	Reasoning string `json:"reasoning,omitempty"`

	// extra is merged into the request body, over everything else; at most 4 KiB
	// of JSON, or the object is not Ready, reason InferenceInvalid.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Extra *runtime.RawExtension `json:"extra,omitempty"`
}

// Prices are per million tokens.
type Prices struct {
	// input is the price of input that was not read from a cache.
	// +required
	Input Money `json:"input"`
	// output is the price of output, reasoning included.
	// +required
	Output Money `json:"output"`
	// cacheRead is the price of input read from a cache. Default: input.
	// +optional
	CacheRead *Money `json:"cacheRead,omitempty"`
	// cacheWrite is the price of input written to a cache. Default: input.
	// +optional
	CacheWrite *Money `json:"cacheWrite,omitempty"`
}

// ModelStatus is what the operator found.
type ModelStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions holds Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ModelList is a list of Models.
//
// +kubebuilder:object:root=true
type ModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Model `json:"items"`
}
