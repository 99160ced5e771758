// Package semconv has the names of all spans, attributes and histograms that Deckhand sends. Names that begin with
// gen_ai and error come from the semantic conventions of OpenTelemetry for generative AI, which are not stable yet:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/
package semconv

// The operations, which are the beginnings of span names.
const (
	OperationChat     = "chat"
	OperationAgent    = "invoke_agent"
	OperationTool     = "execute_tool"
	OperationWorkflow = "invoke_workflow"
	OperationWait     = "wait"
)

// The attributes of the conventions.
const (
	OperationName    = "gen_ai.operation.name"
	ConversationID   = "gen_ai.conversation.id"
	AgentName        = "gen_ai.agent.name"
	ProviderName     = "gen_ai.provider.name"
	RequestModel     = "gen_ai.request.model"
	FinishReasons    = "gen_ai.response.finish_reasons"
	InputTokens      = "gen_ai.usage.input_tokens"                //nolint:gosec // no credential
	OutputTokens     = "gen_ai.usage.output_tokens"               //nolint:gosec // no credential
	CacheReadTokens  = "gen_ai.usage.cache_read.input_tokens"     //nolint:gosec // no credential
	CacheWriteTokens = "gen_ai.usage.cache_creation.input_tokens" //nolint:gosec // no credential
	ReasoningTokens  = "gen_ai.usage.reasoning.output_tokens"     //nolint:gosec // no credential
	ToolName         = "gen_ai.tool.name"
	ToolCallID       = "gen_ai.tool.call.id"
	TokenType        = "gen_ai.token.type" //nolint:gosec // no credential
	ErrorType        = "error.type"
	WorkflowName     = "gen_ai.workflow.name"
	Namespace        = "k8s.namespace.name"
)

// The attributes of the conventions that have content.
const (
	OutputMessages = "gen_ai.output.messages"
	ToolArguments  = "gen_ai.tool.call.arguments"
	ToolResult     = "gen_ai.tool.call.result"
)

// The attributes of Deckhand.
const (
	Run         = "deckhand.run"
	Attempt     = "deckhand.attempt"
	Model       = "deckhand.model"
	CostUSD     = "deckhand.cost_usd"
	Reason      = "deckhand.reason"
	Request     = "deckhand.request"
	RequestKind = "deckhand.request.kind"
)

// The histograms.
const (
	TokenUsage        = "gen_ai.client.token.usage" //nolint:gosec // no credential
	OperationDuration = "gen_ai.client.operation.duration"
)
