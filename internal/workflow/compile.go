package workflow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// A Program is a compiled Workflow: its graph, and its expressions with their types. It
// is safe for concurrent use.
type Program struct {
	Graph *graph.Graph

	revision   *Revision
	nested     map[string]*Program
	input      compiledInput
	nodes      map[string]*node
	output     *valueTemplate // nil: the Workflow has none
	outputType expr.Type
}

// A node is a compiled node.
type node struct {
	spec         v1alpha1.Node
	final        bool
	when, items  *expr.Program
	until        *expr.Program
	prompt       *expr.Template // or the message of an approval
	input        *valueTemplate
	inputSchema  []byte // the schema of input
	output, text bool   // whether it has them
}

// compiled is the result of Compile for a Revision.
type compiled struct {
	once    sync.Once
	program *Program
	err     error
}

// Compile compiles a Revision, once. An error of the Workflow is a *snapshot.NotReadyError.
func Compile(v *Revision) (*Program, error) {
	v.compiled.once.Do(func() { v.compiled.program, v.compiled.err = compile(v) })
	return v.compiled.program, v.compiled.err
}

// A compiler compiles a Revision and stores the first problem that it finds.
type compiler struct {
	revision             *Revision
	index                map[string]int    // of nodes, by name
	fields               map[string]string // names of nodes, by their names in expressions
	nested               map[string]*Program
	input                compiledInput
	outputs              map[string]nodeOutput
	lenient              map[string]bool // approvals whose decision an expression reads
	findingReadApprovals bool            // lenient is not known yet

	nodes        map[string]*node
	nodeReaders  []nodeReader
	dependencies map[string][]dependency
	problem      *snapshot.NotReadyError
}

// A dependency is a node to wait for, and the field that requires it.
type dependency struct{ node, field string }

func compile(v *Revision) (*Program, error) {
	c := &compiler{revision: v, index: map[string]int{}, fields: map[string]string{}, nested: map[string]*Program{}, lenient: map[string]bool{}}
	for i, n := range nodesOf(v.Spec) {
		c.index[n.Name], c.fields[fieldOf(n.Name)] = i, n.Name
		nested := v.Workflows[string(n.Workflow)]
		if nested == nil {
			continue
		}
		p, err := Compile(nested)
		if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
			return nil, notReady(v1alpha1.ReasonNotReady, "node %s: Workflow %q is not ready: %s", n.Name, n.Workflow, problem.Message)
		}
		if err != nil {
			return nil, err
		}
		c.nested[string(n.Workflow)] = p
	}
	var problem *snapshot.NotReadyError
	if c.input, problem = compileInput("workflows."+v.Name+".input", v.Spec.Input); problem != nil {
		return nil, problem
	}
	c.findReadApprovals()
	return c.finish()
}

// findReadApprovals sets lenient: the approvals whose decision is read. The Run
// continues after their denial, which changes the type of their output.
func (c *compiler) findReadApprovals() {
	approvals := map[string]bool{}
	for _, n := range nodesOf(c.revision.Spec) {
		if n.Approval != nil {
			approvals[n.Name] = true
		}
	}
	if len(approvals) == 0 {
		return
	}
	c.findingReadApprovals = true
	c.compileAll()
	for name := range approvals {
		for _, r := range c.nodeReaders {
			if r.Selects("nodes", fieldOf(name), "output", "approved") {
				c.lenient[name] = true
			}
		}
	}
	c.findingReadApprovals = false
}

// compileAll compiles all nodes and the output, in the order of the manifest.
func (c *compiler) compileAll() (output *valueTemplate) {
	c.problem, c.nodeReaders = nil, nil
	c.nodes, c.dependencies, c.outputs = map[string]*node{}, map[string][]dependency{}, map[string]nodeOutput{}
	for _, n := range nodesOf(c.revision.Spec) {
		c.outputs[n.Name] = c.outputOf(n)
	}
	c.checkApprovals()
	work, finally := c.scopes()
	c.environment(work)
	c.environment(finally)
	for i, n := range nodesOf(c.revision.Spec) {
		s := work
		if c.isFinal(n.Name) {
			s = finally
		}
		c.addDependencies(i, n)
		c.checkNode(n)
		c.nodes[n.Name] = c.compileNode(n, s.with(n, nil))
		if c.problem != nil && !c.findingReadApprovals {
			return nil // only the first problem is shown
		}
	}
	return c.compileOutput(work)
}

// finish returns the Program.
func (c *compiler) finish() (*Program, error) {
	output := c.compileAll()
	if c.problem != nil {
		return nil, c.problem
	}
	p := &Program{revision: c.revision, nested: c.nested, input: c.input, nodes: c.nodes, output: output}
	if output != nil {
		p.outputType = output.valueType("workflows." + c.revision.Name + ".output")
	}
	if p.Graph = c.graph(); c.problem != nil {
		return nil, c.problem
	}
	return p, nil
}

