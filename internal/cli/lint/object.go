package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// An object is one object of a document.
type object struct {
	*document
	content      map[string]any      // as read; decode and validate change a copy
	nodes        map[string]position // of the fields, by path
	duplicates   []problem
	decoded      map[string]any  // with defaults; nil: it could not be decoded
	invalid      bool            // it has an error
	invalidPaths []string        // the paths of its errors
	incomplete   bool            // it has an unknown field, which may be meant to be another
	explained    map[string]bool // fields of which a finding says that a comma cut a text
}

// A problem is an error in a field. The path is empty if it is about the object.
type problem struct {
	path, message string
	kind          problemKind
	// want is the JSON type that a value must have, if it has another.
	want string
}

// A problemKind selects the hints for a problem.
type problemKind int

const (
	otherProblem problemKind = iota
	unknownField
	otherType
	unsupportedValue
)

func newObject(d *document, root *yamlnode.Node, content map[string]any) *object {
	return &object{document: d, content: content, nodes: indexNodes(root), duplicates: d.duplicates("", root, 0), explained: map[string]bool{}}
}

// duplicates finds names that a mapping has twice: the API server refuses them, and kubectl
// sends the last one.
func (d *document) duplicates(path string, n *yamlnode.Node, depth int) []problem {
	var out []problem
	if depth > maxDepth {
		return nil
	}
	first := map[string]*yamlnode.Node{}
	eachChild(n, func(name string, key, value *yamlnode.Node) {
		at := join(path, name)
		if before := first[name]; before != nil && n.Kind == yamlnode.MappingNode && slices.Contains(n.Content, before) {
			out = append(out, problem{path: at, message: fmt.Sprintf("duplicate field: remove it here or from line %d", d.first+before.Line-1)})
		}
		first[name] = key
		out = append(out, d.duplicates(at, value, depth+1)...)
	})
	return out
}

func (o *object) kind() string { return text(o.content, "kind") }

func (o *object) namespace() string { return text(o.content, "metadata", "namespace") }

// name returns the name, or the prefix of a generated name.
func (o *object) name() string {
	if name := text(o.content, "metadata", "name"); name != "" {
		return name
	}
	if generated := text(o.content, "metadata", "generateName"); generated != "" {
		return generated + "*"
	}
	return ""
}

func text(content map[string]any, path ...string) string {
	var v any = content
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	s, _ := v.(string)
	return s
}

// isOurs reports whether an object is checked. An object without apiVersion may be meant as an object of this API. So
// may an object of one of its kinds in a group with a similar name or in a group of Kubernetes, which has none of these
// kinds. Other products do have such kinds: argoproj.io has a Workflow.
func (o *object) isOurs() bool {
	apiVersion := text(o.content, "apiVersion")
	if apiVersion != "" {
		group, _, _ := strings.Cut(apiVersion, "/")
		ours := v1alpha1.GroupVersion.Group
		name, _, _ := strings.Cut(ours, ".")
		isLike := template.Similar(group, []string{ours}) != "" || strings.Contains(group, name) || isOfKubernetes(apiVersion)
		return group == ours || isLike && slices.Contains(kinds, o.kind())
	}
	_, hasSpec := o.content["spec"]
	return slices.Contains(kinds, o.kind()) || hasSpec
}

// isOfKubernetes reports whether a group is one of Kubernetes itself: v1, apps/v1 or networking.k8s.io/v1.
func isOfKubernetes(apiVersion string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// line returns the line in the file of a field, or of the nearest that contains it.
func (o *object) line(path string) int {
	for {
		if at, found := o.nodes[path]; found {
			return o.first + at.key.Line - 1
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// checkType checks apiVersion and kind.
func (o *object) checkType(known bool) *problem {
	version := v1alpha1.GroupVersion.String()
	switch apiVersion := text(o.content, "apiVersion"); {
	case apiVersion == "" || o.kind() == "":
		return &problem{message: fmt.Sprintf("apiVersion and kind are required: write apiVersion: %s and, for example, kind: Agent", version)}
	case apiVersion != version:
		return &problem{path: "apiVersion", message: fmt.Sprintf("%s is not served: write apiVersion: %s", apiVersion, version)}
	case !known:
		return &problem{path: "kind", message: fmt.Sprintf("there is no kind %s%s; the kinds are %s", o.kind(), similar(o.kind(), kinds), strings.Join(kinds, ", "))}
	}
	return nil
}

// similar suggests a name. Names that differ only in case are similar.
func similar(name string, names []string) string {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return fmt.Sprintf("; did you mean %s?", n)
		}
	}
	return template.Similar(name, names)
}

// copyContent returns a copy of the object that may be changed.
func (o *object) copyContent() map[string]any { return runtime.DeepCopyJSON(o.content) }

// convert writes the decoded object into a typed one, by way of JSON as from the API server.
func (o *object) convert(into any) error {
	data, err := json.Marshal(o.decoded)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
