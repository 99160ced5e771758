package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// Workspace is where the files of the agent (/workspace) are stored, and which files it starts
// with.
//
// +kubebuilder:validation:XValidation:rule="self.?durability.orValue('Pod') == 'Volume' || (!has(self.storageClassName) && !has(self.accessMode))",message="storageClassName and accessMode are only allowed with durability: Volume: write durability: Volume, or remove them"
type Workspace struct {
	// durability is where the files and the journal are stored. The journal is the record from
	// which another attempt resumes. Pod: in the pod. If the pod is lost, the Run starts again
	// if it had changed nothing, otherwise it ends with reason PodLost. Volume: on a
	// PersistentVolumeClaim of the Run. After a lost pod the next attempt resumes, and a Run
	// that waits for a user needs no pod. Default: runDefaults.durability of the chart, which is
	// Pod; spec does not show it, and the condition Durable does.
	// +kubebuilder:validation:Enum=Pod;Volume
	// +optional
	Durability Durability `json:"durability,omitempty"`

	// size is the maximum size of the files, at least 16Mi. With durability Pod, a Run that
	// exceeds it loses its pod; the journal has the same size for itself. With Volume, it is
	// the size of the PersistentVolumeClaim, journal included, and a Run that fills it ends
	// with reason StorageFull. A repository of which the files, directories and links need
	// more, at 4 KiB or more each, ends the Run with reason Misconfigured. Default 1Gi.
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=""
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == string && isQuantity(string(self))",messageExpression="'must be a size with a unit: write ' + (type(self) == int && self > 0 && self <= 1000 ? string(self) + 'Gi' : string(self).matches('^[0-9]{1,6} ?[kKmMgGtT]i?[bB]?$') ? string(self).find('^[0-9]+') + string(self).find('[kKmMgGtT]').upperAscii() + 'i' : '10Gi')"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Mi')) >= 0",message="must be at least 16Mi: write 1Gi"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName is the StorageClass of the PersistentVolumeClaim. Until a volume is
	// bound, the Run waits with reason Pending. Only with durability Volume. Default: the
	// default StorageClass of the cluster.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// accessMode is the access mode of the PersistentVolumeClaim. Only with durability Volume.
	// Default ReadWriteOnce.
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany
	// +optional
	AccessMode AccessMode `json:"accessMode,omitempty"`

	// git is a Git repository that is cloned into the workspace before the work starts.
	// Default: none.
	// +optional
	Git *Git `json:"git,omitempty"`

	// files are files of ConfigMaps that are copied into the workspace before the work starts,
	// at most 16 entries. Default: none.
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Files []WorkspaceFiles `json:"files,omitempty"`

	// agentsFile is what happens with an AGENTS.md at the root of the workspace. Auto: the
	// model gets its content at the start. Ignore: it does not. Default Auto.
	// +kubebuilder:validation:Enum=Auto;Ignore
	// +kubebuilder:default=Auto
	// +optional
	AgentsFile AgentsFile `json:"agentsFile,omitempty"`

	// instructions was replaced by agentsFile. It is refused, and an Agent that has it from
	// before, with another value than Auto, is not Ready, reason Invalid.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="false",messageExpression="'was replaced by agentsFile: remove it, and write agentsFile: ' + (self == 'Ignore' ? self : 'Auto')"
	// +optional
	Instructions string `json:"instructions,omitempty"`

	// retain was replaced by spec.retention.keepVolume. It is refused, and an Agent that has it
	// from before, with another value than Always, is not Ready, reason Invalid.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="false",messageExpression="'was replaced by spec.retention: remove it, and write retention: {keepVolume: ' + self + '}'"
	// +optional
	Retain string `json:"retain,omitempty"`

	// retention was replaced by spec.retention.volume. It is refused, and an Agent that has it
	// from before, with another value than 24h, is not Ready, reason Invalid.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="false",messageExpression="'was replaced by spec.retention: remove it, and write retention: {volume: ' + self + '}'"
	// +optional
	Retention string `json:"retention,omitempty"`
}

// Git is a Git repository that is cloned into a workspace.
//
// +kubebuilder:validation:XValidation:rule="!self.url.matches('^https?://[^/]*@')",message="url must not contain credentials: name a Secret in secretRef: {name: git}"
// +kubebuilder:validation:XValidation:rule="self.?publish.orValue('None') == 'None' || has(self.secretRef)",message="secretRef is required with publish: Branch: name a Secret in secretRef: {name: git}"
type Git struct {
	// url is the URL of the repository: https://host/path, http://host/path,
	// ssh://git@host/path or git@host:path. If the repository cannot be cloned, the Run ends
	// with reason Misconfigured; after a network error the attempt is retried.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://[^/]+/.+|ssh://([^/@]+@)?[^/]+/.+|[a-zA-Z0-9_.-]+@[a-zA-Z0-9.-]+:.+)$')",message="must be a URL of a repository: write https://host/path or git@host:path"
	// +required
	URL string `json:"url"`

	// revision is a branch, a tag or a commit. Default: the default branch of the repository.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_][a-zA-Z0-9_./+-]*$') && !self.contains('..')",message="must be a branch, a tag or a commit: write main"
	// +optional
	Revision string `json:"revision,omitempty"`

	// depth is how many commits are fetched, 0 to 100,000; 0 fetches all. Default 50.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// secretRef is a Secret, in the same namespace, with credentials: of type
	// kubernetes.io/basic-auth (keys username and password) or kubernetes.io/ssh-auth (keys
	// ssh-privatekey and known_hosts). Commands of the agent cannot read it. While the Secret
	// is missing, a Run waits with reason SecretMissing. Default: no credentials.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`

	// publish is Branch or None. Branch pushes the resulting files as one commit to the branch
	// deckhand/<run> when the agent has finished. Deckhand pushes, not the agent. If the push
	// fails, the Run ends with reason PublishFailed. Changed files of Git LFS are left out of
	// the commit and named in status.progress.result.warning; if nothing else was changed, the
	// Run ends with reason PublishFailed. Default None.
	// +kubebuilder:validation:Enum=None;Branch
	// +optional
	Publish Publish `json:"publish,omitempty"`
}

// WorkspaceFiles are files of a ConfigMap that are copied into a workspace.
type WorkspaceFiles struct {
	// configMapRef is a ConfigMap in the same namespace. Each of its keys becomes a file,
	// also those of binaryData. While the ConfigMap is missing, the pod does not start, reason
	// Pending.
	// +required
	ConfigMapRef ConfigMapRef `json:"configMapRef"`

	// path is the directory below /workspace to which the files are copied, for example
	// docs/rules. A dot is /workspace itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '.' || (!self.startsWith('/') && !self.split('/').exists(p, p in ['', '.', '..', '.git']))",message="must be a directory below /workspace, without / at either end: write docs/rules, or . for /workspace itself"
	// +required
	Path string `json:"path"`
}

// AgentsFile is what happens with the AGENTS.md of a workspace.
type AgentsFile string

// What is done with the AGENTS.md of a workspace.
const (
	AgentsFileAuto   AgentsFile = "Auto"
	AgentsFileIgnore AgentsFile = "Ignore"
)

// Durability is where files and journal are stored.
type Durability string

// The durabilities.
const (
	DurabilityPod    Durability = "Pod"
	DurabilityVolume Durability = "Volume"
)

// AccessMode is the access mode of a PersistentVolumeClaim.
type AccessMode string

// Publish is whether the resulting files are pushed as a branch.
type Publish string

// Whether the files of a repository are published.
const (
	PublishNone   Publish = "None"
	PublishBranch Publish = "Branch"
)
