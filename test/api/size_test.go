package api_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// Bounds that follow from the schema alone, however long a Run lasts.
const (
	maxStatus = 66 << 10
	maxSpec   = 160 << 10
	maxCRD    = 256 << 10
)

// A Run cannot outgrow its bounds: the schema's own maxima are added up.
func TestRunIsBoundedBySchema(t *testing.T) {
	schema := crd(t, "runs").Spec.Versions[0].Schema.OpenAPIV3Schema
	for part, limit := range map[string]int64{"status": maxStatus, "spec": maxSpec} {
		node := schema.Properties[part]
		size := largest(t, part, node)
		if part == "status" {
			size -= excluded(t, node)
		}
		if size > limit {
			t.Errorf("%s may have %d bytes, more than %d", part, size, limit)
		}
	}
}

// excluded is how much less a status has than all its fields have: it has nodes, or
// steps, refused hosts, text and files of its own, and those two only once it asks nothing any more.
// It has an output, or waits for a model.
func excluded(t *testing.T, status apiextensionsv1.JSONSchemaProps) int64 {
	t.Helper()
	const rule = "!has(self.nodes) || !has(self.progress) || !has(self.progress.recent) && !has(self.progress.refused) && !(has(self.progress.result) && (has(self.progress.result.text) || has(self.progress.result.files)))"
	if !slices.ContainsFunc(status.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule }) {
		t.Fatal("nothing keeps a status from having nodes and steps")
	}
	const asks = "!has(self.pending) || size(self.pending) == 0 || !has(self.result) || !(has(self.result.text) || has(self.result.files))"
	if !slices.ContainsFunc(status.Properties["progress"].XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == asks }) {
		t.Fatal("nothing keeps a status from having requests and text")
	}
	const awaits = "!has(self.modelWait) || !has(self.result) || !has(self.result.output)"
	if !slices.ContainsFunc(status.Properties["progress"].XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == awaits }) {
		t.Fatal("nothing keeps a status from having an output and a wait for a model")
	}
	progress := status.Properties["progress"].Properties
	result := progress["result"].Properties
	nodes := largest(t, "status.nodes", status.Properties["nodes"])
	recent := largest(t, "status.progress.recent", progress["recent"])
	pending := largest(t, "status.progress.pending", progress["pending"])
	ended := largest(t, "status.progress.result.text", result["text"]) + largest(t, "status.progress.result.files", result["files"])
	refused := largest(t, "status.progress.refused", progress["refused"])
	waits := min(largest(t, "status.progress.modelWait", progress["modelWait"]), largest(t, "status.progress.result.output", result["output"]))
	return waits + nodes + recent + pending + ended + refused - max(nodes+pending, recent+pending+refused, recent+ended+refused)
}

// Client-side apply, Helm and Argo CD keep a copy of a CRD in an annotation or
// a Secret.
func TestCRDsAreSmall(t *testing.T) {
	for _, plural := range []string{"models", "agents", "runs", "decisions", "toolsets", "workflows", "schedules"} {
		info, err := os.Stat(file(plural))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxCRD {
			t.Errorf("the CRD of %s has %d bytes, more than %d", plural, info.Size(), maxCRD)
		}
	}
}

func file(plural string) string {
	return apitest.Manifest("crd", "deckhand.dev_"+plural+".yaml")
}

