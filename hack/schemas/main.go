// Command schemas writes JSON schemas for kubeconform without a network: those
// of Kubernetes from the OpenAPI documents in its own source, those of our kinds
// from their CRDs. Every object is closed: an unknown field is an error.
//
//	schemas OUT OPENAPI-DIR CRD-DIR
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// A schema is a JSON schema, as written.
type schema = map[string]any

// kind is the kind of object that a schema describes.
type kind struct{ Group, Version, Kind string }

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: schemas OUT OPENAPI-DIR CRD-DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func run(out, openAPI, crds string) error {
	if err := each(filepath.Join(openAPI, "*__v*_openapi.json"), func(path string) error {
		return fromOpenAPI(out, path)
	}); err != nil {
		return err
	}
	return each(filepath.Join(crds, "*_*.yaml"), func(path string) error {
		return fromCRD(out, path)
	})
}

// each calls do for every file that matches, and wants one at least.
func each(pattern string, do func(path string) error) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("reading pattern: %w", err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("no file matches %s", pattern)
	}
	for _, path := range paths {
		if err := do(path); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return nil
}

// fromOpenAPI writes the whole document once, and for each kind in it a file
// that points into the document.
func fromOpenAPI(out, path string) error {
	var doc struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := read(path, &doc); err != nil {
		return err
	}
	for _, s := range doc.Components.Schemas {
		closeObjects(s)
	}
	name := filepath.Base(path)
	if err := write(filepath.Join(out, name), doc); err != nil {
		return err
	}
	for id, s := range doc.Components.Schemas {
		kinds, err := kindsOf(s)
		if err != nil {
			return fmt.Errorf("reading %s: %w", id, err)
		}
		for _, k := range kinds {
			ref := schema{"$ref": name + "#/components/schemas/" + id}
			if err := write(fileOf(out, k), ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// kindsOf returns the kind that a schema describes; none: it describes no kind, or several, such as DeleteOptions,
// which no manifest has.
func kindsOf(s schema) ([]kind, error) {
	raw, err := json.Marshal(s["x-kubernetes-group-version-kind"])
	if err != nil {
		return nil, err
	}
	var kinds []kind
	if err := json.Unmarshal(raw, &kinds); err != nil || len(kinds) > 1 {
		return nil, err
	}
	return kinds, nil
}

func fromCRD(out, path string) error {
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := read(path, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		s := version.Schema.OpenAPIV3Schema
		closeObjects(s)
		k := kind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		if err := write(fileOf(out, k), s); err != nil {
			return err
		}
	}
	return nil
}

// closeObjects goes through a schema and closes every object in it.
func closeObjects(node any) {
	switch n := node.(type) {
	case []any:
		for _, v := range n {
			closeObjects(v)
		}
	case schema:
		for keyword, v := range n {
			if keyword != "properties" { // a map of names, no schema
				closeObjects(v)
			}
		}
		properties, _ := n["properties"].(schema)
		for _, property := range properties {
			closeObjects(property)
		}
		closeObject(n)
	}
}

// closeObject allows an object the properties that it lists and no others,
// unless it lists none or says otherwise.
func closeObject(s schema) {
	_, lists := s["properties"].(schema)
	_, says := s["additionalProperties"]
	open, _ := s["x-kubernetes-preserve-unknown-fields"].(bool)
	if lists && !says && !open {
		s["additionalProperties"] = false
	}
}

// fileOf returns the file in which kubeconform looks for a kind: deployment-apps-v1.json, service-v1.json.
func fileOf(out string, k kind) string {
	name := k.Kind
	if group, _, _ := strings.Cut(k.Group, "."); group != "" {
		name += "-" + group
	}
	return filepath.Join(out, strings.ToLower(name+"-"+k.Version)+".json")
}

func read(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(raw, into) // JSON is YAML
}

func write(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}