// compileNode compiles the expressions of a node.
func (c *compiler) compileNode(n v1alpha1.Node, s *scope) *node {
	g := c.outputs[n.Name]
	out := &node{spec: n, final: s.final, output: g.output != nil, text: g.text}
	more := map[string]expr.Type{}
	if n.ForEach != nil {
		out.items = c.program(location{n.Name, "forEach.items"}, s, string(n.ForEach.Items), expr.List(expr.Dyn()))
		more["index"], more["item"] = expr.Int(), expr.Dyn()
		if out.items != nil {
			more["item"] = out.items.Type().Elem()
		}
	}
	if n.When != "" {
		out.when = c.program(location{n.Name, "when"}, s, string(n.When), expr.Bool())
	}
	if n.Loop != nil {
		more["iteration"], more["previous"] = expr.Int(), expr.Optional(c.iterationType(n, "previous"))
		out.until = c.program(location{n.Name, "loop.until"}, s.with(n, map[string]expr.Type{
			"iteration": expr.Int(), "self": c.iterationType(n, "self"),
		}), string(n.Loop.Until), expr.Bool())
	}
	inner := s.with(n, more)
	switch {
	case n.Approval != nil:
		out.prompt = c.template(location{n.Name, "approval.message"}, inner, n.Approval.Message)
	case n.Prompt != "":
		out.prompt = c.template(location{n.Name, "prompt"}, inner, n.Prompt)
	}
	c.compileNodeInput(out, inner)
	return out
}

// compileOutput compiles the output of the Workflow, or returns nil.
func (c *compiler) compileOutput(work *scope) *valueTemplate {
	if c.revision.Spec.Output == nil {
		return nil
	}
	return c.compileValue(location{"", "output"}, work, c.revision.Spec.Output.Raw, expr.Dyn())
}

// compileValue compiles an object with expressions in it. An expression that does not
// compile is nil, and the problem is stored.
func (c *compiler) compileValue(at location, s *scope, raw []byte, want expr.Type) *valueTemplate {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	t, err := parseValue(raw, at.field, want, func(path, text string, want expr.Type) *expr.Program {
		return c.program(location{at.node, path}, s, text, want)
	})
	if err == nil && (t.expression || t.literal != nil && t.literal[0] != '{') {
		err = fmt.Errorf("%s must be an object: write %s: {name: {cel: \"...\"}}", at.field, at.field) //nolint:err113 // for a condition
	}
	if err != nil {
		c.fail("%s%v", at.prefix(), err)
		return &valueTemplate{literal: []byte("{}")}
	}
	return t
}

// graph returns the graph of all nodes.
func (c *compiler) graph() *graph.Graph {
	var nodes []graph.Node
	for _, n := range nodesOf(c.revision.Spec) {
		g := graph.Node{
			Name:        n.Name,
			Kind:        graph.Single,
			Conditional: n.When != "",
			Continue:    n.OnFailure == v1alpha1.OnFailureContinue,
			Final:       c.isFinal(n.Name),
			Lenient:     c.lenient[n.Name],
		}
		switch {
		case n.Approval != nil:
			g.Kind = graph.Approval
		case n.ForEach != nil:
			g.Kind, g.MaxParallel = graph.Items, int(cmp.Or(n.ForEach.MaxParallel, defaultParallel))
		case n.Loop != nil:
			g.Kind, g.MaxIterations = graph.Loop, int(cmp.Or(n.Loop.MaxIterations, v1alpha1.DefaultIterations))
		}
		for _, w := range c.dependencies[n.Name] {
			g.Waits = append(g.Waits, w.node)
		}
		nodes = append(nodes, g)
	}
	g, err := graph.New(nodes)
	if cycle, is := errors.AsType[*graph.CycleError](err); is {
		c.fail("The nodes wait for each other in a cycle: %s; remove one of these dependencies", c.describeCycle(cycle.Path))
	} else if err != nil {
		c.fail("%v", err)
	}
	return g
}

// defaultParallel is the default of ForEach, documented in the API.
const defaultParallel int32 = 5

// describeCycle returns a cycle of nodes, each with the field that lets it wait.
func (c *compiler) describeCycle(path []string) string {
	var out []string
	for i, name := range path[:len(path)-1] {
		dependencies := c.dependencies[name]
		if w := slices.IndexFunc(dependencies, func(w dependency) bool { return w.node == path[i+1] }); w >= 0 {
			name += " (" + dependencies[w].field + ")"
		}
		out = append(out, name)
	}
	return strings.Join(append(out, path[0]), " -> ")
}

// fieldOf returns the name of a node in expressions, where - is minus.
func fieldOf(node string) string { return strings.ReplaceAll(node, "-", "_") }

// counts returns the type of nodes.x.counts.
func counts() expr.Type {
	n := expr.Int()
	return expr.Object("counts", map[string]expr.Type{"total": n, "started": n, "succeeded": n, "failed": n, "skipped": n})
}

