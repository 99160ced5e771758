package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/workflow/celkubernetes"
)

// A scope has the variables that expressions of one node may read.
type scope struct {
	vars   map[string]expr.Type
	reader v1alpha1.Node // empty: the output of the Workflow
	final  bool          // the reader is in finally
	env    *expr.Env
}

// A location is the field of an expression, of a node or of the Workflow.
type location struct{ node, field string }

func (l location) String() string {
	return l.prefix() + l.field
}

// prefix names the node.
func (l location) prefix() string {
	if l.node == "" {
		return ""
	}
	return "node " + l.node + ": "
}

// A nodeReader is a compiled expression, or a text with expressions.
type nodeReader interface {
	Nodes() []string
	Selects(path ...string) bool
}

// scopes returns the scopes of nodes and of finally.
func (c *compiler) scopes() (work, finally *scope) {
	work = &scope{vars: map[string]expr.Type{"input": c.input.typ, "run": run()}}
	finally = &scope{vars: map[string]expr.Type{"input": c.input.typ, "run": run("reason", "message")}, final: true}
	inWork, inFinally := map[string]expr.Type{}, map[string]expr.Type{}
	for _, n := range nodesOf(c.revision.Spec) {
		inFinally[fieldOf(n.Name)] = c.nodeType(n, true)
		if !c.isFinal(n.Name) {
			inWork[fieldOf(n.Name)] = c.nodeType(n, false)
		}
	}
	work.vars["nodes"] = c.nodesType(inWork)
	finally.vars["nodes"] = c.nodesType(inFinally)
	return work, finally
}

func (c *compiler) nodesType(fields map[string]expr.Type) expr.Type {
	return expr.Object("workflows."+c.revision.Name+".nodes", fields)
}

// with returns the scope of a node, with more variables.
func (s *scope) with(reader v1alpha1.Node, more map[string]expr.Type) *scope {
	out := &scope{vars: s.vars, reader: reader, final: s.final}
	if len(more) == 0 {
		out.env = s.env
		return out
	}
	out.vars = maps.Clone(s.vars)
	maps.Copy(out.vars, more)
	return out
}

// environment returns the environment of a scope, created once.
func (c *compiler) environment(s *scope) *expr.Env {
	if s.env != nil {
		return s.env
	}
	env, err := celkubernetes.Language.NewEnv(s.vars)
	if err != nil {
		c.fail("What expressions read cannot be typed: %v", err)
		env, _ = celkubernetes.Language.NewEnv(nil)
	}
	s.env = env
	return env
}

// program compiles an expression; nil: it does not compile, and the problem is stored.
func (c *compiler) program(at location, s *scope, text string, want expr.Type) *expr.Program {
	p, err := c.environment(s).Compile(text, want)
	if err != nil {
		c.explain(at, s, err, func(e *expr.Env) (nodeReader, *expr.Error) { return e.Compile(text, expr.Dyn()) })
		return nil
	}
	c.addNodeReader(at, s, p, func(e *expr.Env) *expr.Error {
		_, err := e.Compile(text, want)
		return err
	})
	return p
}

// template compiles a text with expressions; nil: it does not compile.
func (c *compiler) template(at location, s *scope, text string) *expr.Template {
	t, err := c.environment(s).Template(text)
	if err != nil {
		c.explain(at, s, err, func(e *expr.Env) (nodeReader, *expr.Error) { return e.Template(text) })
		return nil
	}
	c.addNodeReader(at, s, t, func(e *expr.Env) *expr.Error {
		_, err := e.Template(text)
		return err
	})
	return t
}

// addNodeReader adds the dependencies of an expression, if it may read these nodes.
// recompile compiles it without one of them: the error has its position.
func (c *compiler) addNodeReader(at location, s *scope, r nodeReader, recompile func(*expr.Env) *expr.Error) {
	c.nodeReaders = append(c.nodeReaders, r)
	for _, field := range r.Nodes() {
		name := c.fields[field]
		why := c.forbidden(s.reader.Name, name)
		if why == "" {
			c.addDependency(s.reader.Name, name, at.field)
			continue
		}
		where := ""
		if env, err := celkubernetes.Language.NewEnv(c.without(s, field)); err == nil {
			where = position(recompile(env))
		}
		c.fail("%s: %s%s", at, where, why)
	}
}

