package telemetry

// The operations, with which the names of spans begin.
const (
	opChat  = "chat"
	opAgent = "invoke_agent"
	opTool  = "execute_tool"
	opWait  = "wait"
)

// The attributes. Those that begin with gen_ai and error are of the conventions of OpenTelemetry,
// which are not stable yet.
const (
	keyOperation    = "gen_ai.operation.name"
	keyConversation = "gen_ai.conversation.id"
	keyAgent        = "gen_ai.agent.name"
	keyProvider     = "gen_ai.provider.name"
	keyRequestModel = "gen_ai.request.model"
	keyFinish       = "gen_ai.response.finish_reasons"
	keyInput        = "gen_ai.usage.input_tokens"
	keyOutput       = "gen_ai.usage.output_tokens"
	keyCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	keyCacheWrite   = "gen_ai.usage.cache_creation.input_tokens"
	keyReasoning    = "gen_ai.usage.reasoning.output_tokens"
	keyToolName     = "gen_ai.tool.name"
	keyToolCall     = "gen_ai.tool.call.id"
	keyTokenType    = "gen_ai.token.type" //nolint:gosec // no credential
	keyErrorType    = "error.type"

	keyRun     = "deckhand.run"
	keyAttempt = "deckhand.attempt"
	keyModel   = "deckhand.model"
	keyCost    = "deckhand.cost_usd"
	keyReason  = "deckhand.reason"
	keyRequest = "deckhand.request"
	keyKind    = "deckhand.request.kind"

	// With content.
	keyMessages  = "gen_ai.output.messages"
	keyArguments = "gen_ai.tool.call.arguments"
	keyResult    = "gen_ai.tool.call.result"
)

// providers are the names that the conventions have for providers; others keep theirs, in lower
// case.
var providers = map[string]string{"Azure": "azure.ai.openai", "Kimi": "moonshot_ai"}
