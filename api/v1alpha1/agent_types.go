package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Agent describes an AI agent: its instructions, model, tools and limits.
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

	// spec describes the agent.
	// +required
	Spec AgentSpec `json:"spec"`

	// status is what the operator found.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status AgentStatus `json:"status,omitempty"`
}

// AgentSpec describes an agent. You can change it at any time; an active Run keeps the
// revision with which it started.
type AgentSpec struct {
	// description says what the agent is for, to people and to other agents.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// instructions are the system prompt, at most 64 KiB. ${{ input.x }} is replaced by the
	// value x of the input; $${{ is a literal ${{. A name that input does not declare makes
	// the Agent not Ready, reason InstructionsInvalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB: move long material into files of the workspace"
	// +required
	Instructions string `json:"instructions"`

	// model names the Model, in the same namespace. While it does not exist the
	// Agent is not Ready, reason ModelNotFound, and its Runs wait.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +required
	Model string `json:"model"`

	// inference are settings of requests to models. They override those of each Model
	// that the agent uses.
	// +optional
	Inference *Inference `json:"inference,omitempty"`

	// routes name other Models for some uses. Default: model for all.
	// +listType=map
	// +listMapKey=for
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Routes []Route `json:"routes,omitempty"`

	// input declares what the agent is given: Run.spec.input and, where the agent is a
	// tool of another, the arguments of the tool. Instructions and prompts read it as
	// ${{ input.x }}. An input that is not valid makes the Agent not Ready, reason
	// InputInvalid. Default: one string, prompt.
	// +optional
	Input *Input `json:"input,omitempty"`

	// tools are the tools that the agent may use, in addition to finish and reject, which
	// every agent has. Default: none. Two tools with the same name make the Agent not Ready,
	// reason ToolNameTaken.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.map(t, t.?name.orValue(t.?builtin.orValue(t.?agent.orValue(t.?custom.orValue(t.?toolset.orValue('')))))).all(n, self.exists_one(u, u.?name.orValue(u.?builtin.orValue(u.?agent.orValue(u.?custom.orValue(u.?toolset.orValue(''))))) == n))",message="each tool may be listed once: give one of the two another name"
	// +optional
	Tools []Tool `json:"tools,omitempty"`

	// policy decides which tool calls are made: the first rule that matches a call decides.
	// If no rule matches, the call is allowed. Approvals of tools come after these rules. A
	// rule that does not compile makes the Agent not Ready, reason PolicyInvalid. A call of
	// an agent that this agent called must pass both policies.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Policy []PolicyRule `json:"policy,omitempty"`

	// hooks are HTTP endpoints that the runner calls, in the order listed, before and after
	// what the agent does. Each can change or refuse it.
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

	// limits bound each Run of the Agent.
	// +kubebuilder:default={}
	// +optional
	Limits Limits `json:"limits,omitempty"`

	// concurrency is how many Runs of this Agent may be active at the same time, 1 to 1,000.
	// Others wait in the order of their creation, reason Queued. A Run that waits for a
	// child Run does not count, and no Run waits for a Run that it is a part of. Default: no
	// limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Concurrency *int32 `json:"concurrency,omitempty"`

	// output makes the agent return a value of a JSON Schema.
	// +optional
	Output *Output `json:"output,omitempty"`

	// workspace says where the agent's files are stored.
	// +kubebuilder:default={}
	// +optional
	Workspace Workspace `json:"workspace,omitempty"`

	// sandbox is the container in which commands of the agent run, without credentials. It
	// is required if a tool needs it, and not created otherwise.
	// +optional
	Sandbox *Sandbox `json:"sandbox,omitempty"`

	// events says which events are written to the pod's log: Full, Steps (without streamed
	// deltas) or None. Default Full.
	// +kubebuilder:validation:Enum=Full;Steps;None
	// +kubebuilder:default=Full
	// +optional
	Events Events `json:"events,omitempty"`

	// podTemplate sets fields of the runner's pod.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// podRetention is how long the pod and its log are kept after the Run has finished; 0s
	// deletes it immediately. Default 1h.
	// +kubebuilder:default="1h"
	// +optional
	PodRetention Duration `json:"podRetention,omitempty"`
}

