package policy_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

// BenchmarkDecide is a call against the policy of a careful coding agent.
func BenchmarkDecide(b *testing.B) {
	p := compiled(b,
		policy.Rule{Name: "protected", When: `tool in ["Write", "Edit"] && has(args.path) && args.path.startsWith("/workspace/.github")`, Answer: policy.Deny},
		policy.Rule{Name: "prod", When: `run.namespace == "prod" && agent.depth > 0`, Answer: policy.Deny},
		policy.Rule{Name: "deletes", When: `shell.runs("rm", "-r") || shell.runs("git", "push") || shell.opaque()`, Answer: policy.Ask},
	)
	one := call(`cd /workspace && go build ./... && go test -run 'TestX' ./runner/... 2>&1 | tail -n 20`)
	b.ReportAllocs()
	for b.Loop() {
		if p.Decide(b.Context(), one).Answer != policy.Allow {
			b.Fatal("a call that is fine was not allowed")
		}
	}
}

// BenchmarkCompile is one rule, CEL being set up already.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compiled(b, policy.Rule{Name: "deletes", When: `shell.runs("rm", "-r") || shell.runs("git", "push") || shell.opaque()`, Answer: policy.Ask})
	}
}
