package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// The keywords that hold schemas: one, one for each name, or a list.
var (
	schemaKeywords = []string{
		"items", "additionalProperties", "additionalItems", "contains", "not", "if", "then", "else",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties",
	}
	schemaMapKeywords  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaListKeywords = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
)

// valueKeywords hold values of the arguments, which may be null.
var valueKeywords = []string{"default", "const", "example"}

// clean makes a schema and the schemas in it valid in the current draft of JSON Schema.
func (p *portable) clean(node map[string]any) {
	p.dropInvalid(node)
	p.cleanType(node)
	p.cleanRequired(node)
	p.cleanBounds(node)
	p.cleanItems(node)
	for _, name := range schemaKeywords {
		if value, ok := node[name]; ok {
			node[name] = p.child(value)
		}
	}
	for _, name := range schemaMapKeywords {
		p.cleanMap(node, name)
	}
	for _, name := range schemaListKeywords {
		p.cleanList(node, name)
	}
	if _, ok := node["properties"]; ok {
		p.declareRequired(node)
	}
}

// dropInvalid removes keywords without a value, references that are not text, and an enum that is
// not a list.
func (p *portable) dropInvalid(node map[string]any) {
	for name, value := range node {
		if value == nil && !slices.Contains(valueKeywords, name) {
			p.note(name + ": null is removed")
			delete(node, name)
		}
	}
	if _, ok := node["$ref"].(string); !ok && node["$ref"] != nil {
		p.drop(node, "$ref")
	}
	if _, ok := node["enum"].([]any); !ok && node["enum"] != nil {
		p.drop(node, "enum")
	}
}

// drop removes a keyword whose value no draft allows.
func (p *portable) drop(node map[string]any, name string) {
	p.note(name + " is removed, because its value is invalid")
	delete(node, name)
}

// child returns a schema in a schema: an object or a boolean.
func (p *portable) child(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["$id"]; ok { // references in it would be relative to it
			p.note("$id below the root is removed")
			delete(v, "$id")
		}
		p.clean(v)
		return v
	case bool:
		return v
	}
	p.note("a value that is not a schema is replaced by {}")
	return map[string]any{}
}

func (p *portable) cleanMap(node map[string]any, name string) {
	value, ok := node[name]
	if !ok {
		return
	}
	members, ok := value.(map[string]any)
	if !ok {
		p.drop(node, name)
		return
	}
	for key, member := range members {
		members[key] = p.child(member)
	}
}

func (p *portable) cleanList(node map[string]any, name string) {
	value, ok := node[name]
	if !ok {
		return
	}
	list, _ := value.([]any)
	if len(list) == 0 {
		p.drop(node, name)
		return
	}
	for i, member := range list {
		list[i] = p.child(member)
	}
}

// cleanType removes types that do not exist.
func (p *portable) cleanType(node map[string]any) {
	value, ok := node["type"]
	if !ok {
		return
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var known []any
	for _, v := range list {
		name := typeName(v)
		if name != "" && !slices.Contains(known, any(name)) {
			known = append(known, name)
		}
	}
	switch {
	case len(known) == 0:
		p.drop(node, "type")
	case isList && !slices.Equal(known, list):
		p.note("type is corrected")
		node["type"] = known
	case !isList && known[0] != value:
		p.note("type is corrected")
		node["type"] = known[0]
	}
}

// typeName returns the name of a type in JSON Schema, in any case of letters, or an empty name. A null in a list of
// types means the type null.
func typeName(value any) string {
	text, ok := value.(string)
	switch text = strings.ToLower(text); {
	case value == nil:
		return "null"
	case ok && (text == "null" || slices.Contains(types, text)):
		return text
	}
	return ""
}

// cleanRequired keeps names only, each once. Older drafts have a boolean.
func (p *portable) cleanRequired(node map[string]any) {
	value, ok := node["required"]
	if !ok {
		return
	}
	list, isList := value.([]any)
	names := unique(requiredOf(node))
	switch {
	case !isList:
		p.drop(node, "required")
	case len(names) != len(list):
		p.note("required is corrected")
		node["required"] = asList(names)
	}
}

// declareRequired adds a property for each name in required that has none: some providers
// refuse the schema otherwise.
func (p *portable) declareRequired(node map[string]any) {
	properties, ok := node["properties"].(map[string]any)
	if !ok {
		return
	}
	for _, name := range requiredOf(node) {
		if _, ok := properties[name]; !ok {
			p.note("properties that are required are added to properties")
			properties[name] = map[string]any{}
		}
	}
}

// cleanBounds turns exclusiveMinimum and exclusiveMaximum of older drafts, which are booleans
// there, into numbers.
func (p *portable) cleanBounds(node map[string]any) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		is, ok := node[exclusive].(bool)
		if !ok {
			continue
		}
		p.note(exclusive + " is written as a number")
		delete(node, exclusive)
		if limit, ok := node[bound].(json.Number); ok && is {
			node[exclusive] = limit
			delete(node, bound)
		}
	}
}

