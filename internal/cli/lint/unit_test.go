package lint

import (
	"strings"
	"testing"
)

// The API server prints the type or the pattern alone.
func TestValuesWithoutTheirUnitSayWhatToWrite(t *testing.T) {
	for limit, want := range map[string]string{
		"duration: 600":          "spec.limits.duration: must be of type string, not integer: write 600s, or 10m for ten minutes",
		`duration: "600"`:        `spec.limits.duration: "600": must be a duration of at most 720h: write 600s, or 10m for ten minutes`,
		"duration: 10 minutes":   `spec.limits.duration: "10 minutes": must be a duration of at most 720h: write 48h, 1h30m or 90s`,
		"duration: 721h":         `spec.limits.duration: "721h": must be a duration of at most 720h: write 48h, 1h30m or 90s`,
		"cost: 2":                "spec.limits.cost: must be of type string, not integer: write 2USD",
		"cost: 0.5":              "spec.limits.cost: must be of type string, not number: write 0.5USD",
		"cost: 0":                "spec.limits.cost: must be of type string, not integer: write 1.50USD",
		"cost: 2EUR":             `spec.limits.cost: "2EUR": must be an amount in US dollars: write 1.50USD`,
		"cost: 1000000USD":       `spec.limits.cost: "1000000USD": must be an amount in US dollars of at most 999999.999999USD, in steps of 0.000001USD`,
		"tokens: 2 million":      `spec.limits.tokens: "2 million": must be a positive number of tokens: write 500k or 2M`,
		"tokens: 0":              "spec.limits.tokens: 0: should be greater than or equal to 1",
		"tokens: 1.5":            "spec.limits.tokens: must be of type integer or string, not number: write 500k or 2M",
		"duration: 90s":          "",
		"cost: 0.50USD":          "",
		"tokens: 500k":           "",
		"tokens: 500000":         "",
		"modelOutage: 1h30m":     "",
		"unknownDuration: 10min": "unknown field",
	} {
		got := lintText(t, "a.yaml", "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model: gpt\n  instructions: Work.\n  limits: {"+limit+"}\n")
		var errors []string
		for line := range strings.Lines(got) {
			if strings.Contains(line, "error: ") {
				errors = append(errors, strings.TrimSpace(line))
			}
		}
		if all := strings.Join(errors, "\n"); len(errors) > 1 || !strings.Contains(all, want) || want == "" && all != "" {
			t.Errorf("%s: want %q in %s", limit, want, all)
		}
	}
}

// Two values without their unit are two errors: what a pattern and a rule say of each counts once.
func TestEachValueWithoutItsUnitIsToldOnce(t *testing.T) {
	got := lintText(t, "a.yaml", "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model: gpt\n  instructions: Work.\n  limits: {cost: \"2\", duration: \"90\"}\n")
	if n := strings.Count(got, "error: "); n != 2 {
		t.Errorf("%d errors in %s", n, got)
	}
}

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
