package convert

import (
	"cmp"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// A rule converts a field. If it could lose a value, it changes nothing and returns an empty text: the new field exists
// already, or the value has an unexpected form.
type rule struct {
	in    string // the mappings that may have the field, for example spec.tools[]
	field string
	// to converts the field whose name is m.Content[i], and returns its path of today below in.
	to func(m *yamlnode.Node, i int) string
}

// rules are the rows of docs/reference/api-changes.md that can be converted, by kind.
var rules = map[string][]rule{
	"Model": {
		{"spec", "model", rename("modelID")},
		{"spec", "credentials", secretKey("apiKeySecretRef")},
		{"spec", "parameters", rename("inference")},
		{"spec", "deployment", move("azure", "deployment")},
		{"spec", "apiVersion", move("azure", "apiVersion")},
		{"spec", "format", formatToAPI},
		{"spec", "deepSeek", settingsToAPI},
		{"spec", "kimi", settingsToAPI},
		{"spec", "driver", move("custom", "driver")},
	},
	"Toolset": {
		{"spec.http", "headers", headersToList},
		{"spec.requests", "headers", headersToList},
		{"spec.http", "auth", authToUnion},
		{"spec.requests", "auth", authToUnion},
		{"spec.stdio", "image", move("container", "image")},
		{"spec.stdio", "workspace", move("container", "workspace")},
		{"spec.stdio.env[]", "secret", secretKey("valueSecretRef")},
		{"spec.requests.tools[]", "input", schemaToInput},
	},
	"Agent": {
		{"spec", "parameters", rename("inference")},
		{"spec", "events", rename("log")},
		{"spec", "podRetention", move("retention", "pod")},
		{"spec.tools[]", "builtin", values("builtin", map[string]string{"HttpRequest": "HTTPRequest"})},
		{"spec.tools[]", "hosts", ofTool("hosts", map[string]string{"HTTPRequest": "httpRequest", "Browse": "browse"})},
		{"spec.tools[]", "endpoint", ofTool("endpoint", map[string]string{"WebSearch": "webSearch", custom: "settings"})},
		{"spec.tools[]", "credentials", credentialsOfTool},
		{"spec.tools[]", "mode", move("delegation", "mode")},
		{"spec.workspace", "instructions", rename("agentsFile")},
		{"spec.workspace", "retainSeconds", secondsTo("retention")},
		{"spec.workspace.git", "secretName", nameTo("secretRef")},
		{"spec.workspace.files[]", "configMap", nameTo("configMapRef")},
		{"spec.hooks[]", "credentials", secretKey("tokenSecretRef")},
		{"spec.podTemplate", "caBundle", keyOf("configMap", "caBundleConfigMapRef")},
	},
	"Workflow": slices.Concat(
		[]rule{{"spec", "parameters", parametersToInput}},
		nodeRules("spec.nodes[]"), nodeRules("spec.finally[]"),
	),
	"Run":      runRules("spec"),
	"Schedule": runRules("spec.runTemplate.spec"),
}

func nodeRules(in string) []rule {
	return []rule{
		{in, "with", rename("input")},
		{in, "retries", rename("maxRetries")},
		{in + ".approval", "groups", move("approvers", "groups")},
	}
}

func runRules(in string) []rule {
	return []rule{
		{in, "parameters", rename("input")},
		{in, "retries", rename("maxRetries")},
		{in, "disruptions", rename("maxDisruptions")},
	}
}

// A converter converts one object.
type converter struct {
	*document
	object  *yamlnode.Node
	taken   tools
	blocks  []string // the lines of the document, if only texts in lines of their own are changed, in these lines
	changes []Change
}

func (c *converter) convert() {
	kind := text(c.object, "kind")
	for _, r := range rules[kind] {
		for _, p := range places(c.object, r.in) {
			i := find(p.node, r.field)
			if i < 0 {
				continue
			}
			line := p.node.Content[i].Line
			if now := r.to(p.node, i); now != "" {
				c.changed(line, p.path+"."+r.field, p.path+"."+now)
			}
		}
	}
	if kind == "Agent" {
		c.moveRetention()
		c.renameInHooks()
	}
	c.renameInTexts()
}

// changed lists a change. A field that is moved twice is one change.
func (c *converter) changed(line int, path, now string) {
	if i := slices.IndexFunc(c.changes, func(before Change) bool { return before.Now == path }); i >= 0 {
		c.changes[i].Now = now
		return
	}
	c.changes = append(c.changes, Change{
		File: c.file, Line: c.first + line - 1, Kind: text(c.object, "kind"),
		Name: cmp.Or(text(c.object, "metadata", "name"), text(c.object, "metadata", "generateName")), Path: path, Now: now,
	})
}

// rename gives a field another name.
func rename(to string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		if find(m, to) >= 0 {
			return ""
		}
		m.Content[i].Value = to
		return to
	}
}

