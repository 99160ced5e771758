package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// Workspace says where the agent's files (/workspace) are stored, and what they start with.
//
// +kubebuilder:validation:XValidation:rule="self.?durability.orValue('Pod') == 'Volume' || (!has(self.storageClassName) && !has(self.accessMode) && !has(self.retain) && !has(self.retention))",message="storageClassName, accessMode, retain and retention are for durability: Volume"
type Workspace struct {
	// durability says where files and journal are stored. Pod: in the pod; if it is lost,
	// the Run starts again only if it had changed nothing, otherwise it ends with reason
	// PodLost. Volume: on a PersistentVolumeClaim of the Run; each attempt resumes, and
	// while the Run waits for a user it has no pod. Default Pod.
	// +kubebuilder:validation:Enum=Pod;Volume
	// +kubebuilder:default=Pod
	// +optional
	Durability Durability `json:"durability,omitempty"`

	// size bounds the files. With durability Pod the journal has as much for itself
	// and a Run that passes it loses its pod; with Volume it is the size of the
	// claim, journal included, and a full one ends with reason StorageFull. Default
	// 1Gi.
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('16Mi')) >= 0",message="must be at least 16Mi: write 1Gi"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName is the class of the claim. Default: the cluster's.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// accessMode is the access mode of the claim: ReadWriteOnce, ReadWriteOncePod or
	// ReadWriteMany. Default ReadWriteOnce.
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany
	// +optional
	AccessMode AccessMode `json:"accessMode,omitempty"`

	// retain says when the claim is kept for retention after the Run has finished:
	// OnFailure, Always or Never. The claim goes with the Run in any case, and its
	// room is free once the pods are gone too: see podRetention. Default OnFailure.
	// +kubebuilder:validation:Enum=OnFailure;Always;Never
	// +optional
	Retain Retain `json:"retain,omitempty"`

	// retention is how long the claim is kept. Default 24h.
	// +optional
	Retention *Duration `json:"retention,omitempty"`

	// git is the repository that the workspace begins with. Default: none.
	// +optional
	Git *Git `json:"git,omitempty"`

	// files are copied into the workspace before the work begins, once.
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Files []WorkspaceFiles `json:"files,omitempty"`

	// instructions is Auto, to tell the model what the AGENTS.md at the root of the
	// workspace says, or Ignore. Default Auto.
	// +kubebuilder:validation:Enum=Auto;Ignore
	// +kubebuilder:default=Auto
	// +optional
	Instructions InstructionsFile `json:"instructions,omitempty"`
}

// Git is a repository that a workspace begins with.
//
// +kubebuilder:validation:XValidation:rule="!self.url.matches('^https?://[^/]*@')",message="no credentials in the URL: name a Secret in secretRef: {name: git}"
// +kubebuilder:validation:XValidation:rule="self.?publish.orValue('None') == 'None' || has(self.secretRef)",message="to publish a branch takes credentials: name a Secret in secretRef: {name: git}"
type Git struct {
	// url of the repository: https://host/path, http://host/path, ssh://git@host/path
	// or git@host:path. A repository that cannot be fetched ends the Run with reason
	// Misconfigured, or is tried again where the network failed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://[^/]+/.+|ssh://([^/@]+@)?[^/]+/.+|[a-zA-Z0-9_.-]+@[a-zA-Z0-9.-]+:.+)$')",message="must be a URL of a repository: write https://host/path or git@host:path"
	// +required
	URL string `json:"url"`

	// revision is a branch, a tag or a commit. Default: the repository's own
	// branch.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_][a-zA-Z0-9_./+-]*$') && !self.contains('..')",message="must be a branch, a tag or a commit: write main"
	// +optional
	Revision string `json:"revision,omitempty"`

	// depth is how many commits are fetched, 0 for all. Default 50.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// secretRef names the Secret that holds the credentials: of type
	// kubernetes.io/basic-auth (username, password) or kubernetes.io/ssh-auth
	// (ssh-privatekey, and known_hosts). Commands of the agent cannot read it. While
	// the Secret is missing, a Run waits with reason SecretMissing.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`

	// publish is Branch, to push the resulting files as one commit to the branch
	// deckhand/<run> when the agent has finished, or None. Deckhand pushes, not the agent.
	// If the push is refused, the Run ends with reason PublishFailed. Default None.
	// +kubebuilder:validation:Enum=None;Branch
	// +optional
	Publish Publish `json:"publish,omitempty"`
}

// WorkspaceFiles are files that a workspace begins with.
type WorkspaceFiles struct {
	// configMapRef names the ConfigMap, in the same namespace, whose keys become
	// files. While the ConfigMap is missing the pod does not start, reason Pending.
	// +required
	ConfigMapRef ConfigMapRef `json:"configMapRef"`

	// path is the folder below /workspace that they are put in; . is /workspace
	// itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '.' || (!self.startsWith('/') && !self.split('/').exists(p, p in ['', '.', '..', '.git']))",message="must be a folder below /workspace, without / at either end: write docs/rules, or . for /workspace itself"
	// +required
	Path string `json:"path"`
}

// InstructionsFile is what is done with the AGENTS.md of a workspace.
type InstructionsFile string

// What is done with the AGENTS.md of a workspace.
const (
	InstructionsAuto   InstructionsFile = "Auto"
	InstructionsIgnore InstructionsFile = "Ignore"
)

// Durability is what a lost pod costs.
type Durability string

// The durabilities.
const (
	DurabilityPod    Durability = "Pod"
	DurabilityVolume Durability = "Volume"
)

// AccessMode is how a claim may be mounted.
type AccessMode string

// Retain says whose claim stays for a while.
type Retain string

// Whose claim stays for a while after the Run has finished.
const (
	RetainOnFailure Retain = "OnFailure"
	RetainAlways    Retain = "Always"
	RetainNever     Retain = "Never"
)

// Publish says whether the files of a repository are published.
type Publish string

// Whether the files of a repository are published.
const (
	PublishNone   Publish = "None"
	PublishBranch Publish = "Branch"
)
