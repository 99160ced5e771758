package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// sent is a request with many tools and settings.
func sent() Sent {
	s := Sent{
		Model: "some-model-2", OutputField: "max_tokens", MaxOutput: 32_000, Input: 900, EchoesReasoning: true,
		Settings: map[string]string{
			"temperature": SettingTemperature, "top_p": SettingTopP, "reasoning_effort": SettingReasoning, "thinking": SettingReasoning,
			"max_tokens": SettingOutput, "stream_options": "", "prompt_cache_key": "", "usage": "", "seed": settingExtra + "seed",
		},
		MessageFields: []string{"cache_control", "reasoning_content"},
	}
	for i := range 150 {
		s.Tools = append(s.Tools, fmt.Sprintf("odd__tool_%03d", i))
	}
	s.Tools[3] = "git__create_attachment"
	s.Tools[5] = "Read"
	return s
}

func openAIError(message, param, code string) string {
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": param, "code": code}})
	return string(data)
}

func serverError(message string) string {
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"code": 500, "message": message, "type": "server_error"}})
	return string(data)
}

func claudeError(message string) string {
	data, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": message}})
	return string(data)
}

func TestCausesOfRefusals(t *testing.T) {
	tool := func(name string) model.Refusal { return model.Refusal{Cause: model.CauseTool, Tool: name} }
	only := func(c model.Cause) model.Refusal { return model.Refusal{Cause: c} }
	field := func(name, setting string) model.Refusal {
		return model.Refusal{Cause: model.CauseParameter, Field: name, Setting: setting}
	}
	output := func(limit int64) model.Refusal {
		return model.Refusal{Cause: model.CauseOutputLimit, Field: "max_tokens", Setting: SettingOutput, Limit: limit}
	}
	attachment := "git__create_attachment"
	cases := map[string]struct {
		status int
		body   string
		want   model.Refusal
	}{
		"a schema, by the name of the tool":                       {400, openAIError("Invalid schema for function 'git__create_attachment': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.", "tools[3].function.parameters", "invalid_function_parameters"), tool(attachment)},
		"a schema, by its place at Anthropic":                     {400, claudeError("tools.3.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"), tool(attachment)},
		"a schema, by its place at Gemini":                        {400, openAIError("* GenerateContentRequest.tools[0].function_declarations[3].parameters.properties[tags].items: missing field.", "", ""), tool(attachment)},
		"a schema, by its place at Bedrock":                       {400, `{"message":"The value at toolConfig.tools.3.toolSpec.inputSchema.json.type must be one of the following: object."}`, tool(attachment)},
		"a schema, by its place in FastAPI":                       {422, `{"detail":[{"type":"dict_type","loc":["body","tools",3,"function","parameters"],"msg":"Input should be a valid dictionary"}]}`, tool(attachment)},
		"a schema, by the name after a word":                      {400, openAIError("Could not convert parameters of tool git__create_attachment: array schema missing items", "", ""), tool(attachment)},
		"a property key":                                          {400, claudeError("tools.3.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"), tool(attachment)},
		"a grammar of llama.cpp, without a name":                  {500, serverError("Failed to initialize samplers: failed to parse grammar"), tool("")},
		"a schema of llama.cpp, without a name":                   {500, serverError("JSON schema conversion failed:\nUnrecognized schema: {\"type\":\"date\"}"), tool("")},
		"a schema, without a name":                                {400, openAIError("One or more input_schema values are invalid", "", ""), tool("")},
		"a name of a property is no field":                        {400, openAIError("Invalid schema for function 'git__create_attachment': In context=('properties', 'temperature'), array schema missing items.", "", ""), tool(attachment)},
		"too many tools at OpenAI":                                {400, openAIError("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.", "tools", "array_above_max_length"), model.Refusal{Cause: model.CauseTooManyTools, Limit: 128}},
		"too many tools at Groq":                                  {400, openAIError("maximum number of items is 128 for tools", "", ""), model.Refusal{Cause: model.CauseTooManyTools, Limit: 128}},
		"too many tools in FastAPI":                               {422, `{"detail":[{"loc":["body","tools"],"msg":"List should have at most 64 items after validation, not 150","type":"too_long"}]}`, model.Refusal{Cause: model.CauseTooManyTools, Limit: 64}},
		"too many functions":                                      {400, `{"error":"Too many functions: the limit is 20"}`, model.Refusal{Cause: model.CauseTooManyTools, Limit: 20}},
		"too many tools without a number":                         {400, claudeError("Too many tools were provided."), only(model.CauseTooManyTools)},
		"a name of a tool that is too long":                       {400, openAIError("Invalid 'tools[3].function.name': string too long. Expected a string with maximum length 64.", "tools[3].function.name", "string_above_max_length"), tool(attachment)},
		"roles at Mistral":                                        {400, openAIError("Unexpected role 'user' after role 'tool'", "", ""), only(model.CauseRoles)},
		"roles of a template of Llama":                            {400, openAIError("Conversation roles must alternate user/assistant/user/assistant/...", "", ""), only(model.CauseRoles)},
		"roles in llama.cpp":                                      {500, serverError("Jinja Exception: After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."), only(model.CauseRoles)},
		"turns at Gemini":                                         {400, openAIError("Please ensure that function call turn comes immediately after a user turn or after a function response turn.", "", ""), only(model.CauseRoles)},
		"a last role":                                             {400, `{"object":"error","message":"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant","type":"invalid_request_message_order"}`, only(model.CauseRoles)},
		"reasoning is missing at Kimi":                            {400, openAIError("thinking is enabled but reasoning_content is missing in assistant tool call message at index 4", "", ""), only(model.CauseReasoningMissing)},
		"reasoning is missing at DeepSeek":                        {400, openAIError("The `reasoning_content` in the thinking mode must be passed back to the API.", "", ""), only(model.CauseReasoningMissing)},
		"thinking is missing on the other wire":                   {400, claudeError("messages.3.content.0: a tool_use block must be preceded by a thinking block; provide the thinking block of this turn"), only(model.CauseReasoningMissing)},
		"reasoning is not wanted at Groq":                         {400, openAIError("'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]", "", ""), field("reasoning_content", "")},
		"reasoning is not wanted in FastAPI":                      {422, `{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":"x"}]}`, field("reasoning_content", "")},
		"a mark is not wanted":                                    {400, claudeError("system.0.cache_control: Extra inputs are not permitted"), field("cache_control", "")},
		"tools with reasoning at OpenAI":                          {400, openAIError("Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", "reasoning_effort", "unsupported_value"), only(model.CauseToolsWithReasoning)},
		"tools with thinking elsewhere":                           {400, openAIError("Tool calls are not available while thinking mode is on", "", ""), only(model.CauseToolsWithReasoning)},
		"a model with the Responses API only":                     {404, openAIError("This model is only supported in v1/responses and not in v1/chat/completions.", "model", ""), only(model.CauseOtherAPI)},
		"a model without chat":                                    {404, openAIError("This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?", "model", ""), only(model.CauseOtherAPI)},
		"a parameter by param":                                    {400, openAIError("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", "temperature", "unsupported_value"), field("temperature", SettingTemperature)},
		"a parameter at Anthropic":                                {400, claudeError("`temperature` and `top_p` cannot both be specified for this model. Please use only one."), field("temperature", SettingTemperature)},
		"a parameter in FastAPI":                                  {422, `{"detail":[{"type":"extra_forbidden","loc":["body","top_p"],"msg":"Extra inputs are not permitted"}]}`, field("top_p", SettingTopP)},
		"a part of a parameter":                                   {400, claudeError("thinking.budget_tokens: Extra inputs are not permitted"), field("thinking", SettingReasoning)},
		"an extra parameter":                                      {400, openAIError("Unrecognized request argument supplied: 'seed'", "", ""), field("seed", "inference.extra.seed")},
		"a parameter of Deckhand":                                 {400, openAIError("Unrecognized request argument supplied: prompt_cache_key", "", ""), field("prompt_cache_key", "")},
		"a parameter of Deckhand, by a decoder":                   {400, `{"error":"json: unknown field \"stream_options\""}`, field("stream_options", "")},
		"a parameter of Deckhand, in Python":                      {500, serverError("AsyncCompletions.create() got an unexpected keyword argument 'prompt_cache_key'"), field("prompt_cache_key", "")},
		"another name of the limit":                               {400, openAIError("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter"), model.Refusal{Cause: model.CauseParameter, Field: "max_tokens", Setting: SettingOutput, Instead: "max_completion_tokens"}},
		"a limit above that of OpenAI's model":                    {400, openAIError("max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.", "max_tokens", "invalid_value"), output(16_384)},
		"a limit above that of Claude":                            {400, claudeError("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022"), output(8192)},
		"a limit above that at Groq":                              {400, openAIError("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", "", ""), output(8191)},
		"a limit outside of a range":                              {400, openAIError("Invalid max_tokens value, the valid range of max_tokens is [1, 8,192]", "", ""), output(8192)},
		"a limit above that at Bedrock":                           {400, `{"message":"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."}`, output(4095)},
		"a limit above the rest of a window":                      {400, openAIError("This model's maximum context length is 8192 tokens. However, you requested 32500 tokens (500 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.", "messages", "context_length_exceeded"), output(5769)},
		"a limit above the rest, in vLLM":                         {400, `{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 1000 input tokens (32000 > 8192 - 1000). None","type":"BadRequestError","param":null,"code":400}`, output(5394)},
		"a limit above the rest, in another":                      {422, `{"error":"Input validation error: inputs tokens + max_new_tokens must be <= 8193. Given: 500 inputs tokens and 32000 max_new_tokens","error_type":"validation"}`, output(5769)},
		"no credit":                                               {402, `{"error":{"message":"Insufficient Balance"}}`, only(model.CausePayment)},
		"no credit at OpenRouter":                                 {402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 4211.","code":402}}`, only(model.CausePayment)},
		"no credit at Anthropic":                                  {400, claudeError("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), only(model.CausePayment)},
		"no credit at xAI":                                        {403, `{"code":"The caller does not have permission","error":"Your team has either used all available credits or reached its monthly spending limit."}`, only(model.CausePayment)},
		"a page of nginx":                                         {404, "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center></body></html>", only(model.CausePage)},
		"a page of a firewall":                                    {403, "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title><style>body{}</style></head></html>", only(model.CausePage)},
		"a template without tools in llama.cpp":                   {500, serverError("tools param requires --jinja flag"), only(model.CauseNoTools)},
		"a model without tools in Ollama":                         {400, `{"error":{"message":"registry.ollama.ai/library/gemma3:latest does not support tools","type":"api_error"}}`, only(model.CauseNoTools)},
		"a server without tools: vLLM":                            {400, `{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`, only(model.CauseNoTools)},
		"no provider with tools at OpenRouter":                    {404, `{"error":{"message":"No endpoints found that support tool use. Try disabling \"Bash\".","code":404}}`, only(model.CauseNoTools)},
		"a template that fails":                                   {500, serverError("Value is not callable: null at row 1, column 62:\n{%- for tool in x -%}"), only(model.CauseServer)},
		"a server without chat":                                   {500, serverError("This server does not support chat completions. Start it without `--embeddings`"), only(model.CauseServer)},
		"a server without a template":                             {400, openAIError("As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the tokenizer does not define one.", "", ""), only(model.CauseServer)},
		"a model without tools, with HTTP 500":                    {500, serverError("this model does not support tools"), only(model.CauseNoTools)},
		"a model without images":                                  {500, serverError("the model does not support image input"), only(model.CauseServer)},
		"a template that refuses a role":                          {500, serverError("chat template error: the role 'system' is not known"), only(model.CauseServer)},
		"a template that raises":                                  {500, serverError("raise_exception: only one tool call at once"), only(model.CauseServer)},
		"a server that does not do it at all":                     {501, serverError("This feature is not implemented"), only(model.CauseServer)},
		"an unknown model":                                        {400, openAIError("The model `some-model-2` does not exist or you do not have access to it.", "", ""), only(model.CauseModel)},
		"a model without access: Vertex":                          {404, `{"error":{"code":404,"message":"Publisher Model was not found or your project does not have access to it.","status":"NOT_FOUND"}}`, only(model.CauseModel)},
		"an invalid model, behind LiteLLM":                        {400, `{"error":{"message":"/chat/completions: Invalid model name passed in model=some-model-2. Call /v1/models","type":"None","param":"None","code":"400"}}`, only(model.CauseModel)},
		"a model without thinking in Ollama":                      {400, `{"error":{"message":"\"qwen2.5:7b\" does not support thinking","type":"api_error"}}`, field("reasoning_effort", SettingReasoning)},
		"a level of reasoning that is not known":                  {400, `{"error":{"message":"invalid reasoning value: high (must be one of low, medium)","type":"invalid_request_error"}}`, field("reasoning_effort", SettingReasoning)},
		"a model without access":                                  {403, openAIError("Project proj_1 does not have access to model some-model-2", "", "model_not_found"), only(model.CauseModel)},
		"reasoning is missing, in an invalid message":             {400, openAIError("invalid message at index 2: reasoning_content is required when tool_calls are present", "", ""), only(model.CauseReasoningMissing)},
		"reasoning is mandatory":                                  {400, openAIError("reasoning_content is mandatory when tool_calls are present", "", ""), only(model.CauseReasoningMissing)},
		"reasoning is needed":                                     {422, `{"error":"assistant messages need their reasoning_content"}`, only(model.CauseReasoningMissing)},
		"reasoning is empty":                                      {400, openAIError("Invalid request: reasoning_content cannot be empty", "", ""), only(model.CauseReasoningMissing)},
		"reasoning is lacking":                                    {400, openAIError("message 4 lacks reasoning_content", "", ""), only(model.CauseReasoningMissing)},
		"a property that money has, too":                          {400, openAIError("Invalid schema for function 'Read': property 'balance' is of an unknown type", "", ""), tool("Read")},
		"roles near a quotation about money":                      {400, openAIError("Unexpected role 'user' after role 'tool' near 'fill in the credit card form'", "", ""), only(model.CauseRoles)},
		"a format of cards":                                       {400, openAIError("Invalid 'tools[3].function.parameters': unknown format 'credit-card'", "", ""), tool(attachment)},
		"a field that is named after bills":                       {400, openAIError("unknown parameter: billing_tag", "", ""), model.Refusal{}},
		"an empty wallet":                                         {403, `{"error":"Your wallet is empty. Please top up"}`, only(model.CausePayment)},
		"tools unless reasoning is off":                           {400, openAIError("Tool use needs /v1/responses unless reasoning is off for this model.", "", ""), only(model.CauseToolsWithReasoning)},
		"tools only in another API while it reasons":              {400, openAIError("This model works with tools only in the Responses API while it reasons", "", ""), only(model.CauseToolsWithReasoning)},
		"another name of the limit alone":                         {400, openAIError("This deployment wants max_completion_tokens.", "", ""), model.Refusal{Cause: model.CauseParameter, Field: "max_tokens", Setting: SettingOutput, Instead: "max_completion_tokens"}},
		"too many functions, by both numbers":                     {400, openAIError("You may define 128 functions; 150 were defined", "", ""), model.Refusal{Cause: model.CauseTooManyTools, Limit: 128}},
		"too many elements":                                       {400, `{"detail":"array size 150 is above 128"}`, model.Refusal{Cause: model.CauseTooManyTools, Limit: 128}},
		"a number of tools":                                       {422, `{"message":"The number of tools (150) must not be greater than 64"}`, model.Refusal{Cause: model.CauseTooManyTools, Limit: 64}},
		"turns in another order":                                  {400, openAIError("A user turn may not come directly behind a tool turn", "", ""), only(model.CauseRoles)},
		"a schema, by the name alone":                             {400, openAIError("odd__tool_007: parameters.required must be an array", "", ""), tool("odd__tool_007")},
		"a limit above the rest, of which more than half is used": {400, openAIError("This model's maximum context length is 8192 tokens. However, you requested 37000 tokens (5000 in the messages, 32000 in the completion).", "", ""), output(2394)},
		"a limit above the window":                                {400, openAIError("max_tokens 32000 > context 8192", "", ""), output(5469)},
		"something else":                                          {400, openAIError("The request could not be processed.", "", ""), model.Refusal{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := classified(tc.status, tc.body)
			bad, ok := errors.AsType[*model.BadRequestError](err)
			if !ok {
				t.Fatalf("got %#v", err)
			}
			if diff := cmp.Diff(tc.want, bad.Refusal); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func classified(status int, body string) error {
	x := &Call{client: New(provider.Options{}, 0, nil), Sent: sent()}
	return x.classify(status, http.Header{}, read([]byte(body)))
}

// A failure that passes is never taken for a refusal, whatever it speaks of.
func TestFailuresThatPassAreRetried(t *testing.T) {
	for name, body := range map[string]string{
		"a plain failure":              serverError("Internal server error"),
		"a failure without words":      `{}`,
		"a failure of OpenAI":          serverError("The server had an error while processing your request. Sorry about that! You can retry your request, or contact us through our help center at help.openai.com if you keep seeing this error."),
		"a tool call that is no JSON":  serverError("Failed to parse input at pos 17: cannot parse tool call <tool_call>"),
		"no memory":                    serverError("CUDA error: cannot allocate 512 MiB"),
		"a database behind a gateway":  serverError("relation \"schema_migrations\" could not be read"),
		"a model that loads":           serverError("The model does not support requests yet: loading"),
		"a pool without space":         serverError("max_tokens bucket is empty, try again later"),
		"a page":                       "<html><title>500 Internal Server Error</title></html>",
		"a text":                       "this server does not support tools",
		"an engine that died":          serverError("EngineCore encountered an issue. See stack trace (above) for the root cause."),
		"a device":                     serverError("CUDA error: operation not supported on device (worker 0)"),
		"two devices":                  serverError("EngineCore died: nccl p2p is not supported between GPU 0 and 1"),
		"a full disk":                  serverError("The template could not be rendered: disk full"),
		"a template without a reason":  serverError("The template could not be rendered"),
		"another part of a server":     serverError("unsupported response from engine core"),
		"a part of another name":       serverError("unsupported response from the backend"),
		"a device, with a flag":        serverError("CUDA error: device-side assert triggered. Start with --enforce-eager"),
		"a message about a connection": serverError("tool server not available: connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := classified(500, body); !model.Transient(err) {
				t.Errorf("got %#v", err)
			}
		})
	}
	for _, status := range []int{502, 503, 504, 529} {
		if err := classified(status, serverError("tools param requires --jinja flag")); !model.Transient(err) {
			t.Errorf("HTTP %d is %#v", status, err)
		}
	}
}

// A request that takes most of the window is compacted, whatever the limit of the answer is.
func TestALongRequestIsTooLong(t *testing.T) {
	for name, body := range map[string]string{
		"at Anthropic": claudeError("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again"),
		"at OpenAI":    openAIError("This model's maximum context length is 8192 tokens. However, you requested 39000 tokens (7000 in the messages, 32000 in the completion).", "messages", "context_length_exceeded"),
	} {
		t.Run(name, func(t *testing.T) {
			err := classified(400, body)
			if _, ok := errors.AsType[*model.ContextTooLongError](err); !ok {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// Numbers whose sum is stated say more than an estimate, which may be far from what the server counts.
func TestTheWindowOfAMessage(t *testing.T) {
	s := sent()
	s.Input = 9000
	r := newRefusal(s, http.StatusBadRequest, &errorReport{})
	if window, input := r.window([]int64{8192, 32_500, 500, 32_000}); window != 8192 || input != 500 {
		t.Errorf("got %d and %d", window, input)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int64{
		"8192 > 4,096 tokens, [1, 2] of gpt-5.6 at 2024-10-21, claude-3-5-haiku-20241022": {8192, 4096, 1, 2},
		"at most 16384. `300`, x=7; 12.5 v2":                                              {16384, 300, 7},
		"":                                                                                nil,
	} {
		if diff := cmp.Diff(want, numbers(text)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}
