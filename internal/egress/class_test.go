package egress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// snapshot is one of an agent that reaches what it names.
func snapshot(mods ...func(*task.Snapshot)) task.Snapshot {
	s := task.Snapshot{Models: []task.Model{{Name: "m"}}}
	for _, mod := range mods {
		mod(&s)
	}
	return s
}

func model(endpoint string) func(*task.Snapshot) {
	return func(s *task.Snapshot) { s.Models = append(s.Models, task.Model{Endpoint: endpoint}) }
}

func tool(t task.Tool) func(*task.Snapshot) {
	return func(s *task.Snapshot) { s.Agents = append(s.Agents, task.Agent{Tools: []task.Tool{t}}) }
}

func TestClassOfASnapshot(t *testing.T) {
	cases := map[string]struct {
		mods []func(*task.Snapshot)
		urls []string
		want Class
	}{
		"a provider of the Internet is at 443":      {nil, nil, Class{Ports: []int32{443}}},
		"so is one with an endpoint":                {[]func(*task.Snapshot){model("https://gateway.example.com/v1")}, nil, Class{Ports: []int32{443}}},
		"one at a port of its own opens it":         {[]func(*task.Snapshot){model("https://gateway.example.com:8443/v1")}, nil, Class{Ports: []int32{443, 8443}}},
		"a Service opens its namespace":             {[]func(*task.Snapshot){model("http://ollama.ai.svc:11434/v1")}, nil, Class{Ports: []int32{443}, Namespaces: []string{"ai"}}},
		"so does one with the cluster's domain":     {[]func(*task.Snapshot){model("http://ollama.ai.svc.cluster.local:11434")}, nil, Class{Ports: []int32{443}, Namespaces: []string{"ai"}}},
		"a short name is a Service beside the Run":  {[]func(*task.Snapshot){model("http://ollama:11434")}, nil, Class{Ports: []int32{443}, Namespaces: []string{"team-a"}}},
		"a pod of a headless Service is one":        {[]func(*task.Snapshot){model("http://ollama-0.ollama.ai.svc:11434")}, nil, Class{Ports: []int32{443}, Namespaces: []string{"ai"}}},
		"a name of two parts may be both":           {[]func(*task.Snapshot){model("http://ollama.ai:11434")}, nil, Class{Ports: []int32{443, 11434}, Namespaces: []string{"ai"}}},
		"an address is open at its port alone":      {[]func(*task.Snapshot){model("http://10.1.2.3:8000/v1")}, nil, Class{Ports: []int32{443}, Addresses: []Address{{"10.1.2.3", 8000}}}},
		"so is one of IPv6":                         {[]func(*task.Snapshot){model("http://[fd00::1]/v1")}, nil, Class{Ports: []int32{443}, Addresses: []Address{{"fd00::1", 80}}}},
		"localhost needs no rule":                   {[]func(*task.Snapshot){model("http://localhost:8000")}, nil, Class{Ports: []int32{443}}},
		"requests that a model chooses open 80":     {[]func(*task.Snapshot){tool(task.Tool{Builtin: "HTTPRequest"})}, nil, Class{Ports: []int32{80, 443}}},
		"browsing does":                             {[]func(*task.Snapshot){tool(task.Tool{Builtin: "Browse"})}, nil, Class{Ports: []int32{80, 443}}},
		"hosts in the cluster that a tool names do": {[]func(*task.Snapshot){tool(task.Tool{Builtin: "Browse", Hosts: []string{"wiki.docs.svc", "*.example.com"}})}, nil, Class{Ports: []int32{80, 443}, Namespaces: []string{"docs"}}},
		"a search with an endpoint does":            {[]func(*task.Snapshot){tool(task.Tool{Builtin: "WebSearch", Endpoint: "http://search.example.com:8080"})}, nil, Class{Ports: []int32{443, 8080}}},
		"a hook does":                               {[]func(*task.Snapshot){func(s *task.Snapshot) { s.Agent.Hooks = []task.Hook{{URL: "http://hooks.ops.svc/ask"}} }}, nil, Class{Ports: []int32{443}, Namespaces: []string{"ops"}}},
		"Toolsets do, and where they get their tokens": {[]func(*task.Snapshot){func(s *task.Snapshot) {
			s.Toolsets = []task.Toolset{
				{HTTP: &task.HTTPServer{URL: "http://mcp.tools.svc:3000/mcp", Auth: &task.Auth{TokenURL: "https://login.example.com:9443/token"}}},
				{Requests: &task.Requests{BaseURL: "http://api.example.com:8080/v1"}},
				{Stdio: &task.StdioServer{}},
			}
		}}, nil, Class{Ports: []int32{443, 8080, 9443}, Namespaces: []string{"tools"}}},
		"a repository does":                                {[]func(*task.Snapshot){func(s *task.Snapshot) { s.Workspace.Git = &task.Git{URL: "ssh://git@git.example.com:2222/app.git"} }}, nil, Class{Ports: []int32{443, 2222}}},
		"a repository in git's own words does":             {[]func(*task.Snapshot){func(s *task.Snapshot) { s.Workspace.Git = &task.Git{URL: "git@git.example.com:acme/app.git"} }}, nil, Class{Ports: []int32{22, 443}}},
		"wanted hosts open ports that commands cannot use": {[]func(*task.Snapshot){func(s *task.Snapshot) { s.Sandbox = &task.Sandbox{Hosts: []string{"proxy.golang.org"}} }}, nil, Class{Ports: []int32{22, 80, 443}}},
		"a sandbox without hosts opens nothing":            {[]func(*task.Snapshot){func(s *task.Snapshot) { s.Sandbox = &task.Sandbox{} }}, nil, Class{Ports: []int32{443}}},
		"the proxy does":                                   {nil, []string{"http://proxy.example.com:3128", ""}, Class{Ports: []int32{443, 3128}}},
		"what is no URL opens nothing":                     {[]func(*task.Snapshot){model("::"), model("ftp://x.example.com"), model("http://x.example.com:99999"), model("https://")}, nil, Class{Ports: []int32{443}}},
		"what is named twice counts once":                  {[]func(*task.Snapshot){model("http://a.ai.svc:1"), model("http://b.ai.svc:2"), model("http://10.0.0.1:8000"), model("http://10.0.0.1:8000")}, nil, Class{Ports: []int32{443}, Namespaces: []string{"ai"}, Addresses: []Address{{"10.0.0.1", 8000}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(snapshot(tc.mods...), "team-a", tc.urls...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Agents that reach the same share a policy, whatever the order in which they name
// it; others do not.
func TestLabelsTellClassesApart(t *testing.T) {
	a := Of(snapshot(model("http://x.a.svc"), model("https://x.example.com:8443")), "team-a")
	b := Of(snapshot(model("https://y.example.com:8443"), model("http://y.a.svc:1")), "team-a")
	c := Of(snapshot(model("http://x.b.svc")), "team-a")
	if a.Label() != b.Label() {
		t.Errorf("two that reach the same are %s and %s", a.Label(), b.Label())
	}
	if a.Label() == c.Label() {
		t.Error("two that reach different things share a policy")
	}
	if n := len(Name(a.Label())); n > 63 {
		t.Errorf("the name of the policy has %d characters", n)
	}
}
