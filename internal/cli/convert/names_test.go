package convert

import (
	"cmp"
	"testing"
)

func TestParametersInExpressionsBecomeInput(t *testing.T) {
	for before, after := range map[string]string{
		"parameters.x":                            "input.x",
		`parameters['x'] + parameters["y"]`:       `input['x'] + input["y"]`,
		"has(parameters.x) && 'x' in parameters":  "has(input.x) && 'x' in input",
		"parameters.?x.orValue(parameters[?'y'])": "input.?x.orValue(input[?'y'])",
		"{'a': parameters}":                       "{'a': input}",
		"'parameters.x' + parameters .x":          "'parameters.x' + input .x",
		"nodes.a.output.parameters['x']":          "",
		"nodes.a.output . parameters":             "",
		"nodes.a.output.\n  parameters.x":         "",
		"my_parameters.x + parameters2.x":         "",
		"parameters(1)":                           "",
		`'it\'s parameters'`:                      "",
	} {
		if got := inExpression(before); got != cmp.Or(after, before) {
			t.Errorf("%s: %s, want %s", before, got, cmp.Or(after, before))
		}
	}
}
