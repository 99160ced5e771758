package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Sandbox is the container in which commands of an agent run. It has the files of the
// workspace, and no credentials, API keys or journal.
type Sandbox struct {
	// image is the image with the programs that the agent may run. The tool Shell needs bash or
	// sh, and Python needs python3: without them a Run ends with reason Misconfigured. If the
	// image cannot be pulled, a Run ends with reason ImagePullFailed; if it is not an image
	// name, the Agent is not Ready, reason Invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`

	// env are environment variables of every command, at most 64. The model can read the
	// values: put credentials into a Toolset instead.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []Variable `json:"env,omitempty"`

	// egress is which hosts commands may reach. Default: none.
	// +optional
	Egress *Egress `json:"egress,omitempty"`

	// confinement is what happens if the kernel of the cluster node or the network plugin does
	// not enforce all restrictions of commands. BestEffort: the Run continues, and
	// status.progress.confinement shows which restrictions work. Required: the Run ends with
	// reason Misconfigured unless network, files and process are all Enforced; the message says
	// what to change. Before, it waits up to 30 s for NetworkPolicies to take effect. Default
	// BestEffort.
	// +kubebuilder:validation:Enum=BestEffort;Required
	// +kubebuilder:default=BestEffort
	// +optional
	Confinement ConfinementPolicy `json:"confinement,omitempty"`

	// resources are the resources of the container. Default: requests of 10m CPU and 64Mi
	// memory, and a limit of 1Gi memory. Resources without CPU get a request of 10m, by which
	// the cluster node shares CPU time, and those without a limit of memory the limit of 1Gi, or their
	// request if it is larger. When commands need more memory than the limit, the
	// largest one is killed.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// processes is how many processes one command may have at the same time, 8 to 4096. It may
	// have eight times as many threads, but at least 512 and 64 for each CPU of the cluster node.
	// A command that exceeds either is killed, and the result of its call says so. Default 256.
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Processes *int32 `json:"processes,omitempty"`

	// allowInjected lists mounts (by path), environment variables and volumes (by name) that
	// mutating webhooks of the cluster may add to the container. Any other addition ends the
	// Run with reason SandboxAltered. Default: none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	AllowInjected []string `json:"allowInjected,omitempty"`
}

// Egress is which hosts commands may reach.
type Egress struct {
	// hosts are exact names, or *.example.com for every host below example.com, at most 64.
	// Commands reach them through a proxy in the pod, which HTTP_PROXY and HTTPS_PROXY name.
	// Private addresses, including those of the cluster, are never reached. Ports are 22, 80
	// and 443 if NetworkPolicies are enabled in the chart and the network plugin enforces them,
	// otherwise any.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Hosts []Host `json:"hosts,omitempty"`
}

// Variable is an environment variable with a literal value.
type Variable struct {
	// name is the name of the variable. Variables that Deckhand sets, such as HOME and
	// HTTP_PROXY, are not allowed.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be the name of a variable: letters, digits and _, and no digit at the start"
	// +kubebuilder:validation:XValidation:rule="!(self in ['HOME', 'TMPDIR', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy']) && !self.startsWith('DECKHAND_')",message="must not be a variable that Deckhand sets: choose another name"
	// +required
	Name string `json:"name"`

	// value is the value, at most 4 KiB.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value string `json:"value,omitempty"`
}

// ConfinementPolicy is what happens if restrictions of commands are not supported.
type ConfinementPolicy string

// The policies of confinement.
const (
	ConfinementBestEffort ConfinementPolicy = "BestEffort"
	ConfinementRequired   ConfinementPolicy = "Required"
)

// Proxy is an HTTP proxy through which the runner reaches hosts outside the cluster.
type Proxy struct {
	// http is the URL of the proxy for http requests. Default: no proxy.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && !self.contains('@')",message="must be an http or https URL without credentials: write http://proxy.example.com:3128"
	// +optional
	HTTP string `json:"http,omitempty"`

	// https is the URL of the proxy for https requests. Default: http.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && !self.contains('@')",message="must be an http or https URL without credentials: write http://proxy.example.com:3128"
	// +optional
	HTTPS string `json:"https,omitempty"`

	// noProxy is a comma-separated list of hosts, domains and networks that are reached without
	// the proxy. Hosts of the cluster are always reached without it.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	NoProxy string `json:"noProxy,omitempty"`
}
