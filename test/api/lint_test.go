package api_test

import (
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// borrowed are the parts of our kinds whose types are Kubernetes' own, and the
// free JSON, which has no schema.
var borrowed = regexp.MustCompile(`^(agents|models|runs|decisions|toolsets|workflows|schedules)\.(metadata|apiVersion|kind|status\.conditions\[\]|spec\.podTemplate\.(resources|tolerations\[\]|imagePullSecrets\[\]|affinity|topologySpreadConstraints\[\])|spec\.(input|output)\.schema|spec\.parameters\.extra|spec\.sandbox\.resources|spec\.requests\.tools\[\]\.(body|input))(\.|\[|$)`)

// Every field of ours opens its description with its name, and every string and
// list is bounded: what cannot be bounded cannot be stored for ever.
func TestFieldsAreDescribedAndBounded(t *testing.T) {
	for _, plural := range []string{"models", "agents", "runs", "decisions", "toolsets", "workflows", "schedules"} {
		root := crd(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
		for name, field := range root.Properties {
			inspect(t, plural+"."+name, name, field)
		}
	}
}

func inspect(t *testing.T, path, name string, s apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if borrowed.MatchString(path) {
		return
	}
	if name != "" && !strings.HasPrefix(s.Description, name+" ") {
		t.Errorf("%s: the description does not open with %q: %s", path, name, s.Description)
	}
	switch {
	case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "":
		t.Errorf("%s: a string without bound", path)
	case s.Type == "array" && s.MaxItems == nil:
		t.Errorf("%s: a list without bound", path)
	case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
		t.Errorf("%s: a map without bound", path)
	}
	if s.Default != nil && strings.Contains(path, "[]") && !strings.HasPrefix(path, "runs.status") {
		t.Errorf("%s: a default within a list: every apply of an unchanged object would change something", path)
	}
	for inner, field := range s.Properties {
		inspect(t, path+"."+inner, inner, field)
	}
	if s.Items != nil && s.Items.Schema != nil {
		inspect(t, path+"[]", "", *s.Items.Schema)
	}
}
