package snapshot

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	defaultProcesses = 256
	defaultCommits   = 50
)

// NeedsSandbox says whether anything in a snapshot runs in a sandbox.
func NeedsSandbox(s task.Snapshot) bool {
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for _, t := range a.Tools {
			if task.Builtins[t.Builtin].Sandbox {
				return true
			}
		}
	}
	for _, t := range s.Toolsets {
		if t.Stdio != nil && t.Stdio.InSandbox {
			return true
		}
	}
	return false
}

func sandboxForRunner(s *v1alpha1.Sandbox) *task.Sandbox {
	if s == nil {
		return nil
	}
	out := &task.Sandbox{Image: s.Image, Required: s.Confinement == v1alpha1.ConfinementRequired, Processes: defaultProcesses}
	if s.Processes != nil {
		out.Processes = int(*s.Processes)
	}
	if s.Egress != nil {
		out.Hosts = hostsForRunner(s.Egress.Hosts)
	}
	return out
}

// sourceForRunner is what a workspace begins with.
func sourceForRunner(w v1alpha1.Workspace) task.Source {
	var out task.Source
	if g := w.Git; g != nil {
		out.Git = &task.Git{
			URL: g.URL, Revision: g.Revision, Depth: defaultCommits,
			Publish: g.Publish == v1alpha1.PublishBranch,
		}
		if g.SecretRef != nil {
			out.Git.Secret = string(g.SecretRef.Name)
		}
		if g.Depth != nil {
			out.Git.Depth = int(*g.Depth)
		}
	}
	for _, f := range w.Files {
		out.Files = append(out.Files, f.Path)
	}
	return out
}

func policyForRunner(rules []v1alpha1.PolicyRule) []task.Rule {
	var out []task.Rule
	for _, r := range rules {
		out = append(out, task.Rule{Name: r.Name, When: r.When, Answer: string(r.Answer), Reason: r.Reason, Approvers: approversForRunner(r.Approvers)})
	}
	return out
}

func approvalForRunner(a *v1alpha1.Approval) *task.Approval {
	if a == nil {
		return nil
	}
	return &task.Approval{When: a.When, Approvers: approversForRunner(a.Approvers)}
}

func approversForRunner(a *v1alpha1.Approvers) task.Approvers {
	if a == nil {
		return task.Approvers{}
	}
	return task.Approvers{Groups: a.Groups, Users: a.Users}
}
