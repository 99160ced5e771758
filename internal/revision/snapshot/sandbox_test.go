package snapshot_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func toolset(name string, mod func(*v1alpha1.ToolsetSpec)) *v1alpha1.Toolset {
	t := &v1alpha1.Toolset{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name}}
	mod(&t.Spec)
	return t
}

// withToolsets are Objects that have them.
func withToolsets(sets ...*v1alpha1.Toolset) snapshot.Objects {
	o := gen.Objects()
	o.Toolsets = map[string]*v1alpha1.Toolset{}
	for _, t := range sets {
		o.Toolsets[t.Name] = t
	}
	return o
}

// using is an Agent with tools and, where an image is said, a sandbox.
func using(image string, tools ...v1alpha1.Tool) *v1alpha1.Agent {
	return gen.Agent(func(a *v1alpha1.Agent) {
		a.Spec.Tools = tools
		if image != "" {
			a.Spec.Sandbox = &v1alpha1.Sandbox{Image: image}
		}
	})
}

func ofToolset(name v1alpha1.ObjectName) v1alpha1.Tool { return v1alpha1.Tool{Toolset: name} }

var aShell = v1alpha1.Tool{Builtin: v1alpha1.BuiltinShell}

// inSandbox is an MCP server that runs beside the commands of the agent.
func inSandbox(s *v1alpha1.ToolsetSpec) {
	value := "1"
	s.Stdio = &v1alpha1.StdioServer{Command: []string{"mcp-files", "/workspace"}, RunIn: v1alpha1.RunInSandbox, Env: []v1alpha1.ServerVariable{{Name: "DEBUG", Value: &value}}}
}

// apart is one in a container of its own, with a secret.
func apart(s *v1alpha1.ToolsetSpec) {
	value := "1"
	s.Stdio = &v1alpha1.StdioServer{Command: []string{"mcp-github"}, Container: &v1alpha1.ServerContainer{Image: "github:1"}, Env: []v1alpha1.ServerVariable{
		{Name: "DEBUG", Value: &value}, {Name: "TOKEN", ValueSecretRef: &v1alpha1.SecretKeyRef{Name: "github", Key: "token"}},
	}}
}

