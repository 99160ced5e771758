package schema

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// anyObject is the schema of a tool whose own schema describes no object.
const anyObject = `{"type":"object","properties":{}}`

// maxMerged bounds how many schemas are merged into the root: references may form a cycle.
const maxMerged = 256

// maxFollowed bounds how many schemas are looked at behind references: each of some thousands may
// lead to all others.
const maxFollowed = 50_000

// Portable returns the JSON Schema of the arguments of a tool in a form that all known model
// providers accept, and a note for each kind of change. A schema that needs no change keeps its
// bytes.
//
// Providers require an object at the root, without anyOf, oneOf, allOf, not and enum there, and
// a valid schema below it: items of each array, no null in place of a keyword, and no keyword in
// a form that only older drafts have. The result accepts each object that the original accepts,
// and may accept more: the server of the tool checks the arguments itself.
func Portable(raw json.RawMessage) (json.RawMessage, []string) {
	value, err := decode(raw)
	root, ok := value.(map[string]any)
	if err != nil || !ok {
		return json.RawMessage(anyObject), []string{"it is not an object"}
	}
	p := &portable{root: root, notes: map[string]bool{}}
	p.clean(root)
	if !mayBeObject(root) {
		return json.RawMessage(anyObject), []string{"its type is not object"}
	}
	root = p.object(root)
	p.root = root
	p.dropReferences(root)
	if p.followed > maxFollowed {
		return json.RawMessage(anyObject), []string{"its references are too many to follow"}
	}
	if len(p.notes) == 0 {
		return raw, nil
	}
	delete(root, "$schema") // the result may use keywords of a later draft
	out, err := json.Marshal(root)
	if err != nil {
		return json.RawMessage(anyObject), []string{"it cannot be written"}
	}
	if len(out) > maxSchemaBytes && len(out) > len(raw) {
		return json.RawMessage(anyObject), []string{"it is too large with its alternatives merged"}
	}
	return out, slices.Sorted(maps.Keys(p.notes))
}

// portable repairs one schema.
type portable struct {
	root   map[string]any
	notes  map[string]bool
	merged int
	// followed counts the schemas that dropReferences looks at behind references.
	followed int
}

func (p *portable) note(text string) { p.notes[text] = true }

// object returns the root as an object schema without combinations.
func (p *portable) object(root map[string]any) map[string]any {
	root = p.flatten(root)
	if root["type"] != "object" {
		p.note("type is set to object")
		root["type"] = "object"
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		p.note("properties are added")
		root["properties"] = map[string]any{}
	}
	p.declareRequired(root)
	return root
}

// flatten returns a schema with its combinations and its reference merged into one object: an object may have the
// properties of all alternatives, and must have the properties that all of them require.
func (p *portable) flatten(node map[string]any) map[string]any {
	if p.merged++; p.merged > maxMerged {
		return map[string]any{}
	}
	out := maps.Clone(node)
	if ref, ok := out["$ref"].(string); ok {
		delete(out, "$ref")
		p.note("$ref at the root is replaced by its target")
		if target, ok := p.target(ref); ok {
			target = p.flatten(target)
			extend(out, target)
			maps.Copy(target, out)
			out = target
		}
	}
	for _, part := range p.parts(out, "allOf") {
		extend(out, part)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		extend(out, alternatives(p.parts(out, name)))
	}
	for _, name := range []string{"not", "enum"} {
		if _, ok := out[name]; ok {
			p.note(name + " at the root is removed")
			delete(out, name)
		}
	}
	return out
}

// parts removes a combination from a schema and returns its objects, flattened.
func (p *portable) parts(node map[string]any, name string) []map[string]any {
	list, ok := node[name].([]any)
	if !ok {
		return nil
	}
	delete(node, name)
	delete(node, "unevaluatedProperties") // what it is about changes with the combination
	p.note(name + " at the root is merged into properties")
	var parts []map[string]any
	for _, v := range list {
		part, ok := v.(map[string]any)
		switch {
		case ok && mayBeObject(part):
			parts = append(parts, p.flatten(part))
		case v == true:
			parts = append(parts, map[string]any{})
		}
	}
	return parts
}

// mayBeObject reports whether the type of a schema allows an object.
func mayBeObject(node map[string]any) bool {
	kind, typed := node["type"]
	return !typed || allows(kind, "object")
}

// alternatives returns one object schema for several, of which a value must match any.
func alternatives(parts []map[string]any) map[string]any {
	all := map[string][]any{}
	required := map[string]int{}
	for _, part := range parts {
		for name, schema := range propertiesOf(part) {
			all[name] = append(all[name], schema)
		}
		for _, name := range unique(requiredOf(part)) {
			required[name]++
		}
	}
	properties := map[string]any{}
	for name, schemas := range all {
		properties[name] = combine("anyOf", schemas)
	}
	maps.DeleteFunc(required, func(_ string, n int) bool { return n < len(parts) })
	return map[string]any{"properties": properties, "required": asList(slices.Sorted(maps.Keys(required)))}
}

// extend adds the properties and the required names of a schema to another one. A value must match both.
func extend(out, part map[string]any) {
	properties := maps.Clone(propertiesOf(out))
	if properties == nil {
		properties = map[string]any{}
	}
	for name, schema := range propertiesOf(part) {
		if own, ok := properties[name]; ok {
			schema = combine("allOf", []any{own, schema})
		}
		properties[name] = schema
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if names := unique(slices.Concat(requiredOf(out), requiredOf(part))); len(names) > 0 {
		out["required"] = asList(names)
	}
}

// combine returns the schema if all are equal, or a combination of different ones.
func combine(name string, schemas []any) any {
	var different []any
	seen := map[string]bool{}
	for _, s := range schemas {
		key, _ := json.Marshal(s) // decoded before: cannot fail
		if !seen[string(key)] {
			different = append(different, s)
		}
		seen[string(key)] = true
	}
	if len(different) == 1 {
		return different[0]
	}
	return map[string]any{name: different}
}

func propertiesOf(node map[string]any) map[string]any {
	properties, _ := node["properties"].(map[string]any)
	return properties
}

func requiredOf(node map[string]any) []string {
	list, _ := node["required"].([]any)
	var names []string
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// unique returns names without repetitions, in their order.
func unique(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func asList(names []string) []any {
	list := make([]any, 0, len(names))
	for _, name := range names {
		list = append(list, name)
	}
	return list
}

// allows reports whether the keyword type has a value.
func allows(kind any, name string) bool {
	if list, ok := kind.([]any); ok {
		return slices.Contains(list, any(name))
	}
	text, _ := kind.(string)
	return strings.EqualFold(text, name)
}

// target returns the schema that a JSON pointer within the document names.
func (p *portable) target(ref string) (map[string]any, bool) {
	pointer, err := url.PathUnescape(ref)
	if err != nil || !strings.HasPrefix(pointer, "#") {
		return nil, false
	}
	at := any(p.root)
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if token == "" {
			continue
		}
		at = member(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
	}
	target, ok := at.(map[string]any)
	return target, ok
}

// member returns the value at a token of a JSON pointer, or nil.
func member(value any, token string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[token]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
