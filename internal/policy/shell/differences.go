package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser and bash read some constructs differently. Each function here finds
// one of them and makes the line opaque; what bash would run is still followed as
// far as it can be told. TestPolicySeesWhatBashRuns searches for more of them.

// differs looks at one node for constructs that bash reads differently.
func (r *reader) differs(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.LetClause:
		r.let(n)
	case *syntax.TimeClause:
		r.timed(n)
	case *syntax.CoprocClause:
		r.coprocess(n)
	case *syntax.Assign:
		r.misnamed(n)
	case *syntax.Redirect:
		r.closing(n)
		r.joinedDelimiter(n)
	case *syntax.CmdSubst:
		r.documents(n)
	case *syntax.ProcSubst:
		r.documents(n)
	case *syntax.ParamExp:
		r.processInExpansion(n)
	}
}

// joinedDelimiter looks for the end of a here-document that is spread over lines
// by backslashes: bash joins them first, and takes what follows for commands.
func (r *reader) joinedDelimiter(n *syntax.Redirect) {
	if n.Hdoc == nil || int(n.Hdoc.End().Offset()) > len(r.text) {
		return
	}
	if line, _, _ := strings.Cut(r.text[n.Word.End().Offset():], "\n"); strings.HasSuffix(line, "\\") {
		r.hide("a here-document behind a line that ends in a backslash")
	}
	if slices.ContainsFunc(n.Word.Parts, func(p syntax.WordPart) bool { _, bare := p.(*syntax.Lit); return !bare }) {
		return // quoted: no line is joined
	}
	delimiter, joined := readWord(n.Word).text, ""
	for line := range strings.SplitSeq(r.text[n.Hdoc.Pos().Offset():n.Hdoc.End().Offset()], "\n") {
		if before, ok := strings.CutSuffix(line, "\\"); ok {
			joined += before
			continue
		}
		if joined != "" && strings.TrimLeft(joined+line, "\t") == delimiter {
			r.hide("a here-document that shells end differently")
		}
		joined = ""
	}
}

// let looks at operators that separate commands for bash, and belong to the
// expression for the parser.
func (r *reader) let(n *syntax.LetClause) {
	if int(n.End().Offset()) > len(r.text) {
		return
	}
	text := r.text[n.Pos().Offset():n.End().Offset()]
	if strings.ContainsAny(quotes.ReplaceAllString(text, ""), "|&<>;#") {
		r.give(text, "let with operators that end a command")
	}
}

// quotes finds quoted text.
var quotes = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// oneCommand reports whether a substitution is of a single simple command.
func oneCommand(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 {
		return false
	}
	_, simple := stmts[0].Cmd.(*syntax.CallExpr)
	return simple
}

// rewritten reports whether bash may read other commands in a substitution than
// are written there.
func rewritten(substitution syntax.Node) bool {
	switch n := substitution.(type) {
	case *syntax.CmdSubst:
		return n.Backquotes || !oneCommand(n.Stmts)
	case *syntax.ProcSubst:
		return !oneCommand(n.Stmts)
	}
	return true
}

// documents looks for here-documents in a substitution. In backquotes shells take
// off backslashes at different times. Elsewhere bash writes the commands out and
// reads them again, and loses separators: only a single command is sure.
func (r *reader) documents(substitution syntax.Node) {
	unsure := rewritten(substitution)
	syntax.Walk(substitution, func(part syntax.Node) bool {
		n, ok := part.(*syntax.Redirect)
		if !ok || n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc {
			return true
		}
		after := r.text[min(len(r.text), int(n.Word.End().Offset())):]
		rest, _, _ := strings.Cut(strings.ReplaceAll(after, "\\\n", ""), "\n")
		if unsure || strings.ContainsAny(rest, ";&|") || r.endsEarly(n) {
			r.hide("a here-document in a substitution, which shells read differently")
		}
		return true
	})
	if text := r.source(substitution); strings.HasPrefix(text, "`") && strings.Contains(text, "\\\\\n") {
		r.hide("a line that backslashes continue in backquotes, which shells read differently")
	}
}

// endsEarly reports whether a line of a here-document begins with its delimiter:
// in a substitution bash ends it there where a bracket follows.
func (r *reader) endsEarly(n *syntax.Redirect) bool {
	if n.Hdoc == nil {
		return false
	}
	delimiter := readWord(n.Word).text
	for line := range strings.SplitSeq(r.source(n.Hdoc), "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "\t"), delimiter); ok && rest != "" {
			return true
		}
	}
	return false
}

