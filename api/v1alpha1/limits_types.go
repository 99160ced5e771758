package v1alpha1

// AgentLimits bound each Run of an Agent.
type AgentLimits struct {
	Limits `json:",inline"`

	// whenReached is what happens when steps, tokens or cost are used up. Stop ends the Run.
	// Ask waits with reason AwaitingAnswer until a Decision of type Grant raises the limit.
	// Default Stop.
	// +kubebuilder:validation:Enum=Stop;Ask
	// +optional
	WhenReached WhenReached `json:"whenReached,omitempty"`
}

// Limits bound a Run. When a limit is reached, the Run ends with Succeeded=False and reason
// StepLimit (steps, modelCalls, toolCalls), TokenLimit, CostLimit, DurationLimit,
// PendingTimeout or DeadlineExceeded.
type Limits struct {
	// steps is the maximum number of turns of the model, 1 to 10,000. Reason when reached:
	// StepLimit. Default 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// modelCalls is the maximum number of requests to models, retries included, 1 to 100,000.
	// Reason when reached: StepLimit. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ModelCalls *int32 `json:"modelCalls,omitempty"`

	// toolCalls is the maximum number of tool calls, 1 to 100,000. Reason when reached:
	// StepLimit. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ToolCalls *int32 `json:"toolCalls,omitempty"`

	// depth is how deep agents may call agents, 0 (not at all) to 5. A deeper call fails with
	// an error that the model reads. Default 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// tokens is the maximum number of tokens: output tokens, and input tokens that were not
	// read from a prompt cache. An integer, or one with the suffix k, M or G. Reason when
	// reached: TokenLimit. Default 2M.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the maximum cost in US dollars, for example 1.50USD. Every Model that the agent
	// can use needs prices, otherwise the Agent is not Ready, reason PricesMissing. Reason when
	// reached: CostLimit. Default: no limit.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0+([.]0+)?USD$')",message="must be more than 0USD: write 0.50USD, or remove cost"
	// +optional
	Cost *Money `json:"cost,omitempty"`

	// duration is the maximum running time of all attempts together, 1s to 720h. Waiting for
	// users or child Runs does not count. Reason when reached: DurationLimit. Default 1h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// pending is how long the Run may wait until it can start: for objects that do not exist
	// yet, a volume or a cluster node, 1s to 720h. For a Run of a Workflow it is also how long
	// it may wait, while none of its child Runs is active, for a quota or a permission to
	// create the next. Reason when reached: PendingTimeout. A quota that refuses the child Run
	// of an agent for so long is reported to the agent as the result of its call. An image that
	// cannot be pulled ends the Run after 5m, reason ImagePullFailed. Default 10m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Pending *Duration `json:"pending,omitempty"`

	// wait is how long a request to a user stays open, 1s to 720h. After it a question counts
	// as unanswered and a call as denied, and the agent continues. It also bounds a wait that a
	// model provider asked for (Retry-After), and all waits of one attempt together. Default
	// 168h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Wait *Duration `json:"wait,omitempty"`

	// modelOutage is how long the Run waits for a model that is unavailable and whose provider
	// does not say for how long, 0s to 720h. Waiting for a model does not count against
	// duration; deadline bounds it. A time that the provider names (Retry-After) is waited for
	// up to limits.wait instead. Reason when reached: ModelUnavailable. With 0s the Run waits at
	// most five times after 429 and 529, and not after other errors. A missing key is waited for at
	// least two minutes. Default 30m.
	// +optional
	ModelOutage *Duration `json:"modelOutage,omitempty"`

	// deadline is the maximum time from the creation of the Run to its end, waiting included,
	// 1s to 720h. Reason when reached: DeadlineExceeded. Default: none.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
}

// WhenReached is what happens when a limit is reached.
type WhenReached string

// What happens at a limit.
const (
	WhenReachedStop WhenReached = "Stop"
	WhenReachedAsk  WhenReached = "Ask"
)
