package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Sandbox is the container that commands of an agent run in: with the files of
// the workspace, and without a token, a key or the journal.
type Sandbox struct {
	// image holds the programs that the agent may run. It needs a shell (bash, else sh) for
	// the tool Shell and python3 for the tool Python; without them the Run ends with reason
	// Misconfigured. If the image cannot be pulled, it ends with ImagePullFailed; if it is
	// not an image name, with InvalidImage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`

	// env are variables of every command. Values are literal: what is secret
	// belongs to a Toolset.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []Variable `json:"env,omitempty"`

	// egress is what commands may reach. Default: nothing but the pod itself.
	// +optional
	Egress *Egress `json:"egress,omitempty"`

	// confinement is what happens where the node's kernel cannot shut commands in.
	// BestEffort: the Run goes on and status.progress.confinement says what holds.
	// Required: it ends with reason Misconfigured unless network, files and process
	// are all Enforced. Default BestEffort.
	// +kubebuilder:validation:Enum=BestEffort;Required
	// +kubebuilder:default=BestEffort
	// +optional
	Confinement ConfinementPolicy `json:"confinement,omitempty"`

	// resources of the container. Default: requests of 10m CPU and 64Mi memory, and
	// a limit of 1Gi memory. A command that needs more memory is killed.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// processes is the most that one command may have at once, 8 to 4096. Default
	// 256. A command that passes it is killed.
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Processes *int32 `json:"processes,omitempty"`

	// allowInjected names mounts (by path), variables and volumes (by name) that
	// other admission webhooks of the cluster may add to the container. Anything
	// else that they add ends the Run with reason SandboxAltered.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	AllowInjected []string `json:"allowInjected,omitempty"`
}

// Egress is what commands may reach.
type Egress struct {
	// hosts are reached through a proxy that the usual variables name (HTTP_PROXY,
	// HTTPS_PROXY), exact or as *.example.com for all below. Addresses inside the
	// cluster and other private ones are never reached. Where Deckhand makes
	// NetworkPolicies and the network enforces them, the ports are 22, 80 and 443;
	// else any.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Hosts []Host `json:"hosts,omitempty"`
}

// Variable is a variable of the environment with a literal value.
type Variable struct {
	// name of the variable. Variables that Deckhand sets cannot be set.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be a name of a variable: letters, digits and _"
	// +kubebuilder:validation:XValidation:rule="!(self in ['HOME', 'TMPDIR', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy']) && !self.startsWith('DECKHAND_')",message="is set by Deckhand: choose another name"
	// +required
	Name string `json:"name"`

	// value is what it is set to, at most 4 KiB.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value string `json:"value,omitempty"`
}

// ConfinementPolicy is what happens where a kernel cannot shut commands in.
type ConfinementPolicy string

// The policies of confinement.
const (
	ConfinementBestEffort ConfinementPolicy = "BestEffort"
	ConfinementRequired   ConfinementPolicy = "Required"
)

// Proxy is an HTTP proxy on the way out of a closed network.
type Proxy struct {
	// http is the URL of the proxy for http.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && !self.contains('@')",message="must be an http or https URL without credentials: write http://proxy.example.com:3128"
	// +optional
	HTTP string `json:"http,omitempty"`

	// https is the URL of the proxy for https. Default: that for http.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && !self.contains('@')",message="must be an http or https URL without credentials: write http://proxy.example.com:3128"
	// +optional
	HTTPS string `json:"https,omitempty"`

	// noProxy are hosts, domains and networks that are reached without it, with
	// commas between them. The cluster's own are always.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	NoProxy string `json:"noProxy,omitempty"`
}
