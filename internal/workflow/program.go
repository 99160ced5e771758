package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// Maximum sizes of values in bytes.
const (
	MaxPrompt  = 64 << 10 // a prompt with its values
	MaxInput   = 16 << 10 // the input of an Agent or a Workflow, as JSON
	MaxOutput  = 16 << 10 // the output of a Run
	MaxMessage = 1 << 20  // the message of an approval, of which approvers see the beginning
)

// A Problem is the reason of a node that fails before it has started, or of a Run that
// fails at its end. Reason is a reason of nodes.
type Problem struct{ Reason, Message string } //nolint:errname // it is the status of a node

func (p *Problem) Error() string { return p.Message }

// expressionProblem returns the Problem of an expression.
func expressionProblem(at location, err error) error {
	if problem, is := errors.AsType[*Problem](err); is {
		return problem
	}
	return &Problem{v1alpha1.NodeReasonExpression, fmt.Sprintf("%s: %v", at, err)}
}

// An Iteration is the child Run of a node for which its expressions are evaluated.
type Iteration struct {
	Number   int             // of the item, from 0, or the iteration, from 1
	Item     json.RawMessage // of forEach
	Previous *NodeValue      // the iteration before, of a loop; nil: this is the first
}

// Node returns a node of the Workflow.
func (p *Program) Node(name string) v1alpha1.Node { return p.node(name).spec }

// node returns a compiled node; an empty one if the graph does not have it.
func (p *Program) node(name string) *node {
	if n := p.nodes[name]; n != nil {
		return n
	}
	return &node{}
}

// OutputType returns the type of the output of the Workflow.
func (p *Program) OutputType() expr.Type { return p.outputType }

// When evaluates the condition of a node.
func (p *Program) When(name string, v Values) (bool, error) {
	n := p.node(name)
	if n.when == nil {
		return true, nil
	}
	ok, err := n.when.Bool(p.vars(n, v, n.when.Nodes(), nil))
	if err != nil {
		return false, expressionProblem(location{name, "when"}, p.withDeleted(err, v, n.when.Nodes()))
	}
	return ok, nil
}

// Items evaluates the items of a node.
func (p *Program) Items(name string, v Values) ([]json.RawMessage, error) {
	n := p.node(name)
	if n.items == nil {
		return nil, nil
	}
	raw, err := n.items.Eval(p.vars(n, v, n.items.Nodes(), nil))
	var out []json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return nil, expressionProblem(location{name, "forEach.items"}, p.withDeleted(err, v, n.items.Nodes()))
	}
	return out, nil
}

// Until evaluates the condition of a loop after an iteration, self.
func (p *Program) Until(name string, iteration int, self NodeValue, v Values) (bool, error) {
	n := p.node(name)
	if n.until == nil {
		return true, nil
	}
	ok, err := n.until.Bool(p.vars(n, v, n.until.Nodes(), map[string]any{"iteration": iteration, "self": n.iterationValue(self)}))
	if err != nil {
		return false, expressionProblem(location{name, "loop.until"}, p.withDeleted(err, v, n.until.Nodes()))
	}
	return ok, nil
}

// iterationVars returns the variables of one child Run of a node.
func (n *node) iterationVars(t Iteration) map[string]any {
	switch {
	case n.spec.ForEach != nil:
		return map[string]any{"index": t.Number, "item": t.Item}
	case n.spec.Loop != nil:
		var previous any = expr.Absent
		if t.Previous != nil {
			previous = n.iterationValue(*t.Previous)
		}
		return map[string]any{"iteration": t.Number, "previous": previous}
	}
	return nil
}

// Prompt returns the prompt of a Run of a node, escaped: the Run does not evaluate its
// text again. It is empty if the node has none.
func (p *Program) Prompt(name string, t Iteration, v Values) (string, error) {
	n := p.node(name)
	if n.prompt == nil || n.spec.Approval != nil {
		return "", nil
	}
	at := location{name, "prompt"}
	text, err := p.renderText(n, at, v, n.iterationVars(t), MaxPrompt)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", &Problem{v1alpha1.NodeReasonExpression, fmt.Sprintf("%s: the text is empty after its expressions are replaced. Write some text beside them", at)}
	}
	escaped := template.Literal(text)
	if len(escaped) > MaxPrompt {
		return "", &Problem{v1alpha1.NodeReasonTooLarge, fmt.Sprintf("%s: it has %d bytes with each ${{ in it escaped; at most %d are allowed", at, len(escaped), MaxPrompt)}
	}
	return escaped, nil
}