// Limits bound a Run. The reason of Succeeded=False shows which limit was reached: StepLimit
// (steps, modelCalls and toolCalls), TokenLimit, CostLimit, DurationLimit, PendingTimeout or
// DeadlineExceeded. Usage of agents that the agent calls counts too, and each has its own
// limits.
type Limits struct {
	// steps is the maximum number of turns of the model, 1 to 10,000. Default 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// modelCalls is the maximum number of requests to models, retries included. Default: no
	// limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ModelCalls *int32 `json:"modelCalls,omitempty"`

	// toolCalls is the maximum number of tool calls. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ToolCalls *int32 `json:"toolCalls,omitempty"`

	// depth is how deep agents may call agents, 0 (not at all) to 5. Default 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// tokens is the maximum number of tokens: output, and input that was not read from a
	// prompt cache. Default 2M.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the maximum cost. Every Model that the agent can use needs prices. Default: no
	// limit.
	// +optional
	Cost *Money `json:"cost,omitempty"`

	// duration is how long runners may run, over all attempts together; waiting does not
	// count. Default 1h.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// pending is how long a Run may wait for its pod to start. Default 10m. If an image
	// cannot be pulled, the Run ends after 5m.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Pending *Duration `json:"pending,omitempty"`

	// wait is how long a request waits for a user, also for all waits of an attempt
	// together. Then a question counts as unanswered and a call as denied. Default 168h.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Wait *Duration `json:"wait,omitempty"`

	// whenReached says what happens when steps, tokens or cost are used up. Stop ends the
	// Run. Ask waits with reason AwaitingAnswer until a Decision of type Grant raises the
	// limit. Default Stop.
	// +kubebuilder:validation:Enum=Stop;Ask
	// +optional
	WhenReached WhenReached `json:"whenReached,omitempty"`

	// deadline is the maximum time from the creation of the Run to its end, waiting
	// included. Default: none.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
}

// WhenReached is what happens at a limit.
type WhenReached string

// What happens at a limit.
const (
	WhenReachedStop WhenReached = "Stop"
	WhenReachedAsk  WhenReached = "Ask"
)

// Route names another Model for one use.
type Route struct {
	// for is the use: Summarize (compaction), Subagent (sessions of the tool Task) or Repair
	// (arguments that do not fit their tool).
	// +kubebuilder:validation:Enum=Summarize;Subagent;Repair
	// +required
	For RouteUse `json:"for"`

	// model names the Model in the same namespace; its fallbacks apply too.
	// +required
	Model ObjectName `json:"model"`
}

// RouteUse is what a Model may be used for beside an agent's own turns.
type RouteUse string

// The uses of a Route.
const (
	RouteSummarize RouteUse = "Summarize"
	RouteSubagent  RouteUse = "Subagent"
	RouteRepair    RouteUse = "Repair"
)

// Output declares what the agent returns.
type Output struct {
	// schema is a JSON Schema of type object, at most 16 KiB and 8 levels deep,
	// without $ref, oneOf, anyOf, allOf and not. It becomes the arguments of the
	// tool finish, which is then the only way to end. A schema that is none makes
	// the Agent not Ready, reason OutputSchemaInvalid.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Schema runtime.RawExtension `json:"schema"`
}

// Events is how much of a Run reaches the pod's log.
type Events string

// How much of a Run reaches the pod's log.
const (
	EventsFull  Events = "Full"
	EventsSteps Events = "Steps"
	EventsNone  Events = "None"
)

// PodTemplate has the fields of a runner's pod that you can set.
type PodTemplate struct {
	// runnerImage is the image of a custom runner, built with your extensions. If it cannot
	// be pulled, a Run ends with reason ImagePullFailed; if it is not an image name, with
	// InvalidImage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	RunnerImage string `json:"runnerImage,omitempty"`

	// runAsUser is the user and group of every container of the pod, and of its
	// files; not root. Default 65532.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// labels are added to the pod, in addition to the labels of its Run.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?deckhand[.]dev/'))",message="labels of deckhand.dev are Deckhand's own: choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="a label has a name of at most 317 characters and a value of at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// caBundleConfigMapRef names the key of a ConfigMap, in the same namespace, that
	// holds CA certificates in PEM, which are trusted in addition to the usual ones.
	// Default: the chart's runner.caBundleConfigMapRef. While the ConfigMap is
	// missing the pod does not start, reason Pending.
	// +optional
	CABundleConfigMapRef *ConfigMapKeyRef `json:"caBundleConfigMapRef,omitempty"`

	// proxy is the HTTP proxy through which the runner reaches models, Toolsets and Git.
	// HTTPRequest, Browse and sandbox.egress.hosts do not use it. Default: the chart's
	// runner.proxy.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// imageMirror replaces the registry of every image of the pod:
	// mirror.example.com/hub takes golang:1.26 from
	// mirror.example.com/hub/library/golang:1.26. Default: the chart's imageMirror.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$')",message="must be a registry, maybe with a path, without scheme and without / at the end: write mirror.example.com/hub"
	// +optional
	ImageMirror string `json:"imageMirror,omitempty"`

	// imagePullSecrets are used for the images of the pod, in addition to the chart's
	// runner.imagePullSecrets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// resources of the runner. Default: requests of 10m CPU and 32Mi memory, and
	// a limit of 256Mi memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// nodeSelector selects cluster nodes by label.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the pod run on tainted cluster nodes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// runtimeClassName selects a container runtime, for example gVisor.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`

	// priorityClassName is the pod's priority.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// AgentStatus is what the operator found.
type AgentStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions holds Ready and Durable.
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
