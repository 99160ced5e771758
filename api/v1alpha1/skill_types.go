package v1alpha1

// Skill is a folder with instructions for a kind of work. It has a SKILL.md with the name and the
// description of the skill.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.git)",message="must have either configMapRef or git: write configMapRef: {name: my-skill}"
type Skill struct {
	// name is the name of the skill, which is also in its SKILL.md, and of its folder below
	// /skills, for example release-notes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="must have lower-case letters and digits, with single - between them: write release-notes"
	// +required
	Name string `json:"name"`

	// configMapRef is a ConfigMap in the same namespace. Each of its keys becomes a file of the
	// folder, also those of binaryData. It is read when a pod starts. While the ConfigMap is
	// missing, the pod does not start, reason Pending.
	// +optional
	ConfigMapRef *ConfigMapRef `json:"configMapRef,omitempty"`

	// git is a folder of a commit of a Git repository. It is fetched when a pod starts.
	// +optional
	Git *SkillGit `json:"git,omitempty"`
}

// SkillGit is a folder of a commit of a Git repository.
//
// +kubebuilder:validation:XValidation:rule="!self.url.matches('^https?://[^/]*@')",message="url must not contain credentials: name a Secret in secretRef: {name: git}"
type SkillGit struct {
	// url is the URL of the repository: https://host/path, http://host/path,
	// ssh://git@host/path or git@host:path. If the repository cannot be cloned, the Run ends
	// with reason Misconfigured; after a network error the attempt is retried.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://[^/]+/.+|ssh://([^/@]+@)?[^/]+/.+|[a-zA-Z0-9_.-]+@[a-zA-Z0-9.-]+:.+)$')",message="must be a URL of a repository: write https://host/path or git@host:path"
	// +required
	URL string `json:"url"`

	// revision is a commit, all of its 40 digits: a branch or a tag could mean something else
	// tomorrow.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{40}$')",message="must be a whole commit of 40 digits: print it with git rev-parse HEAD"
	// +required
	Revision string `json:"revision"`

	// path is the folder with SKILL.md in the repository, for example skills/release-notes.
	// Default: the root of the repository.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == '' || (!self.startsWith('/') && !self.split('/').exists(p, p in ['', '.', '..', '.git']))",message="must be a folder of the repository, without / at either end: write skills/release-notes"
	// +optional
	Path string `json:"path,omitempty"`

	// secretRef is a Secret, in the same namespace, with credentials: of type
	// kubernetes.io/basic-auth (keys username and password) or kubernetes.io/ssh-auth (keys
	// ssh-privatekey and known_hosts). Neither commands nor the agent can read it. While the
	// Secret is missing, a Run waits with reason SecretMissing. Default: no credentials.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}