// state returns the type of nodes.x.state.
func state() expr.Type {
	var all []string
	for _, s := range graph.States {
		all = append(all, string(s))
	}
	return expr.Enum(all...)
}

// run returns the type of the variable run; finally has reason and message too.
func run(more ...string) expr.Type {
	fields := map[string]expr.Type{}
	for _, name := range append([]string{"namespace", "name", "uid"}, more...) {
		fields[name] = expr.String()
		if name == "reason" {
			fields[name] = expr.Enum(append([]string{v1alpha1.ReasonFinished}, v1alpha1.FailureReasons...)...)
		}
	}
	return expr.Object("run", fields)
}

// A nodeOutput describes the output of one child Run of a node.
type nodeOutput struct {
	output *expr.Type // nil: it has none
	text   bool
	// whyMissing is the message if the output or the text is missing, with what to do.
	whyMissing string
}

// outputOf returns the output of a node.
func (c *compiler) outputOf(n v1alpha1.Node) nodeOutput {
	switch {
	case n.Approval != nil:
		t := c.approvalType(n)
		return nodeOutput{output: &t, whyMissing: "node " + n.Name + " is an approval and has no text: read nodes." + fieldOf(n.Name) + ".output"}
	case n.Workflow != "":
		return c.outputOfWorkflow(n)
	}
	output := c.revision.Agents[string(n.Agent)].Output
	if output == nil {
		return nodeOutput{text: true, whyMissing: "Agent \"" + string(n.Agent) + "\" has no output.schema, so node " + n.Name + " has a text only: read nodes." + fieldOf(n.Name) + ".text, or give the Agent an output.schema"}
	}
	t, err := expr.FromSchema("agents."+string(n.Agent)+".output", output)
	if err != nil {
		c.fail("node %s: output.schema of Agent %q: %v", n.Name, n.Agent, err)
		return nodeOutput{text: true}
	}
	return nodeOutput{output: &t, text: true}
}

func (c *compiler) outputOfWorkflow(n v1alpha1.Node) nodeOutput {
	nested := c.nested[string(n.Workflow)]
	if nested.output == nil {
		return nodeOutput{whyMissing: "Workflow \"" + string(n.Workflow) + "\" declares no output, so node " + n.Name + " has neither output nor text: add output to that Workflow"}
	}
	t := nested.outputType
	return nodeOutput{output: &t, whyMissing: "node " + n.Name + " is a Workflow and has no text: read nodes." + fieldOf(n.Name) + ".output"}
}

// approvalType returns the type of the output of an approval. If the Run continues after
// a denial, input may be absent.
func (c *compiler) approvalType(n v1alpha1.Node) expr.Type {
	s := expr.String()
	fields := map[string]expr.Type{"approved": expr.Bool(), "by": s, "at": s, "reason": s}
	if in := n.Approval.Input; in != nil {
		t, err := expr.FromSchema(c.typeName(n.Name, "output.input"), schema.Filled(inputs.Schema(in)))
		switch {
		case err != nil: // checkNode reports it
			t = expr.Dyn()
		case c.findingReadApprovals:
			t = expr.Dyn() // whether it is optional is not known yet
		case c.lenient[n.Name]:
			t = expr.Optional(t)
		}
		fields["input"] = t
	}
	return expr.Object(c.typeName(n.Name, "output"), fields)
}

func (c *compiler) typeName(node, of string) string {
	return "workflows." + c.revision.Name + ".nodes." + fieldOf(node) + "." + of
}

// nodeType returns the type of nodes.x for a reader.
func (c *compiler) nodeType(n v1alpha1.Node, inFinally bool) expr.Type { //nolint:revive // there are two scopes
	fields := map[string]expr.Type{"state": state(), "counts": counts()}
	add := func(name string, t expr.Type) {
		if n.ForEach != nil && n.OnFailure == v1alpha1.OnFailureContinue {
			t = expr.Optional(t)
		}
		if n.ForEach != nil {
			t = expr.List(t)
		}
		if inFinally || mayHaveNoOutput(n) {
			t = expr.Optional(t)
		}
		fields[name] = t
	}
	g := c.outputs[n.Name]
	if g.output != nil {
		add("output", *g.output)
	}
	if g.text {
		add("text", expr.String())
	}
	return expr.Object("workflows."+c.revision.Name+".nodes."+fieldOf(n.Name), fields)
}

// iterationType returns the type of self and previous: one iteration.
func (c *compiler) iterationType(n v1alpha1.Node, name string) expr.Type {
	fields := map[string]expr.Type{"succeeded": expr.Bool()}
	g := c.outputs[n.Name]
	if g.output != nil {
		fields["output"] = *g.output
	}
	if g.text {
		fields["text"] = expr.String()
	}
	return expr.Object(c.typeName(n.Name, name), fields)
}
