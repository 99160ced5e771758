package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Agent is who does the work: instructions, a model, tools and limits.
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

	// spec is who does the work.
	// +required
	Spec AgentSpec `json:"spec"`

	// status is what the operator found.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status AgentStatus `json:"status,omitempty"`
}

// AgentSpec is who does the work. It may be changed at any time; a Run under
// way keeps the version that it started with.
type AgentSpec struct {
	// description says, for people and other agents, what this one is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// instructions are the system prompt, at most 64 KiB. ${{ input.x }} stands for
	// the value x of the input; $${{ is a literal ${{. A name that input does not
	// declare makes the Agent not Ready, reason InstructionsInvalid.
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

	// tools are what the agent may do beside finish and reject, which it always
	// may. Default: none. Two whose names a model could not tell apart make the
	// Agent not Ready, reason ToolNameTaken.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.map(t, t.?name.orValue(t.?builtin.orValue(t.?agent.orValue(t.?custom.orValue(t.?toolset.orValue('')))))).all(n, self.exists_one(u, u.?name.orValue(u.?builtin.orValue(u.?agent.orValue(u.?custom.orValue(u.?toolset.orValue(''))))) == n))",message="each tool may be listed once: give one of the two another name"
	// +optional
	Tools []Tool `json:"tools,omitempty"`

	// policy decides which calls are made: the answer of the first rule that a call
	// matches. No rule: Allow. Approvals of tools are asked after these. A rule
	// that does not compile makes the Agent not Ready, reason PolicyInvalid. A call
	// of an agent that this one gave work to must pass that one's policy too.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Policy []PolicyRule `json:"policy,omitempty"`

	// hooks are asked over HTTP, in the order listed, before or after what the
	// agent does; each may change it or forbid it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Hooks []Hook `json:"hooks,omitempty"`

	// parallelTools is how many calls of one turn run at once, 1 to 32. Default
	// 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default=10
	// +optional
	ParallelTools int32 `json:"parallelTools,omitempty"`

	// limits end a Run that goes too far.
	// +kubebuilder:default={}
	// +optional
	Limits Limits `json:"limits,omitempty"`

	// concurrency is how many Runs of this Agent may be active at once, 1 to 1,000;
	// the others wait in the order of their creation, reason Queued. A Run that
	// waits for a child does not count, and no Run waits for one that it is a part
	// of. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Concurrency *int32 `json:"concurrency,omitempty"`

	// output makes the agent answer with a value of a schema.
	// +optional
	Output *Output `json:"output,omitempty"`

	// workspace is where the agent's files live.
	// +kubebuilder:default={}
	// +optional
	Workspace Workspace `json:"workspace,omitempty"`

	// sandbox is where commands of the agent run: a container that holds no
	// credential. Required where a tool needs one; without such a tool there is
	// none.
	// +optional
	Sandbox *Sandbox `json:"sandbox,omitempty"`

	// events is how much of a Run reaches the pod's log: Full, Steps (no
	// streamed deltas) or None. Default Full.
	// +kubebuilder:validation:Enum=Full;Steps;None
	// +kubebuilder:default=Full
	// +optional
	Events Events `json:"events,omitempty"`

	// podTemplate is passed through to the runner's pod.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// podRetention is how long the pod, and with it its log, stays after the Run
	// has finished; 0s deletes it at once. Default 1h.
	// +kubebuilder:default="1h"
	// +optional
	PodRetention Duration `json:"podRetention,omitempty"`
}

// Limits end a Run that goes too far. A reached one shows as the reason of
// Succeeded=False: StepLimit (steps, modelCalls and toolCalls), TokenLimit,
// CostLimit, DurationLimit, PendingTimeout or DeadlineExceeded. Agents that the
// agent calls count too, each within its own limits.
type Limits struct {
	// steps is the most turns of the model, 1 to 10,000. Default 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// modelCalls is the most requests to models, retries included. Default: no
	// limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ModelCalls *int32 `json:"modelCalls,omitempty"`

	// toolCalls is the most tool calls. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ToolCalls *int32 `json:"toolCalls,omitempty"`

	// depth is how deep agents may call agents, 0 to 5; 0: not at all. Default 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// tokens is the most tokens, input not read from a cache plus output.
	// Default 2M.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the most money. Default: no limit. It needs prices on every Model
	// that the agent may reach.
	// +optional
	Cost *Money `json:"cost,omitempty"`

	// duration is the longest time that runners may be alive, over all attempts;
	// waiting does not count. Default 1h.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// pending is the longest single wait for a pod to start. Default 10m. An image
	// that cannot be pulled is given up after 5m.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Pending *Duration `json:"pending,omitempty"`

	// wait is the longest wait for a person, and all waits of one attempt together
	// get no more; then a question counts as not answered. Default 168h.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Wait *Duration `json:"wait,omitempty"`

	// whenReached is what happens when steps, tokens or cost are used up. Stop: the
	// Run ends. Ask: it asks for more, with reason AwaitingAnswer, and a Decision
	// of type Grant gives it. Default Stop.
	// +kubebuilder:validation:Enum=Stop;Ask
	// +optional
	WhenReached WhenReached `json:"whenReached,omitempty"`

	// deadline is the longest time from the creation of the Run to its end,
	// whatever it waits for. Default: none.
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

// Route names another Model for a use.
type Route struct {
	// for is the use: Summarize (what no longer fits the window), Subagent (those
	// of the tool Task) or Repair (of arguments that do
	// not fit their tool).
	// +kubebuilder:validation:Enum=Summarize;Subagent;Repair
	// +required
	For RouteUse `json:"for"`

	// model names the Model, in the same namespace; its fallbacks go with it.
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

// Output is what the agent answers with.
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

// PodTemplate is what of a pod may be chosen; everything else is Deckhand's.
type PodTemplate struct {
	// runnerImage replaces the runner, for runners built with extensions of your
	// own. One that cannot be pulled ends a Run with reason ImagePullFailed, one
	// that is no image name with InvalidImage.
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

	// labels are set on the pod, beside those of its Run.
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

	// proxy is the HTTP proxy by which the runner reaches models, Toolsets and Git.
	// HTTPRequest, Browse and sandbox.egress.hosts do not use it.
	// Default: the chart's runner.proxy.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// imageMirror replaces the registry of every image of the pod:
	// mirror.example.com/hub takes golang:1.26 from
	// mirror.example.com/hub/library/golang:1.26. Default: the chart's imageMirror.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$')",message="must be a registry, maybe with a path, without scheme and without / at the end: write mirror.example.com/hub"
	// +optional
	ImageMirror string `json:"imageMirror,omitempty"`

	// imagePullSecrets are for the images of the pod, beside the chart's
	// runner.imagePullSecrets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// resources of the runner. Default: requests of 10m CPU and 32Mi memory, and
	// a limit of 256Mi memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// nodeSelector chooses nodes by label.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the pod onto tainted nodes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// runtimeClassName chooses a container runtime, gVisor for one.
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
