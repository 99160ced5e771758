package api_test

import (
	"strings"
	"testing"
)

const toolset = `{apiVersion: deckhand.dev/v1alpha1, kind: Toolset, metadata: {name: t}, spec: {http: {url: "https://mcp.example/mcp"}}}`

// sandboxCases are the rules of what an Agent says of its sandbox, its files and
// its pod.
var sandboxCases = map[string]ruleCase{
	"a sandbox":                               {agent, `spec: {tools: [{builtin: Shell}, {builtin: Python}], sandbox: {image: "debian:stable-slim", env: [{name: CI, value: "1"}], egress: {hosts: [github.com, "*.golang.org"]}, confinement: Required, processes: 64, allowInjected: [ISTIO_META, /var/run/secrets/x]}}`, ``},
	"a sandbox has an image":                  {agent, `spec: {sandbox: {}}`, "spec.sandbox.image: Required"},
	"its image is not empty":                  {agent, `spec: {sandbox: {image: ""}}`, "spec.sandbox.image"},
	"a variable has a name":                   {agent, `spec: {sandbox: {image: i, env: [{name: "A-B"}]}}`, "must be the name of a variable: letters, digits and _, and no digit at the start"},
	"a variable is not one of Deckhand's":     {agent, `spec: {sandbox: {image: i, env: [{name: HTTPS_PROXY, value: x}]}}`, "must not be a variable that Deckhand sets: choose another name"},
	"nor is HOME":                             {agent, `spec: {sandbox: {image: i, env: [{name: HOME, value: /}]}}`, "must not be a variable that Deckhand sets: choose another name"},
	"nor any that begins like it":             {agent, `spec: {sandbox: {image: i, env: [{name: DECKHAND_X, value: x}]}}`, "must not be a variable that Deckhand sets: choose another name"},
	"a variable is set once":                  {agent, `spec: {sandbox: {image: i, env: [{name: A}, {name: A}]}}`, "Duplicate value"},
	"a variable holds no Secret":              {agent, `spec: {sandbox: {image: i, env: [{name: A, valueSecretRef: {name: s, key: k}}]}}`, `unknown field "spec.sandbox.env[0].valueSecretRef"`},
	"egress names hosts":                      {agent, `spec: {sandbox: {image: i, egress: {hosts: ["https://github.com"]}}}`, "must be a host in lower case"},
	"confinement is one of two":               {agent, `spec: {sandbox: {image: i, confinement: None}}`, `supported values: "BestEffort", "Required"`},
	"processes are enough for a shell":        {agent, `spec: {sandbox: {image: i, processes: 7}}`, "greater than or equal to 8"},
	"processes are bounded":                   {agent, `spec: {sandbox: {image: i, processes: 5000}}`, "less than or equal to 4096"},
	"a durable workspace":                     {agent, `spec: {workspace: {durability: Volume, storageClassName: fast, accessMode: ReadWriteOncePod, retain: Always, retention: 60s}}`, ``},
	"one in the pod has no class":             {agent, `spec: {workspace: {storageClassName: fast}}`, "storageClassName, accessMode, retain and retention are only allowed with durability: Volume: write durability: Volume, or remove them"},
	"nor anything to retain":                  {agent, `spec: {workspace: {durability: Pod, retain: Never}}`, "storageClassName, accessMode, retain and retention are only allowed with durability: Volume: write durability: Volume, or remove them"},
	"an access mode is one that writes":       {agent, `spec: {workspace: {durability: Volume, accessMode: ReadOnlyMany}}`, `supported values: "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"`},
	"what is retained is one of three":        {agent, `spec: {workspace: {durability: Volume, retain: Sometimes}}`, `supported values: "Always", "OnFailure", "Never"`},
	"a month is long enough":                  {agent, `spec: {workspace: {durability: Volume, retention: 721h}}`, "must be a duration of at most 720h"},
	"retention is for volumes":                {agent, `spec: {workspace: {retention: 1h}}`, "storageClassName, accessMode, retain and retention are only allowed with durability: Volume: write durability: Volume, or remove them"},
	"a repository":                            {agent, `spec: {workspace: {git: {url: "https://git.example/a.git", revision: v1.2/x, depth: 0, secretRef: {name: git}, publish: Branch}}}`, ``},
	"a repository by ssh":                     {agent, `spec: {workspace: {git: {url: "git@git.example:a/b.git"}}}`, ``},
	"a repository is a URL":                   {agent, `spec: {workspace: {git: {url: "--upload-pack=x"}}}`, "must be a URL of a repository"},
	"a repository is not a file":              {agent, `spec: {workspace: {git: {url: "file:///etc"}}}`, "must be a URL of a repository"},
	"nor a program":                           {agent, `spec: {workspace: {git: {url: "ext::sh -c x"}}}`, "must be a URL of a repository"},
	"its URL has no password":                 {agent, `spec: {workspace: {git: {url: "https://me:secret@git.example/a"}}}`, "url must not contain credentials: name a Secret in secretRef: {name: git}"},
	"a revision is no option":                 {agent, `spec: {workspace: {git: {url: "https://git.example/a", revision: "-x"}}}`, "must be a branch, a tag or a commit"},
	"a revision does not climb":               {agent, `spec: {workspace: {git: {url: "https://git.example/a", revision: "a..b"}}}`, "must be a branch, a tag or a commit"},
	"a depth is not negative":                 {agent, `spec: {workspace: {git: {url: "https://git.example/a", depth: -1}}}`, "greater than or equal to 0"},
	"to publish takes credentials":            {agent, `spec: {workspace: {git: {url: "https://git.example/a", publish: Branch}}}`, "secretRef is required with publish: Branch: name a Secret in secretRef: {name: git}"},
	"files":                                   {agent, `spec: {workspace: {files: [{configMapRef: {name: rules}, path: docs/rules}]}}`, ``},
	"files in the workspace itself":           {agent, `spec: {workspace: {files: [{configMapRef: {name: rules}, path: .}]}}`, ``},
	"files stay below the workspace":          {agent, `spec: {workspace: {files: [{configMapRef: {name: rules}, path: ../rules}]}}`, "must be a directory below /workspace, without / at either end: write docs/rules, or . for /workspace itself"},
	"files have no place of their own choice": {agent, `spec: {workspace: {files: [{configMapRef: {name: rules}, path: /etc}]}}`, "must be a directory below /workspace, without / at either end: write docs/rules, or . for /workspace itself"},
	"files do not configure git":              {agent, `spec: {workspace: {files: [{configMapRef: {name: rules}, path: x/.git}]}}`, "must be a directory below /workspace, without / at either end: write docs/rules, or . for /workspace itself"},
	"files come from a ConfigMap":             {agent, `spec: {workspace: {files: [{path: a}]}}`, "spec.workspace.files[0].configMapRef: Required"},
	"a pod's own":                             {agent, `spec: {podTemplate: {runAsUser: 1000, labels: {acme.com/team: a}, caBundleConfigMapRef: {name: ca, key: ca.crt}, proxy: {http: "http://proxy.example:3128", noProxy: .example}, imageMirror: "mirror.example.com:5000/hub"}}`, ``},
	"a pod is not root":                       {agent, `spec: {podTemplate: {runAsUser: 0}}`, "greater than or equal to 1"},
	"a pod's labels are not Deckhand's":       {agent, `spec: {podTemplate: {labels: {deckhand.dev/run: other}}}`, "must not have the prefix deckhand.dev, which is reserved: choose another prefix"},
	"nor below it":                            {agent, `spec: {podTemplate: {labels: {x.deckhand.dev/run: other}}}`, "must not have the prefix deckhand.dev, which is reserved: choose another prefix"},
	"a pod's labels are short":                {agent, `spec: {podTemplate: {labels: {team: ` + strings.Repeat("a", 64) + `}}}`, "the name of a label must have at most 317 characters, and its value at most 63"},
	"a pod's annotations and where it runs":   {agent, `spec: {podTemplate: {annotations: {sidecar.istio.io/inject: "true"}, hostUsers: false, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [agents]}]}]}}}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]}}`, ``},
	"a pod's annotations are not Deckhand's":  {agent, `spec: {podTemplate: {annotations: {deckhand.dev/task: "{}"}}}`, "must not have the prefix deckhand.dev, which is reserved: choose another prefix"},
	"a pod's annotations set no AppArmor":     {agent, `spec: {podTemplate: {annotations: {container.apparmor.security.beta.kubernetes.io/runner: unconfined}}}`, "must not set an AppArmor or seccomp profile"},
	"a pod's annotations set no seccomp":      {agent, `spec: {podTemplate: {annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined}}}`, "must not set an AppArmor or seccomp profile"},
	"a pod's containers get no identity":      {agent, `spec: {podTemplate: {annotations: {eks.amazonaws.com/skip-containers: none}}}`, "so that no container gets credentials of the cloud"},
	"a pod's annotations are short":           {agent, `spec: {podTemplate: {annotations: {note: ` + strings.Repeat("a", 1025) + `}}}`, "the name of an annotation must have at most 317 characters, and its value at most 1024"},
	"a proxy is a URL":                        {agent, `spec: {podTemplate: {proxy: {http: proxy}}}`, "write http://proxy.example.com:3128"},
	"a proxy has no password":                 {agent, `spec: {podTemplate: {proxy: {https: "http://me:secret@proxy:3128"}}}`, "without credentials"},
	"a bundle is a key of a ConfigMap":        {agent, `spec: {podTemplate: {caBundleConfigMapRef: {name: ca, key: a/b}}}`, "must be a key of a ConfigMap"},
	"a mirror has no scheme":                  {agent, `spec: {podTemplate: {imageMirror: "https://mirror.example.com"}}`, "must be a registry"},
	"a mirror is no folder":                   {agent, `spec: {podTemplate: {imageMirror: "mirror.example.com/"}}`, "must be a registry"},
	"a Run may be paused":                     {run, `spec: {desiredState: Paused}`, ``},
}

