package task

import "encoding/json"

// Toolset is tools that come from somewhere else: exactly one of Stdio, HTTP and
// Requests.
type Toolset struct {
	Name     string       `json:"name"`
	Stdio    *StdioServer `json:"stdio,omitempty"`
	HTTP     *HTTPServer  `json:"http,omitempty"`
	Requests *Requests    `json:"requests,omitempty"`
	// Resources and Prompts become tools too; NoTools leaves the tools out.
	Resources bool `json:"resources,omitempty"`
	Prompts   bool `json:"prompts,omitempty"`
	NoTools   bool `json:"noTools,omitempty"`
	// ReadOnly and Idempotent name tools by their effect; TrustHints believes the
	// server.
	ReadOnly   []string `json:"readOnly,omitempty"`
	Idempotent []string `json:"idempotent,omitempty"`
	TrustHints bool     `json:"trustHints,omitempty"`
	// TimeoutSeconds bounds one call; 0: the default.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// Optional servers may be unavailable: the session then has no tools of them.
	Optional bool `json:"optional,omitempty"`
}

// StdioServer is an MCP server that is started as a program: in the sandbox, or
// in a container of its own, whose socket is below ServersDir.
type StdioServer struct {
	Command []string `json:"command"`
	// Env are its variables that are no secret, in the sandbox; a container of its
	// own has them itself.
	Env       map[string]string `json:"env,omitempty"`
	InSandbox bool              `json:"inSandbox,omitempty"`
	// Secrets are what the container holds, for the redactor.
	Secrets []SecretKey `json:"secrets,omitempty"`
}

// HTTPServer is an MCP server that is reached by URL.
type HTTPServer struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Auth    *Auth             `json:"auth,omitempty"`
}

// Auth is how requests show who they come from.
type Auth struct {
	// Type is Bearer, Header, Basic or OAuthClientCredentials.
	Type   string `json:"type"`
	Secret string `json:"secret"`
	// Key in it, for Bearer and Header; Basic has username and password,
	// OAuthClientCredentials client-id and client-secret.
	Key      string   `json:"key,omitempty"`
	Header   string   `json:"header,omitempty"`
	TokenURL string   `json:"tokenURL,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
}

// The types of Auth.
const (
	AuthBearer = "Bearer"
	AuthHeader = "Header"
	AuthBasic  = "Basic"
	AuthOAuth  = "OAuthClientCredentials"
)

// Keys are those of its Secret that it needs.
func (a *Auth) Keys() []SecretKey {
	if a == nil {
		return nil
	}
	names := []string{a.Key}
	switch a.Type {
	case AuthBasic:
		names = []string{"username", "password"}
	case AuthOAuth:
		names = []string{"client-id", "client-secret"}
	}
	var out []SecretKey
	for _, name := range names {
		out = append(out, SecretKey{Secret: a.Secret, Key: name})
	}
	return out
}

// Keys are those of Secrets that the runner sends for the Toolset.
func (t Toolset) Keys() []SecretKey {
	var out []SecretKey
	if t.HTTP != nil {
		out = append(out, t.HTTP.Auth.Keys()...)
	}
	if t.Requests != nil {
		out = append(out, t.Requests.Auth.Keys()...)
	}
	return out
}

// Requests are tools that are requests to an HTTP API.
type Requests struct {
	BaseURL string            `json:"baseURL"`
	Headers map[string]string `json:"headers,omitempty"`
	Auth    *Auth             `json:"auth,omitempty"`
	Tools   []RequestTool     `json:"tools"`
}

// RequestTool is a tool that is one request.
type RequestTool struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Method      string            `json:"method"`
	Path        string            `json:"path"`
	Query       map[string]string `json:"query,omitempty"`
	Body        json.RawMessage   `json:"body,omitempty"`
	Input       json.RawMessage   `json:"input,omitempty"`
}
