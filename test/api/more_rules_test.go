package api_test

import (
	"strings"
	"testing"
)

// modelCases are the rules of what a Model may be.
var modelCases = map[string]ruleCase{
	"a Model of Anthropic needs no endpoint":        {model, `spec: {provider: Anthropic}`, ``},
	"nor one of OpenRouter":                         {model, `spec: {provider: OpenRouter}`, ``},
	"nor one of Ollama":                             {model, `spec: {provider: Ollama}`, ``},
	"one that is compatible to Anthropic does":      {model, `spec: {provider: AnthropicCompatible}`, "provider AnthropicCompatible needs an endpoint"},
	"and one of Azure":                              {model, `spec: {provider: Azure}`, "provider Azure needs an endpoint"},
	"Azure has a deployment and a version":          {model, `spec: {provider: Azure, endpoint: "https://x.openai.azure.com", azure: {deployment: d, apiVersion: "2026-01-01"}}`, ``},
	"Azure may be called as the model is":           {model, `spec: {provider: Azure, endpoint: "https://x.openai.azure.com"}`, ``},
	"a deployment stands below azure":               {model, `spec: {provider: Azure, endpoint: "https://x.openai.azure.com", deployment: d}`, `unknown field "spec.deployment"`},
	"others have nothing of Azure":                  {model, `spec: {azure: {deployment: d}}`, "azure is for provider Azure, and this is provider OpenAI: remove azure"},
	"DeepSeek speaks both formats":                  {model, `spec: {provider: DeepSeek, deepSeek: {format: Anthropic}}`, ``},
	"Kimi too":                                      {model, `spec: {provider: Kimi, kimi: {format: OpenAI}}`, ``},
	"the others have nothing of DeepSeek":           {model, `spec: {provider: Kimi, deepSeek: {format: OpenAI}}`, "deepSeek is for provider DeepSeek, and this is provider Kimi: remove deepSeek"},
	"the others have nothing of Kimi":               {model, `spec: {provider: DeepSeek, kimi: {format: OpenAI}}`, "kimi is for provider Kimi, and this is provider DeepSeek: remove kimi"},
	"a format is one of two":                        {model, `spec: {provider: Kimi, kimi: {format: Gemini}}`, `supported values: "OpenAI", "Anthropic"`},
	"Custom names a driver":                         {model, `spec: {provider: Custom, custom: {driver: acme}}`, ``},
	"Custom cannot go without":                      {model, `spec: {provider: Custom}`, "write custom: {driver: parrot}"},
	"custom has a driver":                           {model, `spec: {provider: Custom, custom: {}}`, "spec.custom.driver: Required"},
	"nobody else has a driver":                      {model, `spec: {custom: {driver: acme}}`, "custom is for provider Custom, and this is provider OpenAI: remove custom"},
	"two providers cannot be meant":                 {model, `spec: {provider: Azure, endpoint: "https://x.openai.azure.com", azure: {deployment: d}, custom: {driver: acme}}`, "custom is for provider Custom"},
	"a Model may have fallbacks":                    {model, `spec: {fallbacks: [a, b]}`, ``},
	"a Model is no fallback of itself":              {model, `spec: {fallbacks: [a, m]}`, "no fallback of itself"},
	"a fallback is named once":                      {model, `spec: {fallbacks: [a, a]}`, `Duplicate value: "a"`},
	"fallbacks are at most 8":                       {model, `spec: {fallbacks: [a, b, c, d, e, f, g, h, i]}`, "must have at most 8 items"},
	"a fallback is the name of an object":           {model, `spec: {fallbacks: [GPT]}`, "must be the name of an object"},
	"the most output tokens are tokens":             {model, `spec: {maxOutputTokens: 1.5}`, "spec.maxOutputTokens"},
	"a key of a Secret is one":                      {model, `spec: {apiKeySecretRef: {name: s, key: a/b}}`, "must be a key of a Secret"},
	"a key of a Secret does not climb":              {model, `spec: {apiKeySecretRef: {name: s, key: ..}}`, "must be a key of a Secret"},
	"a key of a Secret may look like a file's name": {model, `spec: {apiKeySecretRef: {name: s, key: .api_KEY-1.txt}}`, ``},
}