// move moves a field to a neighboring field.
func move(parent, name string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		moved := []*yamlnode.Node{scalar(name), m.Content[i+1]}
		switch at := child(m, parent); {
		case at == nil:
			m.Content[i].Value, m.Content[i+1] = parent, mapping(m, moved...)
		case at.Kind != yamlnode.MappingNode || find(at, name) >= 0:
			return ""
		default:
			moved[0].HeadComment = m.Content[i].HeadComment
			at.Content = append(at.Content, moved...)
			remove(m, i)
		}
		return parent + "." + name
	}
}

// keyOf renames a reference to a key of an object, and the name in it.
func keyOf(object, to string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		ref := m.Content[i+1]
		name := find(ref, object)
		if name < 0 || !hasOnly(ref, object, "key") || !isText(child(ref, object)) || !isText(child(ref, "key")) || find(m, to) >= 0 {
			return ""
		}
		ref.Content[name].Value = "name"
		return rename(to)(m, i)
	}
}

// secretKey renames a reference to a key of a Secret.
func secretKey(to string) func(*yamlnode.Node, int) string { return keyOf("secretName", to) }

// nameTo makes a name a reference.
func nameTo(to string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		if !isText(m.Content[i+1]) || find(m, to) >= 0 {
			return ""
		}
		return move(to, "name")(m, i)
	}
}

// secondsTo renames a number of seconds, and makes it a duration.
func secondsTo(to string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		if m.Content[i+1].Tag != "!!int" || find(m, to) >= 0 {
			return ""
		}
		m.Content[i+1].SetString(m.Content[i+1].Value + "s")
		return rename(to)(m, i)
	}
}

// values renames the values of a field, and the field.
func values(to string, now map[string]string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		value, known := now[m.Content[i+1].Value]
		if !known || !isText(m.Content[i+1]) || to != m.Content[i].Value && find(m, to) >= 0 {
			return ""
		}
		m.Content[i].Value, m.Content[i+1].Value = to, value
		return to + ": " + value
	}
}

var apis = map[string]string{"OpenAI": "ChatCompletions", "Anthropic": "Messages"}

func formatToAPI(m *yamlnode.Node, i int) string { return values("api", apis)(m, i) }

// settingsToAPI converts deepSeek: {format} and kimi: {format}.
func settingsToAPI(m *yamlnode.Node, i int) string {
	format := child(m.Content[i+1], "format")
	if format == nil {
		format = scalar("OpenAI") // the default
	}
	api, known := apis[format.Value]
	if !known || !hasOnly(m.Content[i+1], "format") || find(m, "api") >= 0 {
		return ""
	}
	format.Value = api
	m.Content[i].Value, m.Content[i+1] = "api", format
	return "api: " + api
}

// headersToList makes a map of headers a list.
func headersToList(m *yamlnode.Node, i int) string {
	headers := m.Content[i+1]
	if headers.Kind != yamlnode.MappingNode {
		return ""
	}
	list := &yamlnode.Node{Kind: yamlnode.SequenceNode, Tag: "!!seq", Style: headers.Style}
	for j := 0; j < len(headers.Content); j += 2 {
		name, value := headers.Content[j], headers.Content[j+1]
		if value.Kind != yamlnode.ScalarNode {
			return ""
		}
		item := mapping(headers, scalar("name"), name, scalar("value"), value)
		item.HeadComment, name.HeadComment = name.HeadComment, ""
		list.Content = append(list.Content, item)
	}
	m.Content[i+1] = list
	return "headers[]: {name, value}"
}