// Message returns the message of an approval.
func (p *Program) Message(name string, v Values) (string, error) {
	n := p.node(name)
	if n.prompt == nil || n.spec.Approval == nil {
		return "", nil
	}
	return p.renderText(n, location{name, "approval.message"}, v, nil, MaxMessage)
}

// renderText returns a prompt or a message with its values.
func (p *Program) renderText(n *node, at location, v Values, more map[string]any, limit int) (string, error) {
	text, err := n.prompt.Text(p.vars(n, v, n.prompt.Nodes(), more), limit)
	if long, is := errors.AsType[*expr.TooLongError](err); is {
		return "", &Problem{v1alpha1.NodeReasonTooLarge, fmt.Sprintf("%s: %v", at, long)}
	}
	if err != nil {
		return "", expressionProblem(at, p.withDeleted(err, v, n.prompt.Nodes()))
	}
	return text, nil
}

// NodeInput returns the input of a Run of a node, as JSON, or nil.
func (p *Program) NodeInput(name string, t Iteration, v Values) (json.RawMessage, error) {
	n := p.node(name)
	if n.input == nil {
		return nil, nil
	}
	at := location{name, "input"}
	given, err := p.value(n, n.input, v, n.iterationVars(t))
	if err != nil {
		return nil, expressionProblem(at, err)
	}
	if len(given) > MaxInput {
		return nil, tooLarge(at, given, MaxInput)
	}
	if n.spec.Agent != "" && p.revision.Agents[string(n.spec.Agent)].Input == nil && n.spec.Prompt != "" {
		return given, nil // input does not include the prompt
	}
	if err := schema.Validate(n.inputSchema, schema.Fill(n.inputSchema, given)); err != nil {
		return nil, expressionProblem(at, err)
	}
	return given, nil
}

// Output returns the output of the Run, as JSON; nil: the Workflow has none.
func (p *Program) Output(v Values) (json.RawMessage, error) {
	if p.output == nil {
		return nil, nil
	}
	at := location{"", "output"}
	out, err := p.value(nil, p.output, v, nil)
	if err != nil {
		return nil, expressionProblem(at, err)
	}
	if len(out) > MaxOutput {
		return nil, tooLarge(at, out, MaxOutput)
	}
	return out, nil
}

func (p *Program) value(n *node, t *valueTemplate, v Values, more map[string]any) (json.RawMessage, error) {
	return t.value(func(e *expr.Program) (json.RawMessage, error) {
		out, err := e.Eval(p.vars(n, v, e.Nodes(), more))
		return out, p.withDeleted(err, v, e.Nodes())
	})
}

// tooLarge returns the problem of an object that is too large, with its largest member.
func tooLarge(at location, object json.RawMessage, limit int) error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // it is an object
	most := ""
	for _, name := range sortedKeys(members) {
		if most == "" || len(members[name]) > len(members[most]) {
			most = name
		}
	}
	return &Problem{v1alpha1.NodeReasonTooLarge, fmt.Sprintf("%s: it has %d bytes of JSON, %d of them in %s; at most %d are allowed", at, len(object), len(members[most]), most, limit)}
}

// Expressions returns how many compiled expressions the Program has, including those of nested Workflows: they take
// most of its memory.
func (p *Program) Expressions() int {
	n := p.output.expressions()
	for _, nested := range p.nested {
		n += nested.Expressions()
	}
	for _, node := range p.nodes {
		for _, program := range []*expr.Program{node.when, node.items, node.until} {
			if program != nil {
				n++
			}
		}
		n += node.prompt.Expressions() + node.input.expressions()
	}
	return n
}

func (t *valueTemplate) expressions() int {
	if t == nil {
		return 0
	}
	n := 0
	if t.program != nil {
		n++
	}
	for _, field := range t.fields {
		n += field.expressions()
	}
	for _, item := range t.items {
		n += item.expressions()
	}
	return n
}