// toolCases are the rules of what an Agent's tools may be.
var toolCases = map[string]ruleCase{
	"every built-in tool":                          {agent, `spec: {tools: [{builtin: Files}, {builtin: Think}, {builtin: HTTPRequest}, {builtin: WebSearch}, {builtin: Browse}, {builtin: Ask}, {builtin: Task}, {builtin: Recall}]}`, ``},
	"a tool is something":                          {agent, `spec: {tools: [{timeout: 5s}]}`, "a tool is one of builtin, agent, toolset and custom"},
	"a tool is not two things":                     {agent, `spec: {tools: [{builtin: Files, agent: b}]}`, "a tool is one of builtin, agent, toolset and custom"},
	"another Agent":                                {agent, `spec: {tools: [{agent: reviewer, delegation: {mode: Pod}}]}`, ``},
	"another Agent under two names":                {agent, `spec: {tools: [{agent: reviewer}, {agent: reviewer, name: second_opinion}]}`, ``},
	"another Agent whose name no model takes":      {agent, `spec: {tools: [{agent: review.er}]}`, "models take no tool of that name"},
	"but under a name that models take":            {agent, `spec: {tools: [{agent: review.er, name: reviewer}]}`, ``},
	"an Agent is the name of an object":            {agent, `spec: {tools: [{agent: Reviewer}]}`, "must be the name of an object"},
	"an Agent works in a child Run":                {agent, `spec: {tools: [{agent: reviewer, delegation: {mode: Run}}]}`, ``},
	"an Agent works in the pod or in a Run":        {agent, `spec: {tools: [{agent: reviewer, delegation: {mode: Job}}]}`, `supported values: "Pod", "Run"`},
	"only an Agent is delegated to":                {agent, `spec: {tools: [{builtin: Files, delegation: {mode: Pod}}]}`, "delegation is for entries that name an Agent"},
	"a mode stands below delegation":               {agent, `spec: {tools: [{agent: reviewer, mode: Pod}]}`, `unknown field "spec.tools[0].mode"`},
	"a custom tool":                                {agent, `spec: {tools: [{custom: lint}]}`, ``},
	"a custom tool's name is one":                  {agent, `spec: {tools: [{custom: "lint it"}]}`, "must be the name of a tool"},
	"a name is one that models take":               {agent, `spec: {tools: [{custom: lint, name: "lint it"}]}`, "must be a name that models take"},
	"a name is at most 64 letters":                 {agent, `spec: {tools: [{custom: lint, name: ` + strings.Repeat("a", 65) + `}]}`, "64"},
	"a built-in tool has its own":                  {agent, `spec: {tools: [{builtin: Files, name: files}]}`, "name is for agent and custom"},
	"two tools are not called the same":            {agent, `spec: {tools: [{agent: reviewer}, {custom: x, name: reviewer}]}`, "give one of the two another name"},
	"hosts of a request":                           {agent, `spec: {tools: [{builtin: HTTPRequest, httpRequest: {hosts: [api.example.com, "*.example.org"]}}]}`, ``},
	"hosts of Browse":                              {agent, `spec: {tools: [{builtin: Browse, browse: {hosts: [example.com]}}]}`, ``},
	"no hosts of files":                            {agent, `spec: {tools: [{builtin: Files, hosts: [example.com]}]}`, `unknown field "spec.tools[0].hosts"`},
	"no hosts of an Agent":                         {agent, `spec: {tools: [{agent: reviewer, browse: {hosts: [example.com]}}]}`, "browse is for the entry - builtin: Browse"},
	"a host is no URL":                             {agent, `spec: {tools: [{builtin: HTTPRequest, httpRequest: {hosts: ["https://example.com"]}}]}`, "must be a host in lower case"},
	"a host has no port":                           {agent, `spec: {tools: [{builtin: HTTPRequest, httpRequest: {hosts: ["example.com:8080"]}}]}`, "must be a host in lower case"},
	"a star stands for whole labels":               {agent, `spec: {tools: [{builtin: HTTPRequest, httpRequest: {hosts: ["*example.com"]}}]}`, "must be a host in lower case"},
	"a star alone is no host":                      {agent, `spec: {tools: [{builtin: HTTPRequest, httpRequest: {hosts: ["*"]}}]}`, "must be a host in lower case"},
	"a host is listed once":                        {agent, `spec: {tools: [{builtin: HTTPRequest, httpRequest: {hosts: [a.b, a.b]}}]}`, "Duplicate value"},
	"a search has an endpoint and a key":           {agent, `spec: {tools: [{builtin: WebSearch, webSearch: {endpoint: "https://search.example", apiKeySecretRef: {name: tavily, key: api-key}}}]}`, ``},
	"an endpoint of a search is a URL":             {agent, `spec: {tools: [{builtin: WebSearch, webSearch: {endpoint: search.example}}]}`, "write https://host"},
	"a request does not search":                    {agent, `spec: {tools: [{builtin: HTTPRequest, webSearch: {endpoint: "https://a.b"}}]}`, "webSearch is for the entry - builtin: WebSearch"},
	"commands make no requests":                    {agent, `spec: {tools: [{builtin: Shell, httpRequest: {hosts: [a.b]}}]}`, "httpRequest is for the entry - builtin: HTTPRequest"},
	"hosts of a request are not those of pages":    {agent, `spec: {tools: [{builtin: HTTPRequest, browse: {hosts: [a.b]}}]}`, "browse is for the entry - builtin: Browse"},
	"a request says that it is one":                {agent, `spec: {tools: [{httpRequest: {hosts: [a.b]}}]}`, "write - builtin: Files"},
	"the old name of a request":                    {agent, `spec: {tools: [{builtin: HttpRequest}]}`, `"HTTPRequest"`},
	"settings of a custom tool":                    {agent, `spec: {tools: [{custom: crm, settings: {endpoint: "https://crm.example", apiKeySecretRef: {name: crm, key: token}}}]}`, ``},
	"only a custom tool has settings":              {agent, `spec: {tools: [{builtin: WebSearch, settings: {endpoint: "https://a.b"}}]}`, "settings are for custom tools"},
	"an endpoint of a custom tool is a URL":        {agent, `spec: {tools: [{custom: crm, settings: {endpoint: crm.example}}]}`, "write https://host"},
	"files that are only read":                     {agent, `spec: {tools: [{builtin: Files, allow: [Read, Ls, Glob, Grep]}]}`, ``},
	"files without a tool":                         {agent, `spec: {tools: [{builtin: Files, deny: [Write]}]}`, ``},
	"files have six tools":                         {agent, `spec: {tools: [{builtin: Files, allow: [Read, grep]}]}`, "allow names a tool that Files does not have: its tools are Read, Write, Edit, Ls, Glob and Grep"},
	"what files have not cannot be denied":         {agent, `spec: {tools: [{builtin: Files, deny: [Delete]}]}`, "deny names a tool that Files does not have: its tools are Read"},
	"files cannot both allow and deny":             {agent, `spec: {tools: [{builtin: Files, allow: [Read], deny: [Write]}]}`, "use one of the two"},
	"nothing allowed is no entry":                  {agent, `spec: {tools: [{builtin: Files, allow: []}]}`, "should have at least 1 items"},
	"one tool has nothing to choose from":          {agent, `spec: {tools: [{builtin: Think, deny: [think]}]}`, "allow and deny are for entries with several tools"},
	"an agent has nothing to choose from":          {agent, `spec: {tools: [{agent: reviewer, allow: [Read]}]}`, "allow and deny are for entries with several tools"},
	"tools are at most 64":                         {agent, `spec: {tools: [` + strings.Repeat("{custom: x}, ", 65) + `]}`, "must have at most 64 items"},
	"sixty-four tools are told apart in good time": {agent, `spec: {tools: [` + many(64) + `]}`, ``},
}