// forbidden returns why a node may not read another; empty: it may.
func (c *compiler) forbidden(reader, read string) string {
	field := fieldOf(read)
	switch {
	case reader == read:
		return fmt.Sprintf("nodes.%s is this node itself, which has not ended; in until read self, in the prompt of a loop previous", field)
	case reader == "" || c.revision.Spec.Order != v1alpha1.OrderSequential || c.isFinal(reader):
		return ""
	case c.index[read] > c.index[reader]:
		return fmt.Sprintf("nodes.%s comes later, and order is Sequential; list %s before %s", field, read, reader)
	}
	return ""
}

// without returns the variables of a scope without one node.
func (c *compiler) without(s *scope, field string) map[string]expr.Type {
	fields := map[string]expr.Type{}
	for _, n := range nodesOf(c.revision.Spec) {
		if name := fieldOf(n.Name); name != field && (s.final || !c.isFinal(n.Name)) {
			fields[name] = c.nodeType(n, s.final)
		}
	}
	out := maps.Clone(s.vars)
	out["nodes"] = c.nodesType(fields)
	return out
}

// explain stores the error of an expression. If it reads an output or a text that a node
// does not have, that is the better message: to find out, the expression is compiled
// once more with nodes that have both.
func (c *compiler) explain(at location, s *scope, err *expr.Error, recompile func(*expr.Env) (nodeReader, *expr.Error)) {
	why := err.Message
	if c.problem != nil {
		return
	}
	if env, problem := celkubernetes.Language.NewEnv(c.withAllOutputs(s)); problem == nil {
		if r, still := recompile(env); still == nil {
			why = cmp.Or(c.missingOutput(s, r), why)
		}
	}
	c.fail("%s: %s%s", at, position(err), why)
}

// withAllOutputs returns the variables of a scope in which each node has an output and a text.
func (c *compiler) withAllOutputs(s *scope) map[string]expr.Type {
	fields := map[string]expr.Type{}
	for _, n := range nodesOf(c.revision.Spec) {
		fields[fieldOf(n.Name)] = expr.Object("complete."+fieldOf(n.Name), map[string]expr.Type{
			"state": state(), "counts": counts(), "output": expr.Dyn(), "text": expr.Dyn(),
		})
	}
	out := maps.Clone(s.vars)
	out["nodes"] = c.nodesType(fields)
	return out
}

// missingOutput returns which output or text does not exist that an expression reads.
func (c *compiler) missingOutput(s *scope, r nodeReader) string {
	for _, field := range r.Nodes() {
		name := c.fields[field]
		g := c.outputs[name]
		switch {
		case c.isFinal(name) && !s.final:
			return fmt.Sprintf("nodes.%s is of finally, which starts when all others have ended; only finally can read it", field)
		case g.output == nil && r.Selects("nodes", field, "output"), !g.text && r.Selects("nodes", field, "text"):
			return g.whyMissing
		}
	}
	return ""
}

// position returns the position of an error in a field, as a prefix.
func position(err *expr.Error) string {
	switch {
	case err == nil || err.Column == 0:
		return ""
	case err.Line > 1:
		return fmt.Sprintf("line %d, column %d: ", err.Line, err.Column)
	}
	return fmt.Sprintf("column %d: ", err.Column)
}

// isFinal reports whether a node is in finally.
func (c *compiler) isFinal(name string) bool {
	i, found := c.index[name]
	return found && i >= len(c.revision.Spec.Nodes)
}

// listNodes lists the other nodes in a message.
func (c *compiler) listNodes(except string) string {
	var out []string
	for _, n := range nodesOf(c.revision.Spec) {
		if n.Name != except && !c.isFinal(n.Name) {
			out = append(out, n.Name)
		}
	}
	if len(out) == 0 {
		return "there is no other"
	}
	const most = 10
	if len(out) > most {
		out = append(slices.Clip(out[:most]), "…")
	}
	return "there are " + strings.Join(out, ", ")
}
