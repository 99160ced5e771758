package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// node looks at one node of a syntax tree; those below it come by themselves.
func (r *reader) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		r.input(n)
	case *syntax.CallExpr:
		r.run(words(n.Args))
	case *syntax.DeclClause:
		r.declare(n)
	case *syntax.Assign:
		r.assign(n)
	case *syntax.ParamExp:
		r.expansion(n)
	case *syntax.FuncDecl:
		r.function(n)
	case *syntax.WordIter:
		r.variable(n.Name.Value)
	case *syntax.TestClause:
		r.quoted(n)
	case *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.LetClause:
		r.quoted(n)
	case *syntax.Redirect:
		r.redirect(n)
	}
}

// input reads what a shell is given to read, when the line shows it.
func (r *reader) input(s *syntax.Stmt) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(s.Redirs) == 0 {
		return
	}
	for _, w := range words(call.Args) {
		if shells[base(w.text)] {
			r.inputs(s.Redirs)
			return
		}
	}
}

func (r *reader) inputs(redirs []*syntax.Redirect) {
	for _, redir := range redirs {
		text := redir.Hdoc
		if redir.Op == syntax.WordHdoc {
			text = redir.Word
		}
		if text == nil {
			continue
		}
		if w := readWord(text); w.known {
			r.script(w.text)
		}
	}
}

// redirect holds here-documents to delimiters that every shell reads alike: one
// that ends elsewhere has commands where another has text.
func (r *reader) redirect(n *syntax.Redirect) {
	if n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc {
		return
	}
	if slices.ContainsFunc(n.Word.Parts, func(p syntax.WordPart) bool { return !plainPart(p) }) {
		r.hide("a here-document with a delimiter that shells read differently")
	}
}

// plainPart reports whether a part of a delimiter is read alike by all shells.
func plainPart(p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		return plain(strings.TrimPrefix(p.Value, "\\"))
	case *syntax.SglQuoted:
		return !p.Dollar && plain(p.Value)
	case *syntax.DblQuoted:
		return len(p.Parts) == 1 && !p.Dollar && plainPart(p.Parts[0])
	}
	return false
}

// plain reports whether a text has letters, digits and what joins them only.
func plain(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && c != ' ' && c != '!' && c != '+' && c != '%' && c != '@' && c != '/' &&
			(c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

// function notes a function that hides a program behind its name.
func (r *reader) function(n *syntax.FuncDecl) {
	for _, name := range append([]*syntax.Lit{n.Name}, n.Names...) {
		if name != nil && wellKnown(name.Value) {
			r.hide("a function takes the place of " + shorten(name.Value))
		}
	}
}

// assign looks at a variable that is set, before a command or by itself.
func (r *reader) assign(n *syntax.Assign) {
	if n.Name != nil && !n.Naked {
		value := readWord(n.Value)
		if n.Array != nil {
			value = anything
		}
		r.set(n.Name.Value, value)
	}
	if n.Value != nil {
		r.quoted(n.Value)
	}
	if n.Index != nil {
		r.quoted(n.Index)
	}
	if n.Array != nil {
		r.quoted(n.Array)
	}
}

// declare looks at export, declare and their like.
func (r *reader) declare(n *syntax.DeclClause) {
	reference := n.Variant.Value == "nameref"
	for _, a := range n.Args {
		if !a.Naked {
			continue
		}
		if a.Name != nil {
			r.variable(a.Name.Value)
			continue
		}
		w := readWord(a.Value)
		if !w.known && !w.flag() {
			r.hide("variables whose names are only known when it runs: " + n.Variant.Value + " " + w.show())
		}
		reference = reference || w.flag() && strings.Contains(w.text, "n")
	}
	if reference && n.Variant.Value != "export" {
		r.hide("a variable that stands for another: " + n.Variant.Value + " -n")
	}
}

// expansion looks at expansions that do more than give a value.
func (r *reader) expansion(n *syntax.ParamExp) {
	if n.Exp == nil {
		return
	}
	switch n.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if n.Param != nil {
			r.set(n.Param.Value, readWord(n.Exp.Word))
			r.quoted(n)
		}
	case syntax.OtherParamOps:
		if n.Exp.Word == nil || strings.HasPrefix(readWord(n.Exp.Word).text, "P") {
			r.hide("the value of a variable is expanded as a prompt, which runs the commands in it")
		}
	default: // gives a value and does no more
	}
}

// quoted notes commands that are kept as text where bash may come to expand
// them: subscripts are evaluated twice.
func (r *reader) quoted(n syntax.Node) {
	found := false
	syntax.Walk(n, func(part syntax.Node) bool {
		switch part := part.(type) {
		case *syntax.CmdSubst:
			return false // looked at by itself
		case *syntax.SglQuoted:
			found = found || substitutes(part.Value)
		case *syntax.Lit:
			text, _ := unescape(part.Value, func(byte) bool { return true })
			found = found || substitutes(text)
		}
		return !found
	})
	if found {
		r.hide("a command that is kept as text, which bash may run when it reads the variable")
	}
}

// substitutes reports whether a text has a command substitution in it.
func substitutes(s string) bool { return strings.Contains(s, "$(") || strings.ContainsRune(s, '`') }