func many(n int) string {
	var out []string
	for i := range n {
		out = append(out, "{custom: "+strings.Repeat("x", i+1)+"}")
	}
	return strings.Join(out, ", ")
}

// agentCases are the rules of everything else that an Agent says.
var agentCases = map[string]ruleCase{
	"inference of an Agent is a Model's":         {agent, `spec: {inference: {temperature: 3}}`, "less than or equal to 2"},
	"a route":                                    {agent, `spec: {routes: [{for: Summarize, model: small}, {for: Repair, model: small}, {for: Subagent, model: small}]}`, ``},
	"a route is for one of the list":             {agent, `spec: {routes: [{for: Fun, model: small}]}`, `supported values: "Summarize", "Subagent", "Repair"`},
	"a use has one route":                        {agent, `spec: {routes: [{for: Repair, model: a}, {for: Repair, model: b}]}`, "Duplicate value"},
	"a route names a Model":                      {agent, `spec: {routes: [{for: Repair}]}`, "spec.routes[0].model: Required"},
	"a route names a Model as it may be":         {agent, `spec: {routes: [{for: Repair, model: GPT}]}`, "must be the name of an object"},
	"an input has a schema or fields":            {agent, `spec: {input: {}}`, "spec.input: Invalid value: write schema or fields, one of the two"},
	"an input has not both":                      {agent, `spec: {input: {schema: {type: object}, fields: [{name: a}]}}`, "write schema or fields, one of the two"},
	"an input has fields":                        {agent, `spec: {input: {fields: [{name: a, type: Integer, default: 3, description: x}]}}`, ``},
	"an input has a field at least":              {agent, `spec: {input: {fields: []}}`, "spec.input.fields"},
	"the workspace's instructions":               {agent, `spec: {workspace: {instructions: Ignore}}`, ``},
	"they are read or not":                       {agent, `spec: {workspace: {instructions: Maybe}}`, `supported values: "Auto", "Ignore"`},
	"model calls are positive":                   {agent, `spec: {limits: {modelCalls: 0}}`, "greater than or equal to 1"},
	"tool calls are positive":                    {agent, `spec: {limits: {toolCalls: 0}}`, "greater than or equal to 1"},
	"a depth may be none":                        {agent, `spec: {limits: {depth: 0}}`, ``},
	"a depth is at most 5":                       {agent, `spec: {limits: {depth: 6}}`, "less than or equal to 5"},
	"a wait is at most 30 days":                  {agent, `spec: {limits: {wait: 721h}}`, "at most 720h"},
	"a wait is not zero":                         {agent, `spec: {limits: {wait: 0s}}`, "at least 1s"},
	"at a limit it stops or asks":                {agent, `spec: {limits: {whenReached: Beg}}`, `supported values: "Stop", "Ask"`},
	"a hook has defaults":                        {agent, `spec: {hooks: [{name: h, point: BeforeTool, url: "http://hooks.team-a/x", tools: [Write]}]}`, ``},
	"a hook has a point":                         {agent, `spec: {hooks: [{name: h, url: "http://h"}]}`, "spec.hooks[0].point: Required"},
	"a point is one of six":                      {agent, `spec: {hooks: [{name: h, point: Never, url: "http://h"}]}`, `supported values: "BeforeSession", "AfterSession", "BeforeModel", "AfterModel", "BeforeTool", "AfterTool"`},
	"a hook has a URL":                           {agent, `spec: {hooks: [{name: h, point: AfterTool, url: hooks}]}`, "write https://host/path"},
	"a hook's name is one":                       {agent, `spec: {hooks: [{name: "a b", point: AfterTool, url: "http://h"}]}`, "must be lower-case letters, digits and -"},
	"a hook's name is its own":                   {agent, `spec: {hooks: [{name: h, point: AfterTool, url: "http://h"}, {name: h, point: AfterModel, url: "http://h"}]}`, "Duplicate value"},
	"only a tool's hook has tools":               {agent, `spec: {hooks: [{name: h, point: AfterModel, url: "http://h", tools: [Write]}]}`, "tools are for the points BeforeTool and AfterTool"},
	"a hook's tools have names":                  {agent, `spec: {hooks: [{name: h, point: AfterTool, url: "http://h", tools: ["*"]}]}`, "must be a tool as the model calls it"},
	"a hook's timeout is at most 30s":            {agent, `spec: {hooks: [{name: h, point: AfterTool, url: "http://h", timeout: 31s}]}`, "at most 30s"},
	"a hook's timeout is not zero":               {agent, `spec: {hooks: [{name: h, point: AfterTool, url: "http://h", timeout: 0s}]}`, "more than 0s"},
	"a hook's failure is one or the other":       {agent, `spec: {hooks: [{name: h, point: AfterTool, url: "http://h", failurePolicy: Cry}]}`, `supported values: "Fail", "Ignore"`},
	"hooks are at most 16":                       {agent, `spec: {hooks: [` + strings.Repeat(`{name: h, point: AfterTool, url: "http://h"}, `, 17) + `]}`, "must have at most 16 items"},
	"a Run has input instead of a prompt":        {run, `spec: {prompt: null, input: {path: a.go}}`, ``},
	"input is an object":                         {run, `spec: {input: [1]}`, "spec.input"},
	"a user is bounded in bytes":                 {run, `spec: {user: "` + strings.Repeat("ä", 200) + `"}`, "at most 253 bytes"},
	"a user is somebody":                         {run, `spec: {user: ""}`, "spec.user"},
	"a Run does not say what happens at a limit": {run, `spec: {limits: {whenReached: Ask}}`, "whenReached is the Agent's to say"},
}