// policyCases are the rules of what an Agent says of its calls.
var policyCases = map[string]ruleCase{
	"a group of approvers is bounded in bytes": {agent, `spec: {policy: [{name: p, when: "true", answer: Ask, approvers: {groups: [` + strings.Repeat("ä", 100) + `]}}]}`, "must be at most 128 bytes"},
	"a policy":                               {agent, `spec: {policy: [{name: no-push, when: 'shell.runs("git", "push")', answer: Ask, reason: Look first., approvers: {groups: [leads]}}, {name: rest, answer: Allow}]}`, ``},
	"only a question has approvers":          {agent, `spec: {policy: [{name: r, answer: Allow, approvers: {groups: [leads]}}]}`, "approvers is only allowed with answer: Ask: write answer: Ask, or remove approvers"},
	"nor has a refusal":                      {agent, `spec: {policy: [{name: r, answer: Deny, approvers: {groups: [leads]}}]}`, "approvers is only allowed with answer: Ask: write answer: Ask, or remove approvers"},
	"a rule has a name":                      {agent, `spec: {policy: [{answer: Deny}]}`, "spec.policy[0].name: Required"},
	"a rule's name is one":                   {agent, `spec: {policy: [{name: "No push", answer: Deny}]}`, "must be lower-case letters, digits and -"},
	"a condition of a rule is not empty":     {agent, `spec: {policy: [{name: r, answer: Allow, when: ""}]}`, "when is empty, which would mean all calls: write an expression, or remove when"},
	"nor that of an approval":                {agent, `spec: {tools: [{builtin: Files, approval: {when: ""}}]}`, "when is empty, which would mean all calls: write an expression, or remove when"},
	"a rule has an answer":                   {agent, `spec: {policy: [{name: r}]}`, "spec.policy[0].answer: Required"},
	"an answer is one of three":              {agent, `spec: {policy: [{name: r, answer: Maybe}]}`, `supported values: "Allow", "Deny", "Ask"`},
	"a condition is bounded":                 {agent, `spec: {policy: [{name: r, answer: Deny, when: "` + strings.Repeat("x", 4097) + `"}]}`, "4096"},
	"a reason of a rule is bounded in bytes": {agent, `spec: {policy: [{name: r, answer: Deny, reason: "` + strings.Repeat("ä", 300) + `"}]}`, "at most 512 bytes"},
	"approvers are groups":                   {agent, `spec: {policy: [{name: r, answer: Ask, approvers: {groups: []}}]}`, "should have at least 1 items"},
	"approvers are at most 8 groups":         {agent, `spec: {policy: [{name: r, answer: Ask, approvers: {groups: [a, b, c, d, e, f, g, h, i]}}]}`, "must have at most 8 items"},
	"rules are at most 64":                   {agent, `spec: {policy: [` + strings.Repeat("{name: r, answer: Allow}, ", 65) + `]}`, "must have at most 64 items"},
	"a tool may need approval":               {agent, `spec: {tools: [{builtin: Shell, approval: {}}, {agent: b, approval: {when: "agent.depth > 1", approvers: {groups: [leads]}}}]}`, ``},
	"a tool's approvers are groups":          {agent, `spec: {tools: [{builtin: Files, approval: {approvers: {groups: []}}}]}`, "should have at least 1 items"},
	"a toolset":                              {agent, `spec: {tools: [{toolset: github, allow: [create_issue], approval: {}}, {toolset: files, deny: [rm]}]}`, ``},
	"a toolset is not another tool too":      {agent, `spec: {tools: [{toolset: github, custom: x}]}`, "exactly one of builtin, agent, toolset and custom is required: remove the others"},
	"a toolset is the name of an object":     {agent, `spec: {tools: [{toolset: GitHub}]}`, "must be the name of an object"},
	"a toolset is listed once":               {agent, `spec: {tools: [{toolset: github}, {toolset: github}]}`, "remove one of the two github"},
	"a toolset has its own name":             {agent, `spec: {tools: [{toolset: github, name: gh}]}`, "name is only allowed for agent and custom: remove it, because the names of other tools cannot be changed"},
	"a toolset has its own timeout":          {agent, `spec: {tools: [{toolset: github, timeout: 5s}]}`, "set spec.timeout of the Toolset"},
	"allow and deny are not for both":        {agent, `spec: {tools: [{toolset: github, allow: [a], deny: [b]}]}`, "allow and deny are not allowed together: remove one of the two"},
}

