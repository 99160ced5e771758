package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Agent is the definition of an AI agent: its system prompt, Model, tools and limits. It does
// nothing by itself: a Run starts it, as a Job starts a container, and any number of Runs can
// name it.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Agent
//	metadata: {name: reviewer}
//	spec:
//	  model: claude
//	  instructions: You review texts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=agt,categories=deckhand
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.model`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Agent struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the definition of the agent. It can be changed at any time; an active Run keeps
	// the revision with which it started.
	// +required
	Spec AgentSpec `json:"spec"`

	// status is the observed state of the Agent.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status AgentStatus `json:"status,omitempty"`
}

// AgentSpec is the definition of an agent. It can be changed at any time; an active Run keeps
// the revision with which it started.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || !has(self.retention.volume) && !has(self.retention.keepVolume) || self.?workspace.?durability.orValue('Pod') == 'Volume'",message="retention.volume and keepVolume are only allowed with workspace.durability: Volume: write workspace: {durability: Volume}, or remove them"
type AgentSpec struct {
	// description is what the agent is for, for users and for models that can call it as a
	// tool.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +optional
	Description string `json:"description,omitempty"`

	// instructions are the system prompt, at most 64 KiB. ${{ }} is an expression in CEL that
	// reads the input, as in ${{ input.x }}; for a value that may be absent write
	// ${{ input.?x.orValue('none') }}. $${{ is a literal ${{. An expression that does not
	// compile makes the Agent not Ready, reason Invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB: move long texts into files of the workspace"
	// +required
	Instructions string `json:"instructions"`

	// model is the name of the Model, in the same namespace, that answers. While it does not
	// exist, the Agent is not Ready, reason NotFound, and its Runs wait.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +required
	Model string `json:"model"`

	// inference are sampling and reasoning settings of requests to the model. A setting here
	// overrides the same setting of each Model that the agent uses.
	// +optional
	Inference *Inference `json:"inference,omitempty"`

	// routes are Models that are used for some requests instead of model, at most 16. Of several
	// routes for Turn, the first that applies answers the turn. Each other use may have one
	// route. A route that can never be used makes the Agent not Ready, reason Invalid. Default:
	// model for all requests.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="['Summarize', 'Subagent', 'Repair'].all(u, self.filter(r, r.for == u).size() <= 1)",message="must not contain two routes with the same for: remove one of the two. Only for: Turn may occur several times"
	// +optional
	Routes []Route `json:"routes,omitempty"`

	// input declares the values that the agent is given: spec.input of its Runs, and the
	// arguments of the tool if another agent calls it. Instructions and prompts read them as
	// ${{ input.x }}. An invalid declaration makes the Agent not Ready, reason Invalid.
	// Default: a Run has only a prompt, and the tool has one string argument, prompt.
	// +optional
	Input *Input `json:"input,omitempty"`

	// tools are the tools that the model may call, at most 64 entries. Every agent also has the
	// tools Finish and Reject, which end its work. Default: no others. Two tools with the same
	// name make the Agent not Ready, reason NameTaken.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.map(t, t.?name.orValue(t.?builtin.orValue(t.?agent.orValue(t.?custom.orValue(t.?toolset.orValue('')))))).all(n, self.exists_one(u, u.?name.orValue(u.?builtin.orValue(u.?agent.orValue(u.?custom.orValue(u.?toolset.orValue(''))))) == n))",messageExpression="'must not contain two tools with the same name: remove one of the two ' + self.map(t, t.?name.orValue(t.?builtin.orValue(t.?agent.orValue(t.?custom.orValue(t.?toolset.orValue('')))))).filter(n, !self.exists_one(u, u.?name.orValue(u.?builtin.orValue(u.?agent.orValue(u.?custom.orValue(u.?toolset.orValue(''))))) == n))[0] + ', or give one of them another name if it is an agent or a custom tool'"
	// +optional
	Tools []Tool `json:"tools,omitempty"`

	// skills are folders with instructions for kinds of work, in the format of agentskills.io, at
	// most 16. The model gets their names and descriptions, and reads /skills/<name>/SKILL.md
	// when one fits. They are read-only, and give no permissions. Without a tool that reads files
	// or runs commands the Agent is not Ready, reason Invalid. If a folder is not a skill, the
	// Run ends with reason Misconfigured, and its message names file and line. Default: none.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Skills []Skill `json:"skills,omitempty"`

	// policy is a list of rules that allow, deny or ask about tool calls, at most 64. The first
	// rule that matches a call decides; the approvals of spec.tools come after all rules. A
	// call that no rule matches is allowed. If the agent was called by another agent, its calls
	// must pass the policies of both. A rule that does not compile makes the Agent not Ready,
	// reason Invalid.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Policy []PolicyRule `json:"policy,omitempty"`

	// hooks are HTTP endpoints that the runner calls, in the order listed, before and after
	// sessions, model turns and tool calls. Each can change or refuse what is about to happen.
	// At most 16. Default: none.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Hooks []Hook `json:"hooks,omitempty"`

	// parallelTools is how many tool calls of one turn run in parallel, 1 to 32. Default 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default=10
	// +optional
	ParallelTools int32 `json:"parallelTools,omitempty"`

	// limits bound each Run of the Agent. When a limit is reached, the Run ends with
	// Succeeded=False and reason StepLimit (steps, modelCalls, toolCalls), TokenLimit,
	// CostLimit, DurationLimit, PendingTimeout or DeadlineExceeded. Usage of agents that the
	// agent calls in its pod counts too.
	// +kubebuilder:default={}
	// +optional
	Limits AgentLimits `json:"limits,omitempty"`

	// concurrency is how many Runs of this Agent may be active at the same time, 1 to 1,000.
	// The other Runs wait with reason Queued, in the order of their creation. A Run that waits
	// for a child Run does not count, and a Run never waits for a Run that it is a part of.
	// Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Concurrency *int32 `json:"concurrency,omitempty"`

	// output declares what the agent returns: a JSON object that matches a JSON Schema, and
	// files. Default: text, and the files that are in the result.
	// +optional
	Output *Output `json:"output,omitempty"`

	// workspace is where the files of the agent are stored, and which files it starts with.
	// Default: an empty directory in the pod.
	// +kubebuilder:default={}
	// +optional
	Workspace Workspace `json:"workspace,omitempty"`

	// sandbox is the container in which commands of the agent run. It has the files of the
	// workspace and no credentials. It is required if a tool runs commands: without it the
	// Agent is not Ready, reason SandboxMissing. It is not created if no tool does.
	// +optional
	Sandbox *Sandbox `json:"sandbox,omitempty"`

	// log is which events the runner writes to the pod's log: Full, Steps (without streamed
	// deltas) or None. Default Full.
	// +kubebuilder:validation:Enum=Full;Steps;None
	// +kubebuilder:default=Full
	// +optional
	Log Log `json:"log,omitempty"`

	// events was replaced by log. It is refused, and an Agent that has it from before, with
	// another value than Full, is not Ready, reason Invalid.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="false",messageExpression="'was replaced by log: remove it, and write log: ' + (self in ['Steps', 'None'] ? self : 'Full')"
	// +optional
	Events string `json:"events,omitempty"`

	// podTemplate has fields of the runner's pod, such as nodeSelector and resources.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// retention is how long the pod and the volume of a Run are kept after the Run has finished.
	// Default: see each field.
	// +kubebuilder:default={}
	// +optional
	Retention Retention `json:"retention,omitempty"`

	// podRetention was replaced by retention.pod. It is refused, and an Agent that has it from
	// before, with another value than 1h, is not Ready, reason Invalid.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="false",messageExpression="'was replaced by spec.retention: remove it, and write retention: {pod: ' + self + '}'"
	// +optional
	PodRetention string `json:"podRetention,omitempty"`
}

// Retention is how long the pod and the volume of a Run are kept after it has finished. A deleted
// Run always deletes its pods and its PersistentVolumeClaim.
type Retention struct {
	// pod is how long the pod and its log are kept. 0s deletes the pod immediately. Default 1h.
	// +kubebuilder:default="1h"
	// +optional
	Pod Duration `json:"pod,omitempty"`

	// volume is how long the PersistentVolumeClaim is kept, if keepVolume says so. With 0s it is
	// deleted after the pods of the Run. Only with workspace.durability Volume. Default 24h.
	// +optional
	Volume *Duration `json:"volume,omitempty"`

	// keepVolume is after which end the PersistentVolumeClaim is kept: Always, OnFailure or
	// Never. A claim that is not kept is deleted after the pods of the Run. Only with
	// workspace.durability Volume. Default Always.
	// +kubebuilder:validation:Enum=Always;OnFailure;Never
	// +optional
	KeepVolume KeepVolume `json:"keepVolume,omitempty"`
}

// KeepVolume is after which end of a Run its PersistentVolumeClaim is kept.
type KeepVolume string

// The ends of a Run after which its PersistentVolumeClaim is kept.
const (
	KeepVolumeAlways    KeepVolume = "Always"
	KeepVolumeOnFailure KeepVolume = "OnFailure"
	KeepVolumeNever     KeepVolume = "Never"
)

// Route is a Model for one kind of request.
//
// +kubebuilder:validation:XValidation:rule="!has(self.when) || self.for == 'Turn'",message="when is only allowed for turns: write for: Turn, or remove when"
type Route struct {
	// for is the kind of request: Turn (turns of a session), Summarize (compaction of a session),
	// Subagent (sessions of the tool Task) or Repair (correcting arguments that do not match the
	// schema of their tool).
	// +kubebuilder:validation:Enum=Summarize;Subagent;Repair;Turn
	// +kubebuilder:validation:MaxLength=9
	// +required
	For RouteUse `json:"for"`

	// model is the name of a Model in the same namespace. Its fallbacks apply too. While it
	// does not exist, the Agent is not Ready, reason NotFound.
	// +required
	Model ObjectName `json:"model"`

	// when is a CEL expression that selects turns, only with for: Turn, for example
	// estimatedTokens > 100000 || budgetLeft.cost < 0.2. It reads turn (of the session, from 1),
	// estimatedTokens (the input of the next request), and budgetLeft.steps, budgetLeft.tokens
	// and budgetLeft.cost (the part of each limit that is left, from 0 to 1; without the limit,
	// 1). It is evaluated before each turn. The Model stays while a tool loop has reasoning that
	// the other Model cannot read. If the expression fails, spec.model answers the turn, with an
	// event in the log. If it does not compile, the Agent is not Ready, reason
	// Invalid. Default: all turns.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="when is empty, which would mean all turns: write an expression, or remove when"
	// +optional
	When string `json:"when,omitempty"`
}

// RouteUse is a kind of request for which another Model can be used.
type RouteUse string

// The uses of a Route.
const (
	RouteSummarize RouteUse = "Summarize"
	RouteSubagent  RouteUse = "Subagent"
	RouteRepair    RouteUse = "Repair"
	RouteTurn      RouteUse = "Turn"
)

// Output declares what the agent returns.
//
// +kubebuilder:validation:XValidation:rule="has(self.schema) || has(self.files)",message="must have schema or files: write files: [report.md], or remove output"
type Output struct {
	// schema is a JSON Schema of type object, at most 16 KiB and 8 levels deep, without $ref,
	// oneOf, anyOf, allOf and not. It declares the arguments of the tool Finish, which is then
	// the only way to end. An invalid schema makes the Agent not Ready, reason
	// Invalid. If the model does not return a valid value, corrections included,
	// the Run ends with reason InvalidOutput. Default: the agent returns text.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Schema runtime.RawExtension `json:"schema,omitzero"`

	// files are patterns of the files that a Run with workspace.durability Pod writes to the log
	// of its pod when it ends, at most 16. kubectl deckhand cp copies them from there until the
	// pod is deleted. A pattern without / matches names in all directories, ** stands for any
	// directories: report.md, out/**/*.csv. Secrets in the files are replaced. The files may
	// have 1 MiB in all; the message of the Run names the files that are not in the log. With
	// durability Volume, all files are kept on the volume and this field has no effect. An
	// invalid pattern makes the Agent not Ready, reason Invalid. Default: the files in
	// status.progress.result.files.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.all(f, !f.split('/').exists(p, p == '..'))",message="must be patterns of files in the workspace, without ..: write report.md or out/**/*.csv"
	// +optional
	Files []string `json:"files,omitempty"`
}

// Log is which events are written to the pod's log.
type Log string

// How much of a Run reaches the pod's log.
const (
	LogFull  Log = "Full"
	LogSteps Log = "Steps"
	LogNone  Log = "None"
)

// PodTemplate has fields of the runner's pod.
type PodTemplate struct {
	// runnerImage is the image of a custom runner, built with your extensions. If it cannot be
	// pulled, a Run ends with reason ImagePullFailed; if it is not an image name, the Agent is
	// not Ready, reason Invalid. Default: the image of the installed release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	RunnerImage string `json:"runnerImage,omitempty"`

	// runAsUser is the user and group ID of every container of the pod and of its files. It
	// cannot be 0 (root). Default 65532. If the cluster chooses users (podUser: Cluster of the chart),
	// it is the user only, which the cluster must allow; the default is what the cluster assigns.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// labels are added to the pod, at most 16. The pod also has the labels of its Run.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?deckhand[.]dev/'))",message="must not have the prefix deckhand.dev, which is reserved: choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="the name of a label must have at most 317 characters, and its value at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pod, at most 16, with values of at most 1024 characters. They
	// override hints of Deckhand such as sidecar.istio.io/inject. They must not be annotations of
	// Deckhand or profiles of AppArmor or seccomp, or let containers get credentials of the
	// cloud. A container that a mesh injects must end with the runner (a native sidecar);
	// otherwise the pod remains until it is deleted.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?deckhand[.]dev/'))",message="must not have the prefix deckhand.dev, which is reserved: choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?(apparmor[.]security[.]beta|seccomp[.]security[.]alpha)[.]kubernetes[.]io/'))",message="must not set an AppArmor or seccomp profile: the profile of every container is RuntimeDefault"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['eks.amazonaws.com/skip-containers', 'azure.workload.identity/skip-containers']))",message="must not set eks.amazonaws.com/skip-containers or azure.workload.identity/skip-containers: Deckhand sets them, so that no container gets credentials of the cloud"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 1024)",message="the name of an annotation must have at most 317 characters, and its value at most 1024"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// caBundleConfigMapRef is the key of a ConfigMap, in the same namespace, with CA
	// certificates in PEM format. The runner trusts them in addition to the usual ones. While
	// the ConfigMap is missing, the pod does not start, reason Pending. Default: the chart
	// value runner.caBundleConfigMapRef.
	// +optional
	CABundleConfigMapRef *ConfigMapKeyRef `json:"caBundleConfigMapRef,omitempty"`

	// proxy is the HTTP proxy through which the runner reaches models, Toolsets and Git.
	// HTTPRequest, Browse and sandbox.egress.hosts do not use it. Default: the chart value
	// runner.proxy.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// imageMirror replaces the registry of every image of the pod: with mirror.example.com/hub,
	// golang:1.26 is pulled from mirror.example.com/hub/library/golang:1.26. Default: the chart
	// value imageMirror.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$')",message="must be a registry with an optional path, without scheme and without / at the end: write mirror.example.com/hub"
	// +optional
	ImageMirror string `json:"imageMirror,omitempty"`

	// imagePullSecrets are Secrets for pulling the images of the pod, in addition to the chart
	// value runner.imagePullSecrets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// resources are the resources of the runner's container. An attempt whose runner exceeds
	// its memory limit fails with reason OutOfMemory and is retried. Default: requests of 10m
	// CPU and 32Mi memory, and a limit of 256Mi memory. Resources without CPU get a request
	// of 10m, and those without a limit of memory the limit of 256Mi, or their request if it is larger.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// nodeSelector selects cluster nodes by their labels. While no cluster node matches, the
	// Run waits with reason Unschedulable. Default: all cluster nodes.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the pod run on cluster nodes with matching taints.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity is the affinity of the pod. Deckhand adds a term if the Run shares a volume that
	// only one cluster node can mount. While no cluster node matches, the Run waits with reason
	// Unschedulable. If it is invalid, the Run ends with reason Misconfigured. Default: none.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints spread the pods that match labelSelector, for example those with
	// the label deckhand.dev/agent, at most 8. While no cluster node matches, the Run waits with
	// reason Unschedulable. Default: those of the cluster.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// hostUsers is false to run the pod in a user namespace of its own, if the cluster nodes and
	// the storage of the pod support that; otherwise the pod does not start, reason Pending.
	// Default: unset, which is the cluster's default.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// runtimeClassName is the RuntimeClass of the pod, for example gVisor. Default: the
	// cluster's.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`

	// priorityClassName is the PriorityClass of the pod. Default: the cluster's.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// AgentStatus is the observed state of an Agent.
type AgentStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready (the spec is valid, and every object that it names exists) and
	// Durable (a Run resumes after its pod was lost), and for GitOps tools Reconciling and
	// Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AgentList is a list of Agents.
//
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Agent `json:"items"`
}
