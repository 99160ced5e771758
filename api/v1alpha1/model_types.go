package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Model says how to reach a language model.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mdl,categories=deckhand
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.model`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
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
// +kubebuilder:validation:XValidation:rule="self.provider != 'OpenAICompatible' || has(self.endpoint)",message="provider OpenAICompatible needs an endpoint: write endpoint: https://host/v1"
type ModelSpec struct {
	// provider is whose API the endpoint speaks: OpenAI, or OpenAICompatible for
	// any other server with a chat completions API.
	// +kubebuilder:validation:Enum=OpenAI;OpenAICompatible
	// +required
	Provider Provider `json:"provider"`

	// model is the model's name as the provider knows it. A wrong one ends a Run
	// with Succeeded=False, reason Misconfigured, quoting the provider.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Model string `json:"model"`

	// endpoint is the base URL of the API. Default: the provider's own. One that
	// answers something else than a model ends a Run with reason Misconfigured.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/v1"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// credentials names the Secret that holds the API key. Without it requests
	// carry none. A missing Secret or key shows on the Run: reason SecretMissing.
	// +optional
	Credentials *SecretKey `json:"credentials,omitempty"`

	// contextWindow is the most tokens that a request and its answer may have.
	// Default: known for well-known models, else 128k.
	// +optional
	ContextWindow *Tokens `json:"contextWindow,omitempty"`

	// parameters are sent with every request; absent ones are the provider's.
	// +optional
	Parameters *ModelParameters `json:"parameters,omitempty"`

	// headers are sent with every request. They are no place for a secret.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// prices make the cost of a Run known. Without them cost stays empty, and an
	// Agent that limits cost is not Ready, reason PricesMissing.
	// +optional
	Prices *Prices `json:"prices,omitempty"`
}

// Provider is whose API an endpoint speaks.
type Provider string

// The providers.
const (
	ProviderOpenAI           Provider = "OpenAI"
	ProviderOpenAICompatible Provider = "OpenAICompatible"
)

// SecretKey names one key of a Secret in the same namespace.
type SecretKey struct {
	// secretName is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +required
	SecretName string `json:"secretName"`

	// key is the key in the Secret. Default api-key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=api-key
	// +optional
	Key string `json:"key,omitempty"`
}

// ModelParameters are the knobs of a request.
type ModelParameters struct {
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
	// of JSON, or the Model is not Ready, reason ParametersInvalid.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Extra *runtime.RawExtension `json:"extra,omitempty"`
}

// Header is one HTTP header.
type Header struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$') && self.lowerAscii() != 'authorization'",message="must be a header name other than Authorization: credentials belong in credentials"
	// +required
	Name string `json:"name"`

	// value of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('\\n') && !self.contains('\\r')",message="must be one line"
	// +required
	Value string `json:"value"`
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
