// Package gen builds objects for tests: valid ones, which a test modifies.
package gen

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// Noon is the time at which tests begin.
var Noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// Namespace is the namespace of all objects, unless a test changes it.
const Namespace = "team-a"

// Run returns a new Run of the Agent fixer, with the defaults of the schema.
func Run(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	retries, disruptions := int32(1), int32(10)
	r := &v1alpha1.Run{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         Namespace,
			Name:              "x",
			UID:               types.UID("run-uid"),
			Generation:        1,
			ResourceVersion:   "1",
			CreationTimestamp: metav1.NewTime(Noon),
		},
		Spec: v1alpha1.RunSpec{
			Agent:          "fixer",
			Prompt:         "Fix it.",
			MaxRetries:     &retries,
			MaxDisruptions: &disruptions,
			DesiredState:   v1alpha1.DesiredRunning,
		},
		Status: v1alpha1.RunStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPending, Message: "Waiting for the operator", LastTransitionTime: metav1.Unix(0, 0)},
			{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending, Message: "Waiting for the operator", LastTransitionTime: metav1.Unix(0, 0)},
		}},
	}
	for _, mod := range mods {
		mod(r)
	}
	return r
}

// Agent returns the Agent fixer, which uses the Model sonnet.
func Agent(mods ...func(*v1alpha1.Agent)) *v1alpha1.Agent {
	size := resource.MustParse("1Gi")
	a := &v1alpha1.Agent{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Agent"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "fixer", UID: types.UID("agent-uid"), Generation: 1},
		Spec: v1alpha1.AgentSpec{
			Instructions:  "You fix what is broken.",
			Model:         "sonnet",
			Tools:         []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}},
			ParallelTools: 10,
			Log:           v1alpha1.LogFull,
			Retention:     v1alpha1.Retention{Pod: "1h"},
			Workspace:     v1alpha1.Workspace{Durability: v1alpha1.DurabilityPod, Size: &size},
		},
	}
	for _, mod := range mods {
		mod(a)
	}
	return a
}

// Objects returns Models, by default sonnet, and no Agents.
func Objects(models ...*v1alpha1.Model) snapshot.Objects {
	if len(models) == 0 {
		models = []*v1alpha1.Model{Model()}
	}
	o := snapshot.Objects{Agents: map[string]*v1alpha1.Agent{}, Models: map[string]*v1alpha1.Model{}}
	for _, m := range models {
		o.Models[m.Name] = m
	}
	return o
}

// Model returns the Model sonnet, with an API key and prices.
func Model(mods ...func(*v1alpha1.Model)) *v1alpha1.Model {
	m := &v1alpha1.Model{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Model"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "sonnet", UID: types.UID("model-uid"), Generation: 1},
		Spec: v1alpha1.ModelSpec{
			Provider:        v1alpha1.ProviderOpenAICompatible,
			ModelID:         "sonnet-4-5",
			Endpoint:        "http://models.example/v1",
			APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "sonnet", Key: "api-key"},
			Prices:          &v1alpha1.Prices{Input: "3USD", Output: "15USD"},
		},
	}
	for _, mod := range mods {
		mod(m)
	}
	return m
}

// Seeds returns how many histories a property test plays: n, or a tenth of n and at most 20 with -short, which make
// test sets under the race detector: most histories have one goroutine, in which it finds nothing.
func Seeds(n uint64) uint64 {
	if testing.Short() {
		return min((n+9)/10, 20)
	}
	return n
}

// Coder changes an Agent so that its pod has every kind of container and volume.
func Coder(a *v1alpha1.Agent) {
	a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinShell}, {Toolset: "issues"}, {Toolset: "wiki.internal"}, {Toolset: "local"}, {Toolset: "api"}}
	a.Spec.Sandbox = &v1alpha1.Sandbox{
		Image: "golang:1.26",
		Env:   []v1alpha1.Variable{{Name: "GOFLAGS", Value: "-mod=mod"}, {Name: "PRICE", Value: "$(HOSTNAME) costs $5"}},
	}
	a.Spec.Workspace.Git = &v1alpha1.Git{URL: "https://git.example.com/app.git", SecretRef: &v1alpha1.SecretRef{Name: "git"}, Publish: v1alpha1.PublishBranch}
	a.Spec.Skills = []v1alpha1.Skill{
		{Name: "release-notes", Git: &v1alpha1.SkillGit{URL: "https://skills.example.com/skills.git", Revision: strings.Repeat("5", 40), Path: "release-notes", SecretRef: &v1alpha1.SecretRef{Name: "skills"}}},
		{Name: "go-review", ConfigMapRef: &v1alpha1.ConfigMapRef{Name: "go-review"}},
	}
	a.Spec.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "rules"}, Path: "docs/rules"}, {ConfigMapRef: v1alpha1.ConfigMapRef{Name: "style"}, Path: "docs/style"}}
}

// Durable changes an Agent so that files and journal are on a volume.
func Durable(a *v1alpha1.Agent) {
	class, retention := "fast", v1alpha1.Duration("60s")
	a.Spec.Workspace.Durability, a.Spec.Workspace.StorageClassName, a.Spec.Retention.Volume = v1alpha1.DurabilityVolume, &class, &retention
}

// Toolsets returns the Toolsets of a Coder.
func Toolsets() snapshot.Objects {
	o := Objects()
	value := "https://issues.example.com?q=$(X)"
	o.Toolsets = map[string]*v1alpha1.Toolset{}
	for name, spec := range map[string]v1alpha1.ToolsetSpec{
		"issues": {Stdio: &v1alpha1.StdioServer{Command: []string{"issues-mcp"}, Container: &v1alpha1.ServerContainer{Image: "ghcr.io/acme/issues:2"}, Env: []v1alpha1.ServerVariable{
			{Name: "ISSUES_URL", Value: &value},
			{Name: "ISSUES_TOKEN", ValueSecretRef: &v1alpha1.SecretKeyRef{Name: "issues", Key: "token"}},
		}}},
		"wiki.internal": {Stdio: &v1alpha1.StdioServer{Command: []string{"wiki"}, Container: &v1alpha1.ServerContainer{Image: "wiki@sha256:" + strings.Repeat("a", 64), Workspace: v1alpha1.WorkspaceAccessReadOnly}}},
		"local":         {Stdio: &v1alpha1.StdioServer{Command: []string{"local"}, RunIn: v1alpha1.RunInSandbox}},
		"api":           {HTTP: &v1alpha1.HTTPServer{URL: "http://api.tools:8080/mcp", Auth: &v1alpha1.Auth{Bearer: &v1alpha1.BearerAuth{TokenSecretRef: v1alpha1.SecretKeyRef{Name: "api", Key: "api-key"}}}}},
	} {
		t := &v1alpha1.Toolset{Spec: spec}
		t.Name, t.Namespace = name, Namespace
		o.Toolsets[name] = t
	}
	return o
}