// decisionCases are the rules of what a person may decide.
var decisionCases = map[string]ruleCase{
	"an answer":                             {decision, ``, ``},
	"an answer to the only question":        {decision, `{metadata: {name: any}, spec: {request: null}}`, ``},
	"an answer to a question of a session":  {decision, `{metadata: {name: r.s3c1.s2c1}, spec: {request: s3c1.s2c1}}`, ``},
	"a decision is named after its request": {decision, `{metadata: {name: mine}}`, "metadata.name must be r.s3c1"},
	"the next on a refused request":         {decision, `{metadata: {name: r.s3c1.2}}`, ``},
	"many were refused":                     {decision, `{metadata: {name: r.s3c1.999}}`, ``},
	"a name of a request of a session":      {decision, `{metadata: {name: r.s3c1.s2c1}}`, "name the next one r.s3c1.2"},
	"a name with another word":              {decision, `{metadata: {name: r.s3c1.again}}`, "name the next one r.s3c1.2"},
	"a name of another Run":                 {decision, `{metadata: {name: r.s3c1.s2c1}, spec: {run: r.s3c1, request: s2c1}}`, "must be the name of a Run: lower-case letters, digits and -"},
	"a name without a request":              {decision, `{metadata: {name: r.s3c2}, spec: {request: null}}`, "contains a dot"},
	"a request that ends as a name may":     {decision, `{metadata: {name: r.s3c1.2}, spec: {request: s3c1.2}}`, "must be an id from status.progress.pending"},
	"its name is not too long":              {decision, `{metadata: {name: ` + strings.Repeat("d", 145) + `}, spec: {request: null}}`, "longer than 144 characters"},
	"a request is an id":                    {decision, `{spec: {request: "limit:steps"}}`, "such as s3c1 or limit-steps-20"},
	"a type is one of the list":             {decision, `{spec: {type: Bless}}`, `supported values: "Approve", "Deny", "Answer", "Grant", "Message"`},
	"an answer says something":              {decision, `{spec: {value: null}}`, "value is required for the types Answer and Message"},
	"an answer is not empty":                {decision, `{spec: {value: ""}}`, "spec.value"},
	"an answer is bounded in bytes":         {decision, `{spec: {value: "` + strings.Repeat("ä", 2049) + `"}}`, "at most 4 KiB"},
	"an answer is text":                     {decision, `{spec: {value: "a\u001b[2J"}}`, "no control characters"},
	"an answer may have lines":              {decision, `{spec: {value: "a\n\tb"}}`, ``},
	"an answer grants nothing":              {decision, `{spec: {grant: {steps: 1}}}`, "grant is required for the type Grant"},
	"a message":                             {decision, `{metadata: {name: m}, spec: {request: null, type: Message}}`, ``},
	"a message says something":              {decision, `{metadata: {name: m}, spec: {request: null, type: Message, value: null}}`, "value is required for the types Answer and Message"},
	"a message answers no request":          {decision, `{spec: {type: Message}}`, "request is not allowed for the type Message"},
	"a grant":                               {decision, `{metadata: {name: r.limit-steps-1}, spec: {request: limit-steps-1, type: Grant, value: null, grant: {steps: 10, tokens: 1M, cost: 2USD}}}`, ``},
	"a grant gives something":               {decision, `{spec: {type: Grant, value: null, grant: {}}}`, "grant is empty"},
	"a grant says what":                     {decision, `{spec: {type: Grant, value: null}}`, "grant is required for the type Grant"},
	"a grant has no value":                  {decision, `{spec: {type: Grant, grant: {steps: 1}}}`, "value is required for the types Answer and Message"},
	"a grant for the only limit":            {decision, `{metadata: {name: g}, spec: {request: null, type: Grant, value: null, grant: {steps: 1}}}`, ``},
	"a grant of steps is one":               {decision, `{spec: {type: Grant, value: null, grant: {steps: 0}}}`, "greater than or equal to 1"},
	"a grant of money is money":             {decision, `{spec: {type: Grant, value: null, grant: {cost: "2"}}}`, "write 1.50USD"},
	"somebody decides":                      {decision, `{spec: {by: null}}`, "spec.by: Required"},
	"a reason is bounded in bytes":          {decision, `{spec: {reason: "` + strings.Repeat("ä", 600) + `"}}`, "at most 1 KiB"},
	"a Run is the name of an object":        {decision, `{metadata: {name: R.s3c1}, spec: {run: R}}`, "must be the name of a Run"},
}

func TestRulesOfModels(t *testing.T)    { holds(t, modelCases) }
func TestRulesOfTools(t *testing.T)     { holds(t, toolCases) }
func TestRulesOfAgents(t *testing.T)    { holds(t, agentCases) }
func TestRulesOfDecisions(t *testing.T) { holds(t, decisionCases) }
