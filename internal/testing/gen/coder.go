package gen

import (
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// Coder changes an Agent so that its pod has every kind of container and volume.
func Coder(a *v1alpha1.Agent) {
	a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinShell}, {Toolset: "issues"}, {Toolset: "wiki.internal"}, {Toolset: "local"}, {Toolset: "api"}}
	a.Spec.Sandbox = &v1alpha1.Sandbox{
		Image: "golang:1.26",
		Env:   []v1alpha1.Variable{{Name: "GOFLAGS", Value: "-mod=mod"}, {Name: "PRICE", Value: "$(HOSTNAME) costs $5"}},
	}
	a.Spec.Workspace.Git = &v1alpha1.Git{URL: "https://git.example.com/app.git", SecretRef: &v1alpha1.SecretRef{Name: "git"}, Publish: v1alpha1.PublishBranch}
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
