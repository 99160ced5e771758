package shell

import (
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
		return true
	})
	if splitOperator.MatchString(text) {
		r.skip(strings.ReplaceAll(text, "\\\n", ""), "an operator on two lines")
	}
	if tooDeep {
		r.skip(text, "the line is nested too deep")
	}
}

// visit visits one node of a syntax tree, without the nodes below it. Constructs that bash and the
// parser read differently make the line opaque; TestPolicySeesWhatBashRuns searches for more of them.
func (t *treeWalker) visit(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		t.run(readWords(n.Args))
	case *syntax.DeclClause:
		t.declaration(n)
	case *syntax.Assign:
		t.assignment(n)
	case *syntax.ParamExp:
		t.expansion(n)
	case *syntax.WordIter:
		t.changedVariable(n.Name.Value)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.ArithmExp:
		t.quotedCommands(n)
	case *syntax.FuncDecl:
		t.markOpaque("a function may replace a program")
	case *syntax.CoprocClause, *syntax.LetClause:
		t.skip(t.source(n), "a coprocess or let, which shells parse differently")
	case *syntax.TimeClause:
		t.timed(n)
	case *syntax.Redirect:
		t.redirect(n)
	case *syntax.CmdSubst:
		t.substitution(t.source(n), len(n.Stmts))
	case *syntax.ProcSubst:
		t.substitution(t.source(n), len(n.Stmts))
	case *syntax.Comment:
		t.comment(n)
	}
}

// source returns the text of a node.
func (t *treeWalker) source(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || int(to) > len(t.text) {
		return ""
	}
	return t.text[from:to]
}

// optionsEnd matches the word that ends options.
var optionsEnd = lazy(`--(\s|$)`)

// timed visits the reserved word time. bash reads -- after time as the end of its options, and the parser reads it as a
// program, so the line is then opaque.
func (t *treeWalker) timed(n *syntax.TimeClause) {
	t.line.commands = append(t.line.commands, command{"time", []word{anything}})
	if optionsEnd.MatchString(strings.ReplaceAll(t.source(n), "\\\n", "")) {
		t.skip(t.source(n), "options of time, which shells parse differently")
	}
}

// redirect visits a redirection. In <&-word, bash takes - for the descriptor and word for a word of
// the command.
func (t *treeWalker) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.DplIn, syntax.DplOut:
		if w := readWord(n.Word); strings.HasPrefix(w.text, "-") && (w.text != "-" || !w.known) {
			t.skip(w.text[1:], "a redirection that shells parse differently")
		}
	case syntax.Hdoc, syntax.DashHdoc:
		t.hereDocument(n)
	default:
	}
}

// plainDelimiter matches delimiters that all shells parse alike.
var plainDelimiter = lazy(`^(\\?[\w.!+%@/-]+|'[\w.!+%@/ -]+'|"[\w.!+%@/ -]+")$`)

// hereDocument visits a here-document: its delimiter must be plain, and no line may
// become the delimiter when bash joins lines that end in a backslash.
func (t *treeWalker) hereDocument(n *syntax.Redirect) {
	if !plainDelimiter.MatchString(t.source(n.Word)) {
		t.markOpaque("a here-document with a delimiter that shells parse differently")
	}
	if n.Hdoc == nil {
		return
	}
	text, delimiter := t.source(n.Hdoc), readWord(n.Word).text
	rest, _, _ := strings.Cut(t.text[min(len(t.text), int(n.Word.End().Offset())):], "\n")
	if strings.HasSuffix(rest, "\\") || countLines(strings.ReplaceAll(text, "\\\n", ""), delimiter) > countLines(text, delimiter) {
		t.markOpaque("a here-document that shells end differently")
	}
}

// countLines counts the lines that end a here-document.
func countLines(text, delimiter string) int {
	count := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimLeft(line, "\t") == delimiter {
			count++
		}
	}
	return count
}

// documentInside matches a substitution that begins with the first line of a here-document.
var documentInside = lazy(`^\$\([^;&|<>()\\\n]*<<'?(\w+)'?\n`)

// substitution visits a substitution. Bash writes the commands in it out and parses them again. Of
// substitutions with a here-document only a single command is parsed alike, as in $(cat <<'E' …),
// whose document has no other line that begins like its last one.
func (t *treeWalker) substitution(text string, statements int) {
	if strings.HasPrefix(text, "`") && strings.Contains(text, "\\\n") {
		t.markOpaque("a line continued in backquotes, which shells parse differently")
	}
	if !strings.Contains(strings.ReplaceAll(text, "<<<", ""), "<<") {
		return
	}
	match := documentInside().FindStringSubmatch(text)
	if match == nil || statements != 1 || strings.Count(text, "\n"+match[1]) != 1 {
		t.markOpaque("a here-document in a substitution, which shells parse differently")
	}
}

// comment visits a comment. For bash it ends with its line; the parser continues it
// after a backslash. After a word without a blank, it is a part of the word for
// bash.
func (t *treeWalker) comment(n *syntax.Comment) {
	before := t.text[:min(len(t.text), int(n.Hash.Offset()))]
	if strings.HasSuffix(n.Text, "\\\n") || strings.HasSuffix(before, "\\\n") ||
		before != "" && strings.TrimRight(before, " \t\n;&|()`") == before {
		t.skip(t.text, "a comment that shells parse differently")
	}
}

// splitOperator matches operators that a backslash and a newline divide: bash joins
// them.
var splitOperator = lazy(`&(\\\n)+[&>]|\|(\\\n)+[|&]|;(\\\n)+[;&]|>(\\\n)+[&>|(]|<(\\\n)+[&<>(]|\((\\\n)+\(|\$(\\\n)+`)

// assignment visits a variable that is set, before a command or by itself.
func (t *treeWalker) assignment(n *syntax.Assign) {
	if n.Name != nil && !n.Naked && !syntax.ValidName(n.Name.Value) { // a program for bash
		t.markOpaque("a word that shells parse differently: " + excerpt(n.Name.Value))
	}
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
	if text := t.source(n); strings.Contains(text, "<(") || strings.Contains(text, ">(") { // text for the parser
		t.markOpaque("a process substitution in an expansion")
	}
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
