package api_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// literal is a string of CEL.
var literal = regexp.MustCompile(`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"`)

// Each rule of the schemas of new objects refuses one of the cases of this package, which are
// compared with lint too. A rule is known by its message.
func TestEveryRuleRefusesACase(t *testing.T) {
	found := strings.Join(everyFinding(t), "\n")
	for _, plural := range []string{"models", "agents", "runs", "decisions", "toolsets", "workflows", "schedules"} {
		schema := crd(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
		delete(schema.Properties, "status")
		eachRule(*schema, plural, func(path string, rule apiextensionsv1.ValidationRule) {
			if !strings.Contains(rule.Rule, "oldSelf") && !strings.Contains(found, messageOf(rule)) {
				t.Errorf("%s: no case of this package is refused with %q by the rule %s", path, messageOf(rule), rule.Rule)
			}
		})
	}
}

// everyFinding returns what lint finds in all cases that the server refuses.
func everyFinding(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, cases := range []map[string]ruleCase{
		ruleCases, typeCases, modelCases, toolCases, agentCases, decisionCases, sandboxCases, policyCases,
		toolsetCases, approvalCases, scheduleCases, workflowCases, nodeCases,
	} {
		for _, tc := range cases {
			if tc.want != "" {
				out = append(out, lintErrors(t, manifestOf(t, object(t, tc.base, tc.bend)))...)
			}
		}
	}
	for _, manifest := range manifestsIn(t, "refused") {
		out = append(out, lintErrors(t, manifest)...)
	}
	return out
}

func eachRule(s apiextensionsv1.JSONSchemaProps, path string, visit func(string, apiextensionsv1.ValidationRule)) {
	for _, rule := range s.XValidations {
		visit(path, rule)
	}
	for name, property := range s.Properties {
		eachRule(property, path+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		eachRule(*s.Items.Schema, path+"[]", visit)
	}
}

// messageOf returns the message of a rule or, if an expression computes it, the longest text
// in it.
func messageOf(rule apiextensionsv1.ValidationRule) string {
	if rule.MessageExpression == "" {
		return rule.Message
	}
	var texts []string
	for _, m := range literal.FindAllStringSubmatch(rule.MessageExpression, -1) {
		texts = append(texts, cmp.Or(m[1], m[2]))
	}
	return slices.MaxFunc(texts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}
