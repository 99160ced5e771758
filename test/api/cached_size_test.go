package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// docs/tenancy.md says how large a spec may be that is kept, beside the quota for its kind: as large
// as its schema allows, and no larger than package specsize does.
func TestTheLargestSpecsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(apitest.Root(), "docs", "tenancy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, plural := range map[string]string{
		"Run": "runs", "Agent": "agents", "Model": "models", "Toolset": "toolsets", "Workflow": "workflows", "Schedule": "schedules", "Decision": "decisions",
	} {
		spec := crd(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		if plural == "runs" { // of a longer input the cache keeps nothing
			spec.Properties["input"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(snapshot.MaxInput / 4))}
		}
		kib := (min(atMost(spec), specsize.Max) + 1023) >> 10
		row := fmt.Sprintf("| %s | %d KiB | `count/%s.deckhand.dev` |", kind, kib, plural)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/tenancy.md does not have the row %s", row)
		}
	}
}

// atMost returns the most bytes of a value of a schema; specsize.Max if the schema has no bound.
func atMost(s apiextensionsv1.JSONSchemaProps) int64 {
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.AdditionalProperties != nil {
		return specsize.Max
	}
	switch s.Type {
	case "object":
		var sum int64 = 2
		for name, p := range s.Properties {
			sum += int64(len(name)) + 4 + atMost(p)
		}
		return sum
	case "array":
		if s.MaxItems == nil {
			return specsize.Max
		}
		return *s.MaxItems * (atMost(*s.Items.Schema) + 1)
	case "string":
		return mostOfString(s)
	}
	return 20
}

func mostOfString(s apiextensionsv1.JSONSchemaProps) int64 {
	var bytes int64
	for _, r := range s.XValidations {
		if found(r.Rule, "size(bytes(self)) <= %d", &bytes) {
			return bytes
		}
	}
	switch {
	case len(s.Enum) > 0:
		return longestValue(s.Enum)
	case s.Format == "date-time":
		return 32
	case s.MaxLength == nil:
		return specsize.Max
	}
	return 4 * *s.MaxLength
}