// source is the text of a node.
func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(r.text) {
		return ""
	}
	return r.text[from:to]
}

// splitOperators finds operators that a backslash and a newline take apart: for
// bash they are one, for the parser two. The text is read again as bash does.
func (r *reader) splitOperators(text string) {
	if splitOperator.MatchString(text) {
		r.hide("an operator that is spread over two lines")
		r.script(strings.ReplaceAll(text, "\\\n", ""))
	}
}

var splitOperator = regexp.MustCompile(`&(\\\n)+[&>]|\|(\\\n)+[|&]|;(\\\n)+[;&]|>(\\\n)+[&>|(]|<(\\\n)+[&<>(]|\((\\\n)+\(|\$(\\\n)+`)

// timed looks at the word time. It is reserved at the beginning of a pipeline,
// where bash takes dashes behind it for the end of its options and the parser for
// a program. Elsewhere it is a program, which the parser takes for the word.
func (r *reader) timed(n *syntax.TimeClause) {
	r.line.commands = append(r.line.commands, command{"time", []word{anything}})
	call := firstCall(n.Stmt)
	if call == nil || len(call.Args) < 2 {
		return
	}
	if args := words(call.Args); args[0] == literal("--") {
		r.hide("options of time that shells read differently")
		r.runAssigned(args[1:])
	}
}

// firstCall is the simple command that a statement begins with, if it does.
func firstCall(s *syntax.Stmt) *syntax.CallExpr {
	for s != nil {
		switch cmd := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			s = cmd.X
		case *syntax.CallExpr:
			return cmd
		default:
			return nil
		}
	}
	return nil
}

// coprocess looks at coprocesses of simple commands: the parser takes their first
// word for a name, bash does so before a compound command only, and does not take
// it off in every case.
func (r *reader) coprocess(n *syntax.CoprocClause) {
	switch n.Stmt.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
		return
	}
	r.hide("a coprocess that shells read differently")
	var args []word
	if n.Name != nil {
		args = append(args, readWord(n.Name))
	}
	if call := firstCall(n.Stmt); call != nil {
		args = append(args, words(call.Args)...)
	}
	r.runAssigned(args)
}

// misnamed looks at assignments to what is no variable: a program for bash.
func (r *reader) misnamed(n *syntax.Assign) {
	if n.Name != nil && !n.Naked && !syntax.ValidName(n.Name.Value) {
		r.hide("a word that shells read differently: " + shorten(n.Name.Value))
		r.run([]word{{text: n.Name.Value + "="}})
	}
}

// runAssigned looks at a command behind assignments that the parser took for words.
func (r *reader) runAssigned(args []word) {
	for len(args) > 0 && strings.Contains(args[0].text, "=") {
		args = args[1:]
	}
	r.run(args)
}

// closing looks at "<&-word": bash closes the descriptor and reads a word of the
// command; the parser takes both for the name of a descriptor.
func (r *reader) closing(n *syntax.Redirect) {
	if n.Op != syntax.DplIn && n.Op != syntax.DplOut {
		return
	}
	w := readWord(n.Word)
	if rest, ok := strings.CutPrefix(w.text, "-"); ok && (rest != "" || !w.known) {
		r.hide("a redirection that shells read differently")
		r.run([]word{{text: rest, known: w.known}})
	}
}

// processInExpansion looks at ${a:-<(command)}: bash substitutes the process, the
// parser reads text.
func (r *reader) processInExpansion(n *syntax.ParamExp) {
	syntax.Walk(n, func(part syntax.Node) bool {
		if lit, ok := part.(*syntax.Lit); ok && (strings.Contains(lit.Value, "<(") || strings.Contains(lit.Value, ">(")) {
			r.hide("a process substitution in an expansion")
		}
		return true
	})
}

// switches looks at set and shopt, whose options change how bash reads what
// follows: aliases are expanded, assignments are found behind a program.
func (r *reader) switches(name string, args []word) {
	for _, w := range args {
		if w.known && (w.text == "--" || w.text == "-") && name == "set" {
			return
		}
		letters := ""
		if name == "set" && w.flag() {
			letters = w.text[1:]
		}
		switch {
		case !w.known:
			r.hide("options of the shell that are only known when it runs: " + name + " " + w.show())
		case listed(reading, w.text), strings.HasPrefix(w.text, "compat"), strings.ContainsRune(letters, 'k'):
			r.hide("a setting changes how the shell reads commands: " + name + " " + w.show())
		}
	}
}

// reading are options of bash that change how it reads commands.
const reading = " expand_aliases posix keyword histexpand history interactive_comments "
