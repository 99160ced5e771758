package v1alpha1

// ObjectName is the name of another object in the same namespace.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
type ObjectName string

// SecretRef is a reference to a Secret in the same namespace.
type SecretRef struct {
	// name is the name of the Secret.
	// +required
	Name ObjectName `json:"name"`
}

// SecretKeyRef is a reference to one key of a Secret in the same namespace.
type SecretKeyRef struct {
	// name is the name of the Secret.
	// +required
	Name ObjectName `json:"name"`

	// key is the key in the Secret, for example api-key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && !self.startsWith('..')",message="must be a key of a Secret: letters, digits, -, _ and ."
	// +required
	Key string `json:"key"`
}

// ConfigMapRef is a reference to a ConfigMap in the same namespace.
type ConfigMapRef struct {
	// name is the name of the ConfigMap.
	// +required
	Name ObjectName `json:"name"`
}

// ConfigMapKeyRef is a reference to one key of a ConfigMap in the same namespace.
type ConfigMapKeyRef struct {
	// name is the name of the ConfigMap.
	// +required
	Name ObjectName `json:"name"`

	// key is the key in the ConfigMap, for example ca.crt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && !self.startsWith('..')",message="must be a key of a ConfigMap: letters, digits, -, _ and ."
	// +required
	Key string `json:"key"`
}

// Header is an HTTP header.
type Header struct {
	// name is the name of the header. Authorization, Proxy-Authorization and Cookie are not
	// allowed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="must be the name of a header: letters, digits and -"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['authorization', 'proxy-authorization', 'cookie'])",message="must be a header other than Authorization, Proxy-Authorization and Cookie: name the Secret in apiKeySecretRef of a Model or auth of a Toolset"
	// +required
	Name string `json:"name"`

	// value is the value, one line of at most 1,024 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\r\\n]')",message="must be one line: remove line breaks"
	// +required
	Value string `json:"value"`
}
