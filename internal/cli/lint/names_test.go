package lint

import (
	"strings"
	"testing"
)

func TestAFieldBesideItsSuccessor(t *testing.T) {
	for name, tc := range map[string]struct{ kind, spec, want string }{
		"a value":                   {"Model", "model: a, modelID: b", "spec.model: unknown field: modelID is set too: remove model"},
		"settings":                  {"Model", "parameters: {topP: 1}, inference: {seed: 1}", "spec.parameters: unknown field: inference is set too: move to it what it lacks, and remove parameters"},
		"a reference":               {"Model", "credentials: {secretName: a, key: b}, apiKeySecretRef: {name: a, key: b}", "spec.credentials: unknown field: apiKeySecretRef is set too: remove credentials"},
		"a reference and a key":     {"Model", "apiKey: sk, apiKeySecretRef: {name: a, key: b}", "spec.apiKey: unknown field: apiKeySecretRef is set too: remove apiKey"},
		"a field of settings":       {"Agent", "maxSteps: 3, limits: {steps: 4}", "spec.maxSteps: unknown field: limits.steps is set too: remove maxSteps"},
		"settings without it":       {"Agent", "maxSteps: 3, limits: {cost: 1USD}", "spec.maxSteps: unknown field: write limits: {steps: 30}"},
		"a field of several":        {"Agent", "temperature: 1, inference: {temperature: 0.5}", "spec.temperature: unknown field: inference.temperature is set too: remove temperature"},
		"a field of an item":        {"Workflow", "nodes: [{name: a, retries: 1, maxRetries: 2}]", "spec.nodes[0].retries: unknown field: nodes[0].maxRetries is set too: remove retries"},
		"a field of another item":   {"Workflow", "nodes: [{name: a, retries: 1}, {name: b, maxRetries: 2}]", "spec.nodes[0].retries: unknown field: it is now spec.nodes[].maxRetries"},
		"a template":                {"Schedule", "runTemplate: {spec: {agent: a}}, jobTemplate: {spec: {}}", "spec.jobTemplate: unknown field: runTemplate is set too: move to it what it lacks, and remove jobTemplate"},
		"a part of the new fields":  {"Decision", "type: Answer, answer: blue", "spec.answer: unknown field: write type: Answer with value: blue"},
		"a Run":                     {"Run", "retries: 1, maxRetries: 2", "spec.retries: unknown field: maxRetries is set too: remove retries"},
		"the Run of a Schedule":     {"Schedule", "runTemplate: {spec: {disruptions: 1, maxDisruptions: 2}}", "spec.runTemplate.spec.disruptions: unknown field: runTemplate.spec.maxDisruptions is set too: remove disruptions"},
		"a field in another object": {"Agent", "workspace: {retainSeconds: 9}, retention: {volume: 2h}", "spec.workspace.retainSeconds: unknown field: retention.volume is set too: remove retainSeconds"},
	} {
		got := lintText(t, "f.yaml", "apiVersion: deckhand.dev/v1alpha1\nkind: "+tc.kind+"\nmetadata: {name: x}\nspec: {"+tc.spec+"}\n")
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: want %s, got:\n%s", name, tc.want, got)
		}
	}
}