// toolsetCases are the rules of what a Toolset may be.
var toolsetCases = map[string]ruleCase{
	"exactly one of stdio (an MCP server as a program), http (an MCP server with a URL) and requests (an HTTP API) is required": {toolset, ``, ``},
	"its description has lines":             {toolset, `spec: {description: "one\n\ttwo ü"}`, ``},
	"and moves no cursor":                   {toolset, `spec: {description: "a\u001b2J"}`, "must not have control characters"},
	"one that is a program":                 {toolset, `spec: {http: null, stdio: {command: [mcp], container: {image: "mcp:1", workspace: ReadOnly}, env: [{name: TOKEN, valueSecretRef: {name: s, key: k}}, {name: DEBUG, value: "1"}]}}`, ``},
	"one in the sandbox":                    {toolset, `spec: {http: null, stdio: {command: [mcp], runIn: Sandbox, env: [{name: DEBUG, value: "1"}]}}`, ``},
	"requests":                              {toolset, `spec: {http: null, requests: {baseURL: "https://api.example/v1", headers: [{name: Accept, value: application/json}], auth: {bearer: {tokenSecretRef: {name: s, key: token}}}, tools: [{name: get, description: Gets., method: GET, path: "/x/${{ input.id }}", query: {q: "${{ input.q }}"}, input: {schema: {type: object}}}]}}`, ``},
	"a Toolset is something":                {toolset, `spec: {http: null}`, "exactly one of stdio (an MCP server as a program), http (an MCP server with a URL) and requests (an HTTP API) is required"},
	"a Toolset is not two things":           {toolset, `spec: {stdio: {command: [mcp], container: {image: i}}}`, "requests (an HTTP API) is required: remove the others"},
	"its name begins names of tools":        {toolset, `metadata: {name: ` + strings.Repeat("t", 49) + `}`, "at most 48 lower-case letters"},
	"its name has no dots":                  {toolset, `metadata: {name: a.b}`, "at most 48 lower-case letters, digits and -"},
	"what is offered is one of three":       {toolset, `spec: {offer: [Sampling]}`, `supported values: "Tools", "Resources", "Prompts"`},
	"effects of a server's tools":           {toolset, `spec: {readOnly: [get], idempotent: [put], trustHints: true, timeout: 6h, required: false}`, ``},
	"effects of requests are their own":     {toolset, `spec: {http: null, readOnly: [get], requests: {baseURL: "https://a.b", tools: [{name: get, description: d, method: GET, path: /}]}}`, "offer, readOnly, idempotent and trustHints are not allowed with requests: remove them, because the method of a request determines its effect"},
	"a call takes at most 6h":               {toolset, `spec: {timeout: 7h}`, "at most 6h"},
	"a program has a name":                  {toolset, `spec: {http: null, stdio: {command: [], container: {image: i}}}`, "should have at least 1 items"},
	"a program has an image":                {toolset, `spec: {http: null, stdio: {command: [mcp]}}`, "write container: {image: ghcr.io/acme/mcp:1}, or runIn: Sandbox"},
	"an image stands below container":       {toolset, `spec: {http: null, stdio: {command: [mcp], image: i}}`, `unknown field "spec.stdio.image"`},
	"a container has an image":              {toolset, `spec: {http: null, stdio: {command: [mcp], container: {workspace: ReadOnly}}}`, "spec.stdio.container.image: Required"},
	"one in the sandbox has none":           {toolset, `spec: {http: null, stdio: {command: [mcp], runIn: Sandbox, container: {image: i}}}`, "remove container"},
	"one in the sandbox has no secret":      {toolset, `spec: {http: null, stdio: {command: [mcp], runIn: Sandbox, env: [{name: T, valueSecretRef: {name: s, key: k}}]}}`, "valueSecretRef is not allowed with runIn: Sandbox, because commands of the agent could read the Secret: remove runIn, or valueSecretRef"},
	"a server does not write the files":     {toolset, `spec: {http: null, stdio: {command: [mcp], container: {image: i, workspace: ReadWrite}}}`, `supported values: "None", "ReadOnly"`},
	"a variable has one value":              {toolset, `spec: {http: null, stdio: {command: [mcp], container: {image: i}, env: [{name: A, value: a, valueSecretRef: {name: s, key: k}}]}}`, "exactly one of value and valueSecretRef is required: remove the other"},
	"a variable has a value":                {toolset, `spec: {http: null, stdio: {command: [mcp], container: {image: i}, env: [{name: A}]}}`, "exactly one of value and valueSecretRef is required: remove the other"},
	"a variable of a server has a name":     {toolset, `spec: {http: null, stdio: {command: [mcp], container: {image: i}, env: [{name: A=B, value: a}]}}`, "must be the name of a variable: letters, digits and _, and no digit at the start"},
	"a server is reached by HTTP":           {toolset, `spec: {http: {url: "ws://mcp.example"}}`, "write https://host/mcp"},
	"a header holds no credentials":         {toolset, `spec: {http: {headers: [{name: authorization, value: Bearer x}]}}`, "auth of a Toolset"},
	"a header of requests neither":          {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", headers: [{name: Cookie, value: x}], tools: [{name: get, description: d, method: GET, path: /}]}}`, "auth of a Toolset"},
	"a header has a name":                   {toolset, `spec: {http: {headers: [{name: "X A", value: x}]}}`, "must be the name of a header"},
	"a header of a Toolset is one line":     {toolset, `spec: {http: {headers: [{name: X-A, value: "a\r\nb"}]}}`, "must be one line"},
	"a header's value is bounded":           {toolset, `spec: {http: {headers: [{name: X-A, value: ` + strings.Repeat("x", 1025) + `}]}}`, "Too long"},
	"a header is listed once":               {toolset, `spec: {http: {headers: [{name: X-A, value: a}, {name: X-A, value: b}]}}`, "Duplicate value"},
	"a header is listed once in any case":   {toolset, `spec: {http: {headers: [{name: X-A, value: a}, {name: x-a, value: b}]}}`, "each header may be listed once, whether in upper or lower case: remove all but one of them"},
	"headers are a list":                    {toolset, `spec: {http: {headers: {X-A: a}}}`, `unknown field "spec.http.headers.X-A"`},
	"a key as a header":                     {toolset, `spec: {http: {auth: {header: {name: X-API-Key, valueSecretRef: {name: s, key: k}}}}}`, ``},
	"a key as a header needs its name":      {toolset, `spec: {http: {auth: {header: {valueSecretRef: {name: s, key: k}}}}}`, "spec.http.auth.header.name: Required"},
	"a header of auth has a name":           {toolset, `spec: {http: {auth: {header: {name: "X A", valueSecretRef: {name: s, key: k}}}}}`, "write X-API-Key"},
	"a token":                               {toolset, `spec: {http: {auth: {bearer: {tokenSecretRef: {name: s, key: k}}}}}`, ``},
	"a token has a key":                     {toolset, `spec: {http: {auth: {bearer: {tokenSecretRef: {name: s}}}}}`, "spec.http.auth.bearer.tokenSecretRef.key: Required"},
	"a token has a Secret":                  {toolset, `spec: {http: {auth: {bearer: {}}}}`, "spec.http.auth.bearer.tokenSecretRef: Required"},
	"a password":                            {toolset, `spec: {http: {auth: {basic: {secretRef: {name: s}}}}}`, ``},
	"a password has no key":                 {toolset, `spec: {http: {auth: {basic: {secretRef: {name: s, key: k}}}}}`, `unknown field "spec.http.auth.basic.secretRef.key"`},
	"client credentials":                    {toolset, `spec: {http: {auth: {oauthClientCredentials: {tokenURL: "https://login.example/token", scopes: [read], secretRef: {name: s}}}}}`, ``},
	"client credentials need a URL":         {toolset, `spec: {http: {auth: {oauthClientCredentials: {secretRef: {name: s}}}}}`, "spec.http.auth.oauthClientCredentials.tokenURL: Required"},
	"a token's URL is one":                  {toolset, `spec: {http: {auth: {oauthClientCredentials: {tokenURL: login, secretRef: {name: s}}}}}`, "must be an http or https URL"},
	"auth is something":                     {toolset, `spec: {http: {auth: {}}}`, "write bearer: {tokenSecretRef: {name: github, key: token}}"},
	"auth is not two things":                {toolset, `spec: {http: {auth: {bearer: {tokenSecretRef: {name: s, key: k}}, basic: {secretRef: {name: s}}}}}`, "exactly one of bearer, header, basic and oauthClientCredentials"},
	"a kind of auth is one of four":         {toolset, `spec: {http: {auth: {digest: {secretRef: {name: s}}}}}`, `unknown field "spec.http.auth.digest"`},
	"a base is a URL":                       {toolset, `spec: {http: null, requests: {baseURL: api, tools: [{name: get, description: d, method: GET, path: /}]}}`, "write https://api.example.com/v1"},
	"requests are some":                     {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: []}}`, "should have at least 1 items"},
	"a request is listed once":              {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: [{name: a, description: d, method: GET, path: /}, {name: a, description: d, method: GET, path: /}]}}`, "Duplicate value"},
	"a request has a name that models take": {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: [{name: "a b", description: d, method: GET, path: /}]}}`, "must be a valid name of a tool: at most 48 letters, digits, _ and -"},
	"a request is described":                {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: [{name: a, method: GET, path: /}]}}`, "description: Required"},
	"a method is one of the list":           {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: [{name: a, description: d, method: TRACE, path: /}]}}`, `supported values: "GET", "HEAD"`},
	"a path begins with a slash":            {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: [{name: a, description: d, method: GET, path: "@evil.example/"}]}}`, "must begin with /"},
	"a parameter is bounded":                {toolset, `spec: {http: null, requests: {baseURL: "https://a.b", tools: [{name: a, description: d, method: GET, path: /, query: {q: ` + strings.Repeat("x", 1025) + `}}]}}`, "the name of a parameter must have at most 128 characters, and its value at most 1024"},
}

