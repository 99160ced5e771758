package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Manifests that pages show have only fields that exist.
func TestManifestsOfPagesHaveNoUnknownField(t *testing.T) {
	kinds := map[string]func() any{
		"Model":    func() any { return &v1alpha1.Model{} },
		"Toolset":  func() any { return &v1alpha1.Toolset{} },
		"Agent":    func() any { return &v1alpha1.Agent{} },
		"Workflow": func() any { return &v1alpha1.Workflow{} },
		"Run":      func() any { return &v1alpha1.Run{} },
		"Decision": func() any { return &v1alpha1.Decision{} },
		"Schedule": func() any { return &v1alpha1.Schedule{} },
	}
	manifests := 0
	for _, page := range found(t, ".md", "docs", "examples") {
		for _, m := range block.FindAllStringSubmatch(read(t, page), -1) {
			if m[1] != "yaml" {
				continue
			}
			for doc := range strings.SplitSeq(m[2], "---\n") {
				var head struct{ APIVersion, Kind string }
				if err := yaml.Unmarshal([]byte(doc), &head); err != nil || head.APIVersion != v1alpha1.GroupVersion.String() {
					continue // a part of a manifest, or another API
				}
				manifests++
				if err := yaml.UnmarshalStrict([]byte(doc), kinds[head.Kind]()); err != nil {
					relative, _ := filepath.Rel(root, page)
					t.Errorf("%s: %s: %v\n%s", relative, head.Kind, err, doc)
				}
			}
		}
	}
	if manifests < 30 {
		t.Errorf("the pages show %d manifests; the pattern finds too few", manifests)
	}
}