func TestRunnerReadsToolsets(t *testing.T) {
	no, timeout := false, v1alpha1.Duration("10m")
	body := runtime.RawExtension{Raw: []byte(`{ "title": "${{ input.title }}" }`)}
	cases := map[string]struct {
		spec func(*v1alpha1.ToolsetSpec)
		want task.Toolset
	}{
		"a server in the sandbox": {inSandbox, task.Toolset{Stdio: &task.StdioServer{Command: []string{"mcp-files", "/workspace"}, InSandbox: true, Env: map[string]string{"DEBUG": "1"}}}},
		"a server of its own":     {apart, task.Toolset{Stdio: &task.StdioServer{Command: []string{"mcp-github"}}}},
		"a server with a key":     {reached(v1alpha1.Auth{Bearer: &v1alpha1.BearerAuth{TokenSecretRef: v1alpha1.SecretKeyRef{Name: "key", Key: "api-key"}}}), task.Toolset{HTTP: &task.HTTPServer{URL: "https://mcp.example", Auth: &task.Auth{Type: "Bearer", Secret: "key", Key: "api-key"}}}},
		"one with a password":     {reached(v1alpha1.Auth{Basic: &v1alpha1.BasicAuth{SecretRef: v1alpha1.SecretRef{Name: "key"}}}), task.Toolset{HTTP: &task.HTTPServer{URL: "https://mcp.example", Auth: &task.Auth{Type: "Basic", Secret: "key"}}}},
		"one that may be missing": {func(s *v1alpha1.ToolsetSpec) { inSandbox(s); s.Required, s.Timeout = &no, &timeout }, task.Toolset{Stdio: &task.StdioServer{Command: []string{"mcp-files", "/workspace"}, InSandbox: true, Env: map[string]string{"DEBUG": "1"}}, Optional: true, TimeoutSeconds: 600}},
		"resources without tools": {func(s *v1alpha1.ToolsetSpec) { apart(s); s.Offer = []v1alpha1.Offer{v1alpha1.OfferResources} }, task.Toolset{Stdio: &task.StdioServer{Command: []string{"mcp-github"}}, Resources: true, NoTools: true}},
		"prompts beside the tools": {func(s *v1alpha1.ToolsetSpec) {
			apart(s)
			s.Offer = []v1alpha1.Offer{v1alpha1.OfferPrompts, v1alpha1.OfferTools}
		}, task.Toolset{Stdio: &task.StdioServer{Command: []string{"mcp-github"}}, Prompts: true}},
		"effects": {func(s *v1alpha1.ToolsetSpec) {
			apart(s)
			s.ReadOnly, s.Idempotent, s.TrustHints = []string{"get"}, []string{"put"}, true
		}, task.Toolset{Stdio: &task.StdioServer{Command: []string{"mcp-github"}}, ReadOnly: []string{"get"}, Idempotent: []string{"put"}, TrustHints: true}},
		"requests": {func(s *v1alpha1.ToolsetSpec) {
			s.Requests = &v1alpha1.Requests{BaseURL: "https://api.example/v1/", Tools: []v1alpha1.RequestTool{{Name: "create", Description: "Creates.", Method: "POST", Path: "/issues", Body: &body, Input: &v1alpha1.Input{Schema: &runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"title":{"type":"string"}}}`)}}}}}
		}, task.Toolset{Requests: &task.Requests{BaseURL: "https://api.example/v1", Tools: []task.RequestTool{{Name: "create", Description: "Creates.", Method: "POST", Path: "/issues", Body: []byte(`{"title":"${{ input.title }}"}`), Input: []byte(`{"type":"object","properties":{"title":{"type":"string"}}}`)}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Name = "set"
			v := of(t, using("debian:1", ofToolset("set")), withToolsets(toolset("set", tc.spec)))
			if diff := cmp.Diff([]task.Toolset{tc.want}, v.Snapshot.Toolsets); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			own := tc.want.Stdio != nil && !tc.want.Stdio.InSandbox
			if _, is := v.Agent.Servers["set"]; is != own {
				t.Errorf("it has a container of its own: %t", is)
			}
		})
	}
}

func reached(a v1alpha1.Auth) func(*v1alpha1.ToolsetSpec) {
	return func(s *v1alpha1.ToolsetSpec) { s.HTTP = &v1alpha1.HTTPServer{URL: "https://mcp.example", Auth: &a} }
}

// Only what runs in a sandbox brings one, and what is known of it is the Agent's
// own, whoever works in its pod.
func TestRunnerReadsTheSandbox(t *testing.T) {
	eight := int32(8)
	confined := func(a *v1alpha1.Agent) {
		a.Spec.Sandbox = &v1alpha1.Sandbox{
			Image: "golang:1", Processes: &eight, Confinement: v1alpha1.ConfinementRequired,
			Egress: &v1alpha1.Egress{Hosts: []v1alpha1.Host{"github.com"}},
		}
	}
	plain := &task.Sandbox{Image: "debian:1", Processes: 256}
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		objects snapshot.Objects
		want    *task.Sandbox
	}{
		"files need none":               {using("debian:1", v1alpha1.Tool{Builtin: v1alpha1.BuiltinFiles}), gen.Objects(), nil},
		"nor does a server of its own":  {using("debian:1", ofToolset("set")), withToolsets(toolset("set", apart)), nil},
		"a shell does":                  {using("debian:1", aShell), gen.Objects(), plain},
		"so does Python":                {using("debian:1", v1alpha1.Tool{Builtin: v1alpha1.BuiltinPython}), gen.Objects(), plain},
		"and a server that runs in it":  {using("debian:1", ofToolset("set")), withToolsets(toolset("set", inSandbox)), plain},
		"and an agent in its pod":       {using("debian:1", v1alpha1.Tool{Agent: "other"}), with(agents{gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Tools = "other", []v1alpha1.Tool{aShell} })}), plain},
		"what it may reach, and how":    {gen.Agent(confined, func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{aShell} }), gen.Objects(), &task.Sandbox{Image: "golang:1", Hosts: []string{"github.com"}, Required: true, Processes: 8}},
		"another agent of the same one": {using("debian:1", v1alpha1.Tool{Agent: "other"}, aShell), with(agents{gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Sandbox = "other", &v1alpha1.Sandbox{Image: "debian:1"} })}), plain},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, of(t, tc.agent, tc.objects).Snapshot.Sandbox); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRunnerReadsTheWorkspaceAndThePolicy(t *testing.T) {
	all := int32(0)
	agent := gen.Agent(func(a *v1alpha1.Agent) {
		a.Spec.Workspace.Git = &v1alpha1.Git{URL: "https://git.example/app", Revision: "main", SecretRef: &v1alpha1.SecretRef{Name: "git"}, Publish: v1alpha1.PublishBranch}
		a.Spec.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "rules"}, Path: "docs/rules"}}
		a.Spec.Policy = []v1alpha1.PolicyRule{{Name: "ask", When: `tool == "Write"`, Answer: v1alpha1.PolicyAsk, Reason: "why", Approvers: &v1alpha1.Approvers{Groups: []string{"leads"}}}}
		a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles, Approval: &v1alpha1.Approval{When: "true"}}}
	})
	got := of(t, agent, gen.Objects()).Snapshot
	want := task.Source{Git: &task.Git{URL: "https://git.example/app", Revision: "main", Depth: 50, Secret: "git", Publish: true}, Files: []string{"docs/rules"}}
	if diff := cmp.Diff(want, got.Workspace); diff != "" {
		t.Errorf("workspace -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]task.Rule{{Name: "ask", When: `tool == "Write"`, Answer: "Ask", Reason: "why", Approvers: task.Approvers{Groups: []string{"leads"}}}}, got.Agent.Policy); diff != "" {
		t.Errorf("policy -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]task.Tool{{Builtin: "Files", Approval: &task.Approval{When: "true"}}}, got.Agent.Tools); diff != "" {
		t.Errorf("tools -want +got:\n%s", diff)
	}
	agent.Spec.Workspace.Git.Depth = &all
	if depth := of(t, agent, gen.Objects()).Snapshot.Workspace.Git.Depth; depth != 0 {
		t.Errorf("a depth of 0, for all, became %d", depth)
	}
}

// The runner gets the Secrets that it sends itself, and no server's.
func TestSecretsOfToolsetsAndGit(t *testing.T) {
	agent := using("", ofToolset("bearer"), ofToolset("basic"), ofToolset("oauth"), ofToolset("apart"))
	agent.Spec.Workspace.Git = &v1alpha1.Git{URL: "https://git.example/app", SecretRef: &v1alpha1.SecretRef{Name: "git"}}
	v := of(t, agent, withToolsets(
		toolset("bearer", reached(v1alpha1.Auth{Bearer: &v1alpha1.BearerAuth{TokenSecretRef: v1alpha1.SecretKeyRef{Name: "one", Key: "key"}}})),
		toolset("basic", reached(v1alpha1.Auth{Basic: &v1alpha1.BasicAuth{SecretRef: v1alpha1.SecretRef{Name: "two"}}})),
		toolset("oauth", reached(v1alpha1.Auth{OAuthClientCredentials: &v1alpha1.OAuthClientCredentials{SecretRef: v1alpha1.SecretRef{Name: "three"}, TokenURL: "https://login.example"}})),
		toolset("apart", apart),
	))
	want := []snapshot.Secret{
		{Name: "git", Whole: true},
		{Name: "one", Keys: []string{"key"}},
		{Name: "sonnet", Keys: []string{"api-key"}},
		{Name: "three", Keys: []string{"client-id", "client-secret"}},
		{Name: "two", Keys: []string{"password", "username"}},
	}
	if diff := cmp.Diff(want, snapshot.Secrets(v.Snapshot)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatKeepsAnAgentWithASandboxFromBeingReady(t *testing.T) {
	var many []v1alpha1.Tool
	var sets []*v1alpha1.Toolset
	for i := range snapshot.MaxToolsets + 1 {
		name := fmt.Sprintf("set-%02d", i)
		many, sets = append(many, ofToolset(v1alpha1.ObjectName(name))), append(sets, toolset(name, apart))
	}
	other := func(mod func(*v1alpha1.AgentSpec)) snapshot.Objects {
		return with(agents{gen.Agent(func(a *v1alpha1.Agent) { a.Name = "other"; mod(&a.Spec) })})
	}
	calls := v1alpha1.Tool{Agent: "other"}
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		objects snapshot.Objects
		reason  string
		says    string
	}{
		"a Toolset that is not there":      {using("", ofToolset("set")), gen.Objects(), v1alpha1.ReasonNotFound, `Toolset "set" not found in namespace team-a; create it`},
		"more Toolsets than fit":           {using("", many...), withToolsets(sets...), v1alpha1.ReasonTooLarge, "name 17 Toolsets; at most 16"},
		"a shell without a sandbox":        {using("", aShell), gen.Objects(), v1alpha1.ReasonSandboxMissing, `The tool Shell of Agent "fixer" needs a sandbox. Write sandbox: {image: debian:stable-slim}`},
		"a server without a sandbox":       {using("", ofToolset("set")), withToolsets(toolset("set", inSandbox)), v1alpha1.ReasonSandboxMissing, `Toolset set of Agent "fixer" needs a sandbox`},
		"an agent's shell without sandbox": {using("", calls), other(func(s *v1alpha1.AgentSpec) { s.Tools = []v1alpha1.Tool{aShell} }), v1alpha1.ReasonSandboxMissing, `The tool Shell of Agent "other" needs a sandbox`},
		"an agent with another sandbox": {
			using("debian:1", calls, aShell), other(func(s *v1alpha1.AgentSpec) { s.Sandbox = &v1alpha1.Sandbox{Image: "alpine:1"} }),
			v1alpha1.ReasonNotReady, `Agent "other" wants the sandbox image alpine:1, but would work in the pod of this one; set sandbox.image here to the same, or leave its sandbox out`,
		},
		"an agent with another repository": {
			using("", calls), other(func(s *v1alpha1.AgentSpec) { s.Workspace.Git = &v1alpha1.Git{URL: "https://git.example/x"} }),
			v1alpha1.ReasonNotReady, "wants the repository https://git.example/x",
		},
		"an agent with files of its own": {
			using("", calls), other(func(s *v1alpha1.AgentSpec) {
				s.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "a"}, Path: "a"}}
			}),
			v1alpha1.ReasonNotReady, "move its workspace.files here",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Of(tc.agent, tc.objects)
			var problem *snapshot.NotReadyError
			if !errors.As(err, &problem) || problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("Of() = %v, want reason %s and %q", err, tc.reason, tc.says)
			}
		})
	}
}

// A hook may be for a tool that a server offers: nobody knows here which.
func TestAHookMayBeForAToolOfAToolset(t *testing.T) {
	agent := using("", ofToolset("set"))
	agent.Spec.Hooks = []v1alpha1.Hook{{Name: "guard", Point: v1alpha1.BeforeTool, URL: "https://hooks.example", Tools: []v1alpha1.ToolName{"set__create"}}}
	of(t, agent, withToolsets(toolset("set", apart)))
	agent.Spec.Hooks[0].Tools = []v1alpha1.ToolName{"other__create"}
	if _, err := snapshot.Of(agent, withToolsets(toolset("set", apart))); err == nil {
		t.Error("a hook for a tool of a Toolset that the agent does not name is accepted")
	}
}