const approval = `{apiVersion: deckhand.dev/v1alpha1, kind: Decision, metadata: {name: r.s3c1-dddddddddddddddddddddddddddddddd}, spec: {run: r, request: s3c1-dddddddddddddddddddddddddddddddd, type: Approve, by: admin}}`

// The longest name of a Run and the longest id that a runner gives a request.
var (
	longRun     = strings.Repeat("r", 63)
	longRequest = "h" + strings.Repeat("d", 32) + "-12345678-" + strings.Repeat("d", 32)
)

// approvalCases are the rules of what a person may say of a call.
var approvalCases = map[string]ruleCase{
	"an approval":                         {approval, ``, ``},
	"an approval for the rest of the Run": {approval, `spec: {scope: Run, reason: It is only a branch.}`, ``},
	"the next approval":                   {approval, `metadata: {name: r.s3c1-dddddddddddddddddddddddddddddddd.2}`, ``},
	"an approval of another name":         {approval, `metadata: {name: r.s3c12}`, "metadata.name must be r.s3c1-dddddddddddddddddddddddddddddddd (<run>.<request>)"},
	"an approval says what of":            {approval, `{metadata: {name: any}, spec: {request: null}}`, "request is required for the types Approve and Deny"},
	"a denial says what of":               {approval, `{metadata: {name: any}, spec: {request: null, type: Deny}}`, "request is required for the types Approve and Deny"},
	"an approval of a call by its id":     {approval, `{metadata: {name: r.s3c1}, spec: {request: s3c1}}`, "If s3c1 is a question or a limit, use the type Answer or Grant"},
	"an approval of cut digits":           {approval, `{metadata: {name: r.s3c1-dddd}, spec: {request: s3c1-dddd}}`, "copy the whole id from status.progress.pending"},
	"an approval with a digest":           {approval, `spec: {digest: ` + strings.Repeat("d", 64) + `}`, ``},
	"an approval by digest alone":         {approval, `{metadata: {name: r.s3c1}, spec: {request: s3c1, digest: ` + strings.Repeat("d", 64) + `}}`, ``},
	"an approval of a workflow's node":    {approval, `{metadata: {name: r.approval-gate}, spec: {request: approval-gate}}`, ``},
	"the longest names":                   {approval, `{metadata: {name: ` + longRun + `.` + longRequest + `.999}, spec: {run: ` + longRun + `, request: ` + longRequest + `}}`, ``},
	"a digest is one":                     {approval, `spec: {digest: yes!}`, "must be the digest of the request: 64 hexadecimal digits"},
	"a digest is in lower case":           {approval, `spec: {digest: ` + strings.Repeat("D", 64) + `}`, "64 hexadecimal digits"},
	"a denial":                            {approval, `spec: {type: Deny, reason: Not on a Friday.}`, ``},
	"a denial has no digest":              {approval, `spec: {type: Deny, digest: ` + strings.Repeat("d", 64) + `}`, "digest is allowed for the type Approve only"},
	"a denial has no scope":               {approval, `spec: {type: Deny, scope: Run}`, "scope is allowed for the type Approve only"},
	"an answer has no scope":              {decision, `spec: {scope: Call}`, "scope is allowed for the type Approve only"},
	"a scope is one of two":               {approval, `spec: {scope: Forever}`, `supported values: "Call", "Run"`},
	"an approval may have a value":        {approval, `spec: {value: Yes.}`, ""},
	"groups are at most 8":                {approval, `spec: {groups: [a, b, c, d, e, f, g, h, i]}`, "must have at most 8 items"},
	"a group is one":                      {approval, `spec: {groups: [""]}`, "spec.groups[0]"},
}

func TestRulesOfSandboxes(t *testing.T) { holds(t, sandboxCases) }
func TestRulesOfPolicies(t *testing.T)  { holds(t, policyCases) }
func TestRulesOfToolsets(t *testing.T)  { holds(t, toolsetCases) }
func TestRulesOfApprovals(t *testing.T) { holds(t, approvalCases) }
