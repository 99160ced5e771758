package lint

import (
	"strings"
	"testing"
)

// The API server prints its pattern, and for a number the innards of CEL.
func TestWrongSizesSayWhatToWrite(t *testing.T) {
	for field, want := range map[string]string{
		"workspace: {size: 10}":                                                 "spec.workspace.size: 10: must be a size with a unit: write 10Gi",
		"workspace: {size: 1048576}":                                            "spec.workspace.size: 1048576: must be a size with a unit: write 10Gi",
		"workspace: {size: 1.5}":                                                "spec.workspace.size: must be of type integer or string, not number",
		"workspace: {size: 5GB}":                                                `spec.workspace.size: "5GB": must be a size with a unit: write 5Gi`,
		"workspace: {size: 500 mb}":                                             `spec.workspace.size: "500 mb": must be a size with a unit: write 500Mi`,
		"workspace: {size: big}":                                                `spec.workspace.size: "big": must be a size with a unit: write 10Gi`,
		"workspace: {size: 1Mi}":                                                `spec.workspace.size: "1Mi": must be at least 16Mi: write 1Gi`,
		"workspace: {size: 20G}":                                                "",
		"workspace: {size: 20Gi}":                                               "",
		"podTemplate: {resources: {limits: {memory: 10GB}}}":                    `spec.podTemplate.resources.limits.memory: "10GB": must be a quantity: write 10Gi`,
		"podTemplate: {resources: {requests: {cpu: 2 cores}}}":                  `spec.podTemplate.resources.requests.cpu: "2 cores": must be a quantity: write 2`,
		"podTemplate: {resources: {requests: {cpu: half}}}":                     `spec.podTemplate.resources.requests.cpu: "half": must be a quantity: write 1, or 500m for half a CPU`,
		"sandbox: {image: x, resources: {limits: {memory: 1.5gb}}}":             `spec.sandbox.resources.limits.memory: "1.5gb": must be a quantity: write 1.5Gi`,
		"sandbox: {image: x, resources: {requests: {ephemeral-storage: some}}}": `spec.sandbox.resources.requests.ephemeral-storage: "some": must be a quantity: write 10Gi`,
		"sandbox: {image: x, resources: {limits: {memory: 1Gi, cpu: 1, example.com/gpus: 1k}}}": "",
	} {
		got := lintText(t, "a.yaml", "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model: gpt\n  instructions: Work.\n  "+field+"\n")
		var errors []string
		for line := range strings.Lines(got) {
			if strings.Contains(line, "error: ") {
				errors = append(errors, strings.TrimSpace(line))
			}
		}
		if all := strings.Join(errors, "\n"); len(errors) > 1 || !strings.Contains(all, want) || want == "" && all != "" {
			t.Errorf("%s: want %q in %s", field, want, all)
		}
	}
}