// authToUnion converts auth with a type to a union.
func authToUnion(m *yamlnode.Node, i int) string {
	auth := m.Content[i+1]
	of, name, key := text(auth, "type"), child(auth, "secretName"), child(auth, "key")
	secret := func() *yamlnode.Node { return mapping(auth, scalar("name"), name, scalar("key"), key) }
	whole := func() *yamlnode.Node { return mapping(auth, scalar("name"), name) }
	var to string
	var fields []*yamlnode.Node
	switch {
	case !isText(name) || key != nil && !isText(key):
		return ""
	case of == "Bearer" && key != nil && hasOnly(auth, "type", "secretName", "key"):
		to, fields = "bearer", []*yamlnode.Node{scalar("tokenSecretRef"), secret()}
	case of == "Header" && key != nil && isText(child(auth, "header")) && hasOnly(auth, "type", "header", "secretName", "key"):
		to, fields = "header", []*yamlnode.Node{scalar("name"), child(auth, "header"), scalar("valueSecretRef"), secret()}
	case of == "Basic" && hasOnly(auth, "type", "secretName"):
		to, fields = "basic", []*yamlnode.Node{scalar("secretRef"), whole()}
	case of == "OAuthClientCredentials" && isText(child(auth, "tokenURL")) && hasOnly(auth, "type", "secretName", "tokenURL", "scopes"):
		to, fields = "oauthClientCredentials", append([]*yamlnode.Node{scalar("secretRef"), whole()}, pairs(auth, "tokenURL", "scopes")...)
	default:
		return ""
	}
	auth.Content = []*yamlnode.Node{scalar(to), mapping(auth, fields...)}
	return "auth." + to
}

// pairs returns the names and values of some fields that a mapping has.
func pairs(m *yamlnode.Node, names ...string) []*yamlnode.Node {
	var out []*yamlnode.Node
	for _, name := range names {
		if i := find(m, name); i >= 0 {
			out = append(out, m.Content[i], m.Content[i+1])
		}
	}
	return out
}

// schemaToInput converts an input that was a JSON Schema itself.
func schemaToInput(m *yamlnode.Node, i int) string {
	input := m.Content[i+1]
	if text(input, "type") != "object" || find(input, "schema") >= 0 || find(input, "fields") >= 0 {
		return ""
	}
	m.Content[i+1] = mapping(input, scalar("schema"), input)
	return "input.schema"
}

// custom is the key for tools of custom runners in ofTool.
const custom = ""

// ofTool moves a setting of a tool into the field that its tool has for it.
func ofTool(name string, parents map[string]string) func(*yamlnode.Node, int) string {
	return func(m *yamlnode.Node, i int) string {
		builtin := text(m, "builtin")
		parent, has := parents[builtin]
		if !has || builtin == custom && find(m, "custom") < 0 {
			return ""
		}
		return move(parent, name)(m, i)
	}
}

// credentialsOfTool converts the credentials of WebSearch and of custom tools.
func credentialsOfTool(m *yamlnode.Node, i int) string {
	to := ofTool("apiKeySecretRef", map[string]string{"WebSearch": "webSearch", custom: "settings"})
	ref := m.Content[i+1]
	name := find(ref, "secretName")
	if name < 0 || !hasOnly(ref, "secretName", "key") || !isText(child(ref, "secretName")) || !isText(child(ref, "key")) {
		return ""
	}
	now := to(m, i)
	if now != "" {
		ref.Content[name].Value = "name"
	}
	return now
}

// parametersToInput converts the list of parameters of a Workflow.
func parametersToInput(m *yamlnode.Node, i int) string {
	if m.Content[i+1].Kind != yamlnode.SequenceNode || find(m, "input") >= 0 {
		return ""
	}
	return strings.TrimSuffix(move("input", "fields")(m, i), ".")
}

// moveRetention moves the fields of keeping a volume from workspace to retention.
func (c *converter) moveRetention() {
	spec := child(c.object, "spec")
	workspace := child(spec, "workspace")
	for _, f := range []struct{ was, is string }{{"retain", "keepVolume"}, {"retention", "volume"}} {
		i, to := find(workspace, f.was), child(spec, "retention")
		if i < 0 || !isText(workspace.Content[i+1]) || to != nil && (to.Kind != yamlnode.MappingNode || find(to, f.is) >= 0) {
			continue
		}
		if to == nil {
			to = mapping(spec)
			spec.Content = append(spec.Content, scalar("retention"), to)
		}
		key, value := workspace.Content[i], workspace.Content[i+1]
		moved := scalar(f.is)
		moved.HeadComment = key.HeadComment
		to.Content = append(to.Content, moved, value)
		remove(workspace, i)
		c.changed(key.Line, "spec.workspace."+f.was, "spec.retention."+f.is)
	}
}
