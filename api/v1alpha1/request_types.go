package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Auth is how requests authenticate. Exactly one of its fields is required. Credentials are not
// sent to another host after a redirect. If the server refuses a value, its Secret is read
// again. While a Secret or a key is missing, a Run waits with reason SecretMissing.
//
// +kubebuilder:validation:XValidation:rule="[has(self.bearer), has(self.header), has(self.basic), has(self.oauthClientCredentials)].exists_one(x, x)",messageExpression="'exactly one of bearer, header, basic and oauthClientCredentials is required: ' + (has(self.bearer) || has(self.header) || has(self.basic) || has(self.oauthClientCredentials) ? 'remove the others' : 'write bearer: {tokenSecretRef: {name: github, key: token}}')"
type Auth struct {
	// bearer sends a token in the header Authorization.
	// +optional
	Bearer *BearerAuth `json:"bearer,omitempty"`

	// header sends a value in a header that you name.
	// +optional
	Header *HeaderAuth `json:"header,omitempty"`

	// basic sends a user name and a password (HTTP basic authentication).
	// +optional
	Basic *BasicAuth `json:"basic,omitempty"`

	// oauthClientCredentials requests a token from an OAuth 2.0 token endpoint with the grant
	// type client_credentials, and sends it as a bearer token.
	// +optional
	OAuthClientCredentials *OAuthClientCredentials `json:"oauthClientCredentials,omitempty"`
}

// BearerAuth sends a token in the header Authorization.
type BearerAuth struct {
	// tokenSecretRef is the key of a Secret, in the same namespace, with the token.
	// +required
	TokenSecretRef SecretKeyRef `json:"tokenSecretRef"`
}

// HeaderAuth sends a value in a header.
type HeaderAuth struct {
	// name is the name of the header, for example X-API-Key.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="must be the name of a header: write X-API-Key"
	// +required
	Name string `json:"name"`

	// valueSecretRef is the key of a Secret, in the same namespace, with the value.
	// +required
	ValueSecretRef SecretKeyRef `json:"valueSecretRef"`
}

// BasicAuth sends a user name and a password.
type BasicAuth struct {
	// secretRef is a Secret, in the same namespace, with the keys username and password, for
	// example of type kubernetes.io/basic-auth.
	// +required
	SecretRef SecretRef `json:"secretRef"`
}

// OAuthClientCredentials requests a token with the grant type client_credentials.
type OAuthClientCredentials struct {
	// secretRef is a Secret, in the same namespace, with the keys client-id and client-secret.
	// +required
	SecretRef SecretRef `json:"secretRef"`

	// tokenURL is the URL of the token endpoint. If the endpoint refuses the client, the
	// attempt ends with reason ToolUnavailable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://login.example.com/token"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the credential into a Secret that auth names"
	// +required
	TokenURL string `json:"tokenURL"`

	// scopes are the scopes that are requested, at most 16. Default: none.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Scopes []string `json:"scopes,omitempty"`
}

// Requests are tools that each send one request to an HTTP API.
type Requests struct {
	// baseURL is the URL to which the path of each tool is appended, for example
	// https://api.example.com/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://api.example.com/v1"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the credential into a Secret that auth names"
	// +required
	BaseURL string `json:"baseURL"`

	// headers are HTTP headers of every request, at most 16. Values can be read by every user
	// who may read the Toolset: for a secret use auth.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header may be listed once, whether in upper or lower case: remove all but one of them"
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// auth is how requests authenticate. Exactly one of its fields is required. If the server
	// refuses a value, the Secret is read again. While a Secret or a key is missing, a Run
	// waits with reason SecretMissing. Default: without credentials.
	// +optional
	Auth *Auth `json:"auth,omitempty"`

	// tools are the tools, one for each kind of request.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +required
	Tools []RequestTool `json:"tools"`
}

// RequestTool is a tool that sends one request. In path, query and body, ${{ }} is an
// expression in CEL that reads the arguments, as in ${{ input.x }}. It is replaced by its value,
// escaped for its position: a value cannot add a path segment, a parameter or a field. If an
// expression fails, nothing is sent and the model reads why.
type RequestTool struct {
	// name is the name of the tool. The model sees <toolset>__<name>.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,48}$')",message="must be a valid name of a tool: at most 48 letters, digits, _ and -"
	// +required
	Name string `json:"name"`

	// description tells the model what the tool does and when to use it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	Description string `json:"description"`

	// method is the HTTP method. If a crash interrupts a request, GET, HEAD, PUT and DELETE are
	// repeated. POST and PATCH are not, and the model gets a message about it.
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
	// +required
	Method string `json:"method"`

	// path is appended to baseURL, for example /issues/${{ input.number }}. For an argument that
	// may be absent, write ${{ input.?x.orValue('none') }}. An expression that does not compile
	// makes the Toolset not Ready, reason Invalid, here and in query and body.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must begin with /: write /issues"
	// +required
	Path string `json:"path"`

	// query are the parameters of the URL, at most 32. A parameter that is one expression and
	// nothing else is omitted if that has no value, as ${{ input.x }} and ${{ input.?x }} if x is
	// absent. Within a text, write ${{ input.?x.orValue('none') }}.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && size(self[k]) <= 1024)",message="the name of a parameter must have at most 128 characters, and its value at most 1024"
	// +optional
	Query map[string]string `json:"query,omitempty"`

	// body is the JSON body. A string that is one expression and nothing else is replaced by its
	// value with its type, and omitted if it has none, as ${{ input.x }} and ${{ input.?x }} if x
	// is absent. Within a text, write ${{ input.?x.orValue('none') }}. Default: no body.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Body *runtime.RawExtension `json:"body,omitempty"`

	// input declares the arguments of the tool. Default: none.
	// +optional
	Input *Input `json:"input,omitempty"`
}
