package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A treeWalker visits the nodes of one syntax tree.
type treeWalker struct {
	*reader

	text string // what was parsed
}

// walk visits all nodes of a syntax tree.
func walk(r *reader, file *syntax.File, text string) {
	t := &treeWalker{reader: r, text: text}
	depth, tooDeep := 0, false
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return false
		}
		if depth >= maxDepth {
			tooDeep = true
			return false
		}
		depth++
		t.visit(n)
		t.visitDifferences(n)
		return true
	})
	t.visitText()
	if tooDeep {
		r.skip(text, "the line is nested too deep")
	}
}

// visit visits one node of a syntax tree, without the nodes below it.
func (t *treeWalker) visit(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		t.shellInput(n)
	case *syntax.CallExpr:
		t.run(readWords(n.Args))
	case *syntax.DeclClause:
		t.declaration(n)
	case *syntax.Assign:
		t.assignment(n)
	case *syntax.ParamExp:
		t.expansion(n)
	case *syntax.FuncDecl:
		t.markOpaque("a function may replace a program")
	case *syntax.WordIter:
		t.changedVariable(n.Name.Value)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.LetClause:
		t.quotedCommands(n)
	}
}

// shellInput parses the here-document of a shell.
func (t *treeWalker) shellInput(s *syntax.Stmt) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(s.Redirs) == 0 {
		return
	}
	if !slices.ContainsFunc(readWords(call.Args), func(w word) bool { return shells[base(w.text)] }) {
		return
	}
	for _, redirect := range s.Redirs {
		text := redirect.Hdoc
		if redirect.Op == syntax.WordHdoc {
			text = redirect.Word
		}
		if w := readWord(text); w.known {
			t.script(w.text)
		}
	}
}

// assignment visits a variable that is set, before a command or by itself.
func (t *treeWalker) assignment(n *syntax.Assign) {
	if n.Name != nil && !n.Naked {
		value := readWord(n.Value)
		if n.Array != nil {
			value = anything
		}
		t.setVariable(n.Name.Value, value)
	}
	t.quotedCommands(n)
}

// declaration visits export, declare and the like.
func (t *treeWalker) declaration(n *syntax.DeclClause) {
	reference := n.Variant.Value == "nameref"
	for _, a := range n.Args {
		if !a.Naked {
			continue
		}
		if a.Name != nil {
			t.changedVariable(a.Name.Value)
			continue
		}
		w := readWord(a.Value)
		if !w.known && !w.isOption() {
			t.markOpaque("variables whose names are only known when it runs: " + n.Variant.Value + " " + w.show())
		}
		reference = reference || w.isOption() && strings.Contains(w.text, "n") && n.Variant.Value != "export"
	}
	if reference {
		t.markOpaque("a variable that refers to another: " + n.Variant.Value + " -n")
	}
}

// expansion visits expansions that do more than give a value.
func (t *treeWalker) expansion(n *syntax.ParamExp) {
	if n.Exp == nil {
		return
	}
	switch n.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if n.Param != nil {
			t.setVariable(n.Param.Value, readWord(n.Exp.Word))
			t.quotedCommands(n)
		}
	case syntax.OtherParamOps:
		if strings.HasPrefix(readWord(n.Exp.Word).text, "P") || n.Exp.Word == nil {
			t.markOpaque("the value of a variable is expanded as a prompt, which runs commands in it")
		}
	default: // only gives a value
	}
}

// quotedCommands finds commands in quotes in places that bash may expand again:
// subscripts are evaluated twice.
func (t *treeWalker) quotedCommands(n syntax.Node) {
	found := false
	syntax.Walk(n, func(part syntax.Node) bool {
		switch part := part.(type) {
		case *syntax.CmdSubst:
			return false // is a node of its own
		case *syntax.SglQuoted:
			found = found || hasSubstitution(part.Value)
		case *syntax.Lit:
			text, _ := unescape(part.Value, func(byte) bool { return true })
			found = found || hasSubstitution(text)
		}
		return !found
	})
	if found {
		t.markOpaque("a quoted command, which bash may run when it evaluates the variable")
	}
}

// hasSubstitution reports whether a text contains a command substitution.
func hasSubstitution(s string) bool { return strings.Contains(s, "$(") || strings.ContainsRune(s, '`') }
