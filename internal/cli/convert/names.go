package convert

import (
	"fmt"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// tools are names of tools that Agents of the files give, which are no former names of built-ins.
type tools []string

// toolsOf returns the names that Agents give to tools of their own.
func toolsOf(files []lint.File) tools {
	var out tools
	for _, file := range files {
		for _, d := range split(file) {
			out = append(out, toolsIn(d.parse())...)
		}
	}
	return out
}

func toolsIn(root *yamlnode.Node) tools {
	var out tools
	for _, object := range objectsOf(root) {
		for _, tool := range places(object, "spec.tools[]") {
			out = append(out, text(tool.node, "agent"), text(tool.node, "custom"), text(tool.node, "name"))
		}
	}
	return out
}

// former returns the tools that had another name, but for names that other tools have today.
func (t tools) former() []policy.Former {
	var out []policy.Former
	names := task.FormerNames()
	for _, name := range task.ToolsOfEveryAgent {
		names[name] = task.ToolName(name, 1)
	}
	for _, f := range policy.FormerOf(names, t) {
		f.IsThere = true
		out = append(out, f)
	}
	return out
}

// renameInTexts replaces former names of tools and input in the expressions of an object.
func (c *converter) renameInTexts() {
	switch text(c.object, "kind") {
	case "Agent":
		c.renameInConditions()
	case "Workflow":
		c.renameParameters()
	}
}

// ofCustomRunner reports whether an Agent has a custom runner. A tool of it may have a former name, so its
// Agents are left to lint.
func (c *converter) ofCustomRunner() bool {
	return len(places(c.object, "spec.podTemplate.runnerImage")) > 0
}

// renameInHooks replaces former names of tools in the hooks of an Agent.
func (c *converter) renameInHooks() {
	if c.ofCustomRunner() {
		return
	}
	former := c.taken.former()
	for _, p := range places(c.object, "spec.hooks[].tools[]") {
		i := slices.IndexFunc(former, func(f policy.Former) bool { return f.Was == p.node.Value })
		if i >= 0 && isText(p.node) {
			p.node.Value = former[i].Is
			c.changed(p.node.Line, p.path, fmt.Sprintf("%s: %s", p.path, former[i].Is))
		}
	}
}

// renameInConditions replaces former names of tools in conditions that compare a name.
func (c *converter) renameInConditions() {
	if c.ofCustomRunner() {
		return
	}
	former := c.taken.former()
	for _, path := range []string{"spec.policy[].when", "spec.tools[].approval.when"} {
		for _, p := range places(c.object, path) {
			c.rewrite(p, func(when string) string { return policy.WithNamesOfToday(when, former) })
		}
	}
}

// rewrite changes a text.
func (c *converter) rewrite(p place, change func(string) string) {
	if !isText(p.node) {
		return
	}
	now := change(p.node.Value)
	if now == p.node.Value || c.blocks != nil && !c.rewriteBlock(p.node, change) {
		return
	}
	p.node.Value = now
	c.changed(p.node.Line, p.path, p.path+" with the names of today")
}

// rewriteBlock changes a literal or folded text in the lines of the document, because the encoder would break its lines
// elsewhere. It returns false for other texts, and for a change that adds or removes lines.
func (c *converter) rewriteBlock(n *yamlnode.Node, change func(string) string) bool {
	if n.Style&(yamlnode.LiteralStyle|yamlnode.FoldedStyle) == 0 {
		return false
	}
	block := blockOf(c.blocks[n.Line:])
	now := linesIn(change(strings.Join(block, "")))
	return len(now) == len(block) && copy(block, now) > 0
}

// blockOf returns the lines with which a text in lines of its own begins.
func blockOf(lines []string) []string {
	indent := -1
	for i, line := range lines {
		rest := strings.TrimLeft(line, " ")
		switch own := len(line) - len(rest); {
		case strings.TrimSpace(rest) == "":
		case indent < 0:
			indent = own
		case own < indent:
			return lines[:i]
		}
	}
	return lines
}

// renameParameters writes input for parameters in the expressions of a Workflow.
func (c *converter) renameParameters() {
	var walk func(p place)
	walk = func(p place) {
		switch p.node.Kind {
		case yamlnode.ScalarNode:
			c.rewrite(p, inputIn(p.path))
		case yamlnode.SequenceNode:
			for i, item := range p.node.Content {
				walk(place{fmt.Sprintf("%s[%d]", p.path, i), item})
			}
		case yamlnode.MappingNode:
			for i := 0; i < len(p.node.Content); i += 2 {
				walk(place{p.path + "." + p.node.Content[i].Value, p.node.Content[i+1]})
			}
		default: // no aliases are converted
		}
	}
	if spec := child(c.object, "spec"); spec != nil {
		walk(place{"spec", spec})
	}
}

// inputIn returns a function that writes input instead of parameters in a field of a Workflow: an expression, or a
// text with expressions.
func inputIn(path string) func(string) string {
	for _, expression := range []string{".when", ".forEach.items", ".loop.until", ".cel"} {
		if strings.HasSuffix(path, expression) {
			return inExpression
		}
	}
	return inText
}

// inText writes input for parameters in the expressions of a text.
func inText(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${{")
		expression, after, closed := strings.Cut(rest, "}}")
		if !found || !closed {
			b.WriteString(text)
			return b.String()
		}
		if !strings.HasSuffix(before, "$") { // $${{ is a literal ${{
			expression = inExpression(expression)
		}
		b.WriteString(before + "${{" + expression + "}}")
		text = after
	}
}

// inExpression writes input for parameters in an expression, but in its texts and where it is the field of another value.
func inExpression(expression string) string {
	const old = "parameters"
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(expression):
			b.WriteByte(c)
			i++
			c = expression[i]
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && isNameAt(expression, i, old):
			b.WriteString("input")
			i += len(old) - 1
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// isNameAt reports whether a name is at a place of an expression, and is neither a field of what is before it nor a
// function.
func isNameAt(expression string, at int, name string) bool {
	rest, is := strings.CutPrefix(expression[at:], name)
	before := strings.TrimRight(expression[:at], " \t\r\n")
	isField := strings.HasSuffix(before, ".") || at > 0 && isPartOfName(expression[at-1])
	return is && !isField && (rest == "" || !isPartOfName(rest[0]) && rest[0] != '(')
}

func isPartOfName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