func crd(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(file(plural))
	if err != nil {
		t.Fatal(err)
	}
	var out apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// largest is the most bytes of JSON that a value of a schema has, escapes left
// out: they are the server's form, not the store's limit.
func largest(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps) int64 {
	t.Helper()
	switch s.Type {
	case "object":
		var sum int64 = 2
		for name, p := range s.Properties {
			sum += int64(len(name)) + 4 + largest(t, path+"."+name, p)
		}
		return sum - shorter(t, path, s)
	case "array":
		if s.MaxItems == nil {
			t.Errorf("%s has no maxItems", path)
			return 0
		}
		sum := *s.MaxItems * (largest(t, path+"[]", *s.Items.Schema) + 1)
		return sum - tighter(*s.MaxItems, s.XValidations)
	case "string":
		return longest(t, path, s)
	case "boolean":
		return 5
	default: // numbers, and integers or strings
		if s.Maximum != nil {
			return int64(len(strconv.FormatFloat(*s.Maximum, 'f', -1, 64)))
		}
		return 20
	}
}

// Maxima of the fields of a metav1.Condition.
const (
	messageMaximum = 32768
	reasonMaximum  = 1024
	typeMaximum    = 316
)

// shorter is how many bytes less than its fields an object has: with an id, the summary of a step is
// shorter by less than the id takes.
func shorter(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps) int64 {
	t.Helper()
	for _, r := range s.XValidations {
		var withID int64
		if found(r.Rule, "!has(self.id) || !has(self.summary) || size(bytes(self.summary)) <= %d", &withID) {
			return min(largest(t, path+".summary", s.Properties["summary"])-withID, largest(t, path+".id", s.Properties["id"]))
		}
	}
	return 0
}

// tighter is how many bytes less than the maxima of a condition's fields the
// rules of a list of conditions allow.
func tighter(items int64, rules apiextensionsv1.ValidationRules) int64 {
	var saved int64
	for _, r := range rules {
		var all, one, each, reason, kind int64
		switch {
		case strings.HasPrefix(r.Rule, "self.map(p, (has(p.question)") && found(r.Rule[strings.LastIndex(r.Rule, " <= "):], " <= %d", &all):
			saved += items*(2*1024+4096+2*8*128+16+80) - all
		case found(r.Rule, "self.all(c, size(bytes(c.message)) <= %d || c.type == 'Succeeded' && size(bytes(c.message)) <= %d)", &each, &one):
			saved += items*messageMaximum - one - (items-1)*each
		case found(r.Rule, "self.all(c, size(bytes(c.message)) <= %d)", &each):
			saved += items * (messageMaximum - each)
		case found(r.Rule, "self.all(c, size(c.reason) <= %d && size(c.type) <= %d)", &reason, &kind):
			saved += items * (reasonMaximum - reason + typeMaximum - kind)
		}
	}
	return saved
}

func found(rule, pattern string, numbers ...any) bool {
	n, err := fmt.Sscanf(rule, pattern, numbers...)
	return err == nil && n == len(numbers)
}

// longest is the most bytes of a string: maxLength counts characters of up to
// four, unless a rule counts bytes.
func longest(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps) int64 {
	t.Helper()
	for _, r := range s.XValidations {
		if _, bound, has := strings.Cut(r.Rule, "size(bytes(self)) <= "); has {
			if n, err := strconv.ParseInt(bound, 10, 64); err == nil {
				return n
			}
		}
	}
	switch {
	case s.Format == "date-time":
		return 32
	case len(s.Enum) > 0:
		return longestValue(s.Enum)
	case s.MaxLength == nil:
		t.Errorf("%s has no maxLength", path)
		return 0
	case strings.HasSuffix(path, "conditions[].message"):
		return messageMaximum
	case s.Pattern == stepIDPattern: // ASCII
		return *s.MaxLength
	case !strings.HasPrefix(path, "status.progress.") && (strings.HasPrefix(path, "status.conditions[]") || *s.MaxLength <= 300):
		return *s.MaxLength // names, reasons, units: ASCII by their patterns, or since the operator writes them
	}
	return 4 * *s.MaxLength
}

const stepIDPattern = `^s[0-9]+(c[0-9]+)?([.]s[0-9]+(c[0-9]+)?)*$`

// longestValue is the most bytes of JSON of the values of an enum.
func longestValue(values []apiextensionsv1.JSON) int64 {
	longest := 0
	for _, v := range values {
		longest = max(longest, len(v.Raw))
	}
	return int64(longest)
}

// Sums over Runs overflow if one number of a status has no bound.
func TestEveryNumberOfAUsageIsBounded(t *testing.T) {
	progress := crd(t, "runs").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["progress"]
	for _, part := range []struct {
		name string
		most float64
	}{{"usage", v1alpha1.MaxUsage}, {"counts", v1alpha1.MaxCount}} {
		for name, field := range progress.Properties[part.name].Properties {
			if field.Type == "integer" && (field.Minimum == nil || *field.Minimum != 0 || field.Maximum == nil || *field.Maximum > part.most) {
				t.Errorf("%s.%s is not between 0 and %.0f", part.name, name, part.most)
			}
		}
	}
}