// cleanItems adds items to an array, and writes a list of items as prefixItems.
func (p *portable) cleanItems(node map[string]any) {
	if list, ok := node["items"].([]any); ok {
		p.note("a list of items is written as prefixItems")
		delete(node, "items")
		if _, ok := node["prefixItems"]; !ok && len(list) > 0 {
			node["prefixItems"] = list
		}
		if rest, ok := node["additionalItems"]; ok {
			node["items"] = rest
			delete(node, "additionalItems")
		}
	}
	if _, ok := node["items"]; !ok && allows(node["type"], "array") {
		p.note("items of an array are added")
		node["items"] = map[string]any{}
	}
}

// subschemas returns the schemas in a schema, under the keywords that are given.
func subschemas(node map[string]any, keywords ...[]string) []map[string]any {
	var all []map[string]any
	add := func(value any) {
		if child, ok := value.(map[string]any); ok {
			all = append(all, child)
		}
	}
	for _, name := range slices.Concat(keywords...) {
		switch {
		case slices.Contains(schemaKeywords, name):
			add(node[name])
		case slices.Contains(schemaListKeywords, name):
			list, _ := node[name].([]any)
			for _, member := range list {
				add(member)
			}
		default:
			members, _ := node[name].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(members)) {
				add(members[key])
			}
		}
	}
	return all
}

// dropReferences removes references to schemas that do not exist in the document, and references that form a cycle on
// the same value, on which a validator would not terminate.
func (p *portable) dropReferences(node map[string]any) {
	for _, name := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := node[name]; ok {
			p.drop(node, name)
		}
	}
	if ref, ok := node["$ref"].(string); ok {
		if target, ok := p.target(ref); !ok || p.reaches(target, node, map[string]bool{ref: true}) {
			p.note("$ref without an end is removed")
			delete(node, "$ref")
		}
	}
	for _, child := range subschemas(node, schemaKeywords, schemaMapKeywords, schemaListKeywords) {
		p.dropReferences(child)
	}
}

// sameValue are the keywords whose schemas apply to the same value.
var sameValue = []string{"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"}

// reaches reports whether a schema applies another one to the same value. The references in seen were followed before.
func (p *portable) reaches(from, to map[string]any, seen map[string]bool) bool {
	if p.followed++; p.followed > maxFollowed || isSame(from, to) {
		return true
	}
	if ref, ok := from["$ref"].(string); ok && !seen[ref] {
		seen[ref] = true
		if target, ok := p.target(ref); ok && p.reaches(target, to, seen) {
			return true
		}
	}
	return slices.ContainsFunc(subschemas(from, sameValue), func(child map[string]any) bool { return p.reaches(child, to, seen) })
}

// isSame reports whether two schemas are one object.
func isSame(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
