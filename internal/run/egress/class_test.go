package egress

import (
	"fmt"
	"reflect"
	"strings"
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
		"a provider without an endpoint opens port 443":           {want: Class{Ports: []int32{443}}},
		"an endpoint without a port opens port 443":               {mods: []func(*task.Snapshot){model("https://gateway.example.com/v1")}, want: Class{Ports: []int32{443}}},
		"an endpoint with a port opens the port":                  {mods: []func(*task.Snapshot){model("https://gateway.example.com:8443/v1")}, want: Class{Ports: []int32{443, 8443}}},
		"a Service opens its namespace":                           {mods: []func(*task.Snapshot){model("http://ollama.ai.svc:11434/v1")}, want: Class{Ports: []int32{443}, Namespaces: []string{"ai"}}},
		"a Service with the cluster's domain opens its namespace": {mods: []func(*task.Snapshot){model("http://ollama.ai.svc.cluster.local:11434")}, want: Class{Ports: []int32{443}, Namespaces: []string{"ai"}}},
		"a short name is a Service in the namespace of the Run":   {mods: []func(*task.Snapshot){model("http://ollama:11434")}, want: Class{Ports: []int32{443}, Namespaces: []string{"team-a"}}},
		"a pod of a headless Service opens its namespace":         {mods: []func(*task.Snapshot){model("http://ollama-0.ollama.ai.svc:11434")}, want: Class{Ports: []int32{443}, Namespaces: []string{"ai"}}},
		"a name of two parts may be a Service or a host":          {mods: []func(*task.Snapshot){model("http://ollama.ai:11434")}, want: Class{Ports: []int32{443, 11434}, Namespaces: []string{"ai"}}},
		"a name of two parts whose second is too long for one": {
			mods: []func(*task.Snapshot){model("http://a." + strings.Repeat("b", 63) + ":1"), model("http://c." + strings.Repeat("d", 64) + ":2")},
			want: Class{Ports: []int32{1, 2, 443}, Namespaces: []string{strings.Repeat("b", 63)}},
		},
		"an IPv4 address opens its port only":                  {mods: []func(*task.Snapshot){model("http://10.1.2.3:8000/v1")}, want: Class{Ports: []int32{443}, Addresses: []Address{{IP: "10.1.2.3", Port: 8000}}}},
		"an IPv6 address opens its port only":                  {mods: []func(*task.Snapshot){model("http://[fd00::1]/v1")}, want: Class{Ports: []int32{443}, Addresses: []Address{{IP: "fd00::1", Port: 80}}}},
		"localhost opens nothing":                              {mods: []func(*task.Snapshot){model("http://localhost:8000")}, want: Class{Ports: []int32{443}}},
		"tool HTTPRequest opens ports 80 and 443":              {mods: []func(*task.Snapshot){tool(task.Tool{Builtin: "HTTPRequest"})}, want: Class{Ports: []int32{80, 443}}},
		"tool Browse opens ports 80 and 443":                   {mods: []func(*task.Snapshot){tool(task.Tool{Builtin: "Browse"})}, want: Class{Ports: []int32{80, 443}}},
		"hosts of a tool in the cluster open their namespaces": {mods: []func(*task.Snapshot){tool(task.Tool{Builtin: "Browse", Hosts: []string{"wiki.docs.svc", "*.example.com"}})}, want: Class{Ports: []int32{80, 443}, Namespaces: []string{"docs"}}},
		"a search opens the port of its endpoint":              {mods: []func(*task.Snapshot){tool(task.Tool{Builtin: "WebSearch", Endpoint: "http://search.example.com:8080"})}, want: Class{Ports: []int32{443, 8080}}},
		"a hook opens the namespace of its Service":            {mods: []func(*task.Snapshot){func(s *task.Snapshot) { s.Agent.Hooks = []task.Hook{{URL: "http://hooks.ops.svc/ask"}} }}, want: Class{Ports: []int32{443}, Namespaces: []string{"ops"}}},
		"Toolsets open their endpoints and those of their tokens": {mods: []func(*task.Snapshot){func(s *task.Snapshot) {
			s.Toolsets = []task.Toolset{
				{HTTP: &task.HTTPServer{URL: "http://mcp.tools.svc:3000/mcp", Auth: &task.Auth{TokenURL: "https://login.example.com:9443/token"}}},
				{Requests: &task.Requests{BaseURL: "http://api.example.com:8080/v1"}},
				{Stdio: &task.StdioServer{}},
			}
		}}, want: Class{Ports: []int32{443, 8080, 9443}, Namespaces: []string{"tools"}}},
		"a repository opens the port of its URL":        {mods: []func(*task.Snapshot){func(s *task.Snapshot) { s.Workspace.Git = &task.Git{URL: "ssh://git@git.example.com:2222/app.git"} }}, want: Class{Ports: []int32{443, 2222}}},
		"a repository in the form of scp opens port 22": {mods: []func(*task.Snapshot){func(s *task.Snapshot) { s.Workspace.Git = &task.Git{URL: "git@git.example.com:acme/app.git"} }}, want: Class{Ports: []int32{22, 443}}},
		"repositories of skills open their ports": {mods: []func(*task.Snapshot){func(s *task.Snapshot) {
			s.Agents = []task.Agent{{Skills: []task.Skill{{Name: "a", ConfigMap: "a"}, {Name: "b", Git: &task.Git{URL: "ssh://git@git.example.com:2223/skills.git"}}}}}
		}}, want: Class{Ports: []int32{443, 2223}}},
		"hosts of a sandbox open the ports of its proxy": {mods: []func(*task.Snapshot){func(s *task.Snapshot) { s.Sandbox = &task.Sandbox{Hosts: []string{"proxy.golang.org"}} }}, want: Class{Ports: []int32{22, 80, 443}}},
		"a sandbox without hosts opens nothing":          {mods: []func(*task.Snapshot){func(s *task.Snapshot) { s.Sandbox = &task.Sandbox{} }}, want: Class{Ports: []int32{443}}},
		"the proxy opens its port":                       {urls: []string{"http://proxy.example.com:3128", ""}, want: Class{Ports: []int32{443, 3128}}},
		"an invalid URL opens nothing":                   {mods: []func(*task.Snapshot){model("::"), model("ftp://x.example.com"), model("http://x.example.com:99999"), model("https://")}, want: Class{Ports: []int32{443}}},
		"duplicates count once":                          {mods: []func(*task.Snapshot){model("http://a.ai.svc:1"), model("http://b.ai.svc:2"), model("http://10.0.0.1:8000"), model("http://10.0.0.1:8000")}, want: Class{Ports: []int32{443}, Namespaces: []string{"ai"}, Addresses: []Address{{IP: "10.0.0.1", Port: 8000}}}},
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
func TestLabelsDistinguishClasses(t *testing.T) {
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

func TestTheTextOfAClassIsReadByItsLabelOnly(t *testing.T) {
	class := Class{Ports: []int32{443, 3128}, Namespaces: []string{"tools"}, Addresses: []Address{{"10.0.0.1", 80}}}
	large := Class{Ports: []int32{443}}
	for n := range 400 {
		large.Addresses = append(large.Addresses, Address{IP: fmt.Sprintf("10.0.%d.%d", n/100, n%100), Port: 443})
	}
	for name, tc := range map[string]struct {
		text, label string
		want        Class
		is          bool
	}{
		"its own label":             {class.Text(), class.Label(), class, true},
		"the label of another":      {class.Text(), large.Label(), class, false},
		"none, of a pod without it": {"", class.Label(), Class{}, false},
		"too long to be recorded":   {large.Text(), large.Label(), Class{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := Parse(tc.text, tc.label)
			if is != tc.is || is && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("Parse() = %+v, %v, want %+v, %v", got, is, tc.want, tc.is)
			}
		})
	}
}
