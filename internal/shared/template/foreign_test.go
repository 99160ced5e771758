package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

func TestFindForeign(t *testing.T) {
	for text, want := range map[string]*template.Foreign{
		"":                                nil,
		"Review ${{ input.file }}.":       nil,
		"$${{ input.file }} is text":      nil,
		"{ {x} } and {{ }} and $(ls -l)":  nil,
		"{{ range .Items }}x{{ end . }}":  nil,
		"${{ {'a': {'b': 1}} }}":          nil,
		"costs $(date)":                   nil,
		"Review {{ parameters.file }}.":   {Text: "{{ parameters.file }}", Path: []string{"parameters", "file"}, Line: 1, Column: 8},
		"é\né {{inputs.parameters.f-1}}.": {Text: "{{inputs.parameters.f-1}}", Path: []string{"inputs", "parameters", "f-1"}, Line: 2, Column: 3},
		"{{=nodes.a.text}}":               {Text: "{{=nodes.a.text}}", Path: []string{"nodes", "a", "text"}, Line: 1, Column: 1},
		"{{ .Values.name }}":              {Text: "{{ .Values.name }}", Path: []string{"Values", "name"}, Line: 1, Column: 1},
		"${{ input.x }} {{ y }}":          {Text: "{{ y }}", Path: []string{"y"}, Line: 1, Column: 16},
		"Review $(params.file), please":   {Text: "$(params.file)", Path: []string{"params", "file"}, Line: 1, Column: 8},
		"Fix ${input.num} now":            {Text: "${input.num}", Path: []string{"input", "num"}, Line: 1, Column: 5},
		"${ nodes.a.output }":             {Text: "${ nodes.a.output }", Path: []string{"nodes", "a", "output"}, Line: 1, Column: 1},
		"echo ${input} ${HOME} ${a.b}":    nil,
		"$(tasks.look.results.count)":     {Text: "$(tasks.look.results.count)", Path: []string{"tasks", "look", "results", "count"}, Line: 1, Column: 1},
	} {
		var all []template.Foreign
		if want != nil {
			all = append(all, *want)
		}
		if diff := cmp.Diff(all, template.FindForeign(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestForeignWarning(t *testing.T) {
	const first = "spec.prompt: column 1: {{ input.a }} is sent to the model as text; write ${{ input.a }}"
	for text, want := range map[string]string{
		"${{ input.a }}":               "",
		"{{ input.a }}":                first,
		"{{ input.a }}, {{ input.a }}": first,
		"{{ input.a }} {{ b }} $(params.c) ${{ input.d }}":                      first + "; the same for {{ b }}, $(params.c)",
		"{{ input.a }} {{ b }} {{ c }} {{ d }} {{ e }} {{ f }} {{ g }} {{ h }}": first + "; the same for {{ b }}, {{ c }}, {{ d }}, {{ e }}, {{ f }}, 2 more",
	} {
		if got := template.ForeignWarning("spec.prompt", text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
