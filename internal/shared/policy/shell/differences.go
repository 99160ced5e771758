package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser and bash parse some constructs differently. Each function here finds
// one of them and makes the line opaque. TestPolicySeesWhatBashRuns searches for
// more of them.

// visitDifferences visits one node.
func (t *treeWalker) visitDifferences(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.LetClause: // operators end it for bash, and belong to it for the parser
		if text := t.source(n); text == "" || strings.ContainsAny(text, "|&<>;#") {
			t.skip(text, "let with operators that end a command")
		}
	case *syntax.TimeClause:
		t.timed(n)
	case *syntax.CoprocClause: // the parser takes the first word for a name
		t.skip(t.source(n), "a coprocess, which shells parse differently")
	case *syntax.Assign:
		if n.Name != nil && !n.Naked && !syntax.ValidName(n.Name.Value) { // a program for bash
			t.markOpaque("a word that shells parse differently: " + excerpt(n.Name.Value))
		}
	case *syntax.Redirect:
		t.redirect(n)
	case *syntax.CmdSubst:
		t.hereDocuments(n, n.Stmts)
	case *syntax.ProcSubst:
		t.hereDocuments(n, n.Stmts)
	case *syntax.ParamExp:
		if text := t.source(n); strings.Contains(text, "<(") || strings.Contains(text, ">(") { // text for the parser
			t.markOpaque("a process substitution in an expansion")
		}
	case *syntax.Comment:
		t.comment(n)
	}
}

// source returns the text of a node.
func (t *treeWalker) source(n syntax.Node) string { return t.between(n.Pos(), n.End()) }

// between returns the text between two positions.
func (t *treeWalker) between(from, to syntax.Pos) string {
	if from.Offset() > to.Offset() || int(to.Offset()) > len(t.text) {
		return ""
	}
	return t.text[from.Offset():to.Offset()]
}

// timed visits the reserved word time. For bash, dashes after it end its options;
// the parser takes them for a program. After an operator, time is a program.
func (t *treeWalker) timed(n *syntax.TimeClause) {
	t.line.commands = append(t.line.commands, command{"time", []word{anything}})
	syntax.Walk(n, func(part syntax.Node) bool {
		if call, ok := part.(*syntax.CallExpr); ok {
			if words := readWords(call.Args); first(words) == "--" {
				t.skipWords(words[1:], "options of time, which shells parse differently")
			}
		}
		return true
	})
}

// redirect visits a redirection.
func (t *treeWalker) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.DplIn, syntax.DplOut: // "<&-word": for bash, - is the descriptor and word a word of the command
		if w := readWord(n.Word); strings.HasPrefix(w.text, "-") && (w.text != "-" || !w.known) {
			t.skip(w.text[1:], "a redirection that shells parse differently")
		}
	case syntax.Hdoc, syntax.DashHdoc:
		t.hereDocument(n)
	default:
	}
}

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
	if strings.HasSuffix(t.restOfLine(n), "\\") || countLines(strings.ReplaceAll(text, "\\\n", ""), delimiter) > countLines(text, delimiter) {
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

// plainDelimiter matches delimiters that all shells parse alike.
var plainDelimiter = regexp.MustCompile(`^(\\?[\w.!+%@/-]+|'[\w.!+%@/ -]+'|"[\w.!+%@/ -]+")$`)

// restOfLine returns the text between the delimiter of a here-document and the end
// of its line.
func (t *treeWalker) restOfLine(n *syntax.Redirect) string {
	rest, _, _ := strings.Cut(t.text[min(len(t.text), int(n.Word.End().Offset())):], "\n")
	return rest
}

// hereDocuments finds here-documents in a substitution. Bash writes the commands
// out and parses them again, and loses separators. Only a single command with a
// plain here-document is parsed alike, as in $(cat <<'E' …).
func (t *treeWalker) hereDocuments(substitution syntax.Node, stmts []*syntax.Stmt) {
	backquotes := strings.HasPrefix(t.source(substitution), "`")
	if backquotes && strings.Contains(t.source(substitution), "\\\\\n") {
		t.markOpaque("a line continued in backquotes, which shells parse differently")
	}
	simple := !backquotes && len(stmts) == 1 && isCall(stmts[0])
	syntax.Walk(substitution, func(part syntax.Node) bool {
		n, ok := part.(*syntax.Redirect)
		if !ok || n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc {
			return true
		}
		if !simple || strings.ContainsAny(t.restOfLine(n), ";&|\\") || t.endsEarly(n) {
			t.markOpaque("a here-document in a substitution, which shells parse differently")
		}
		return true
	})
}

// isCall reports whether a statement is a simple command.
func isCall(s *syntax.Stmt) bool {
	_, ok := s.Cmd.(*syntax.CallExpr)
	return ok
}

// endsEarly reports whether a line of a here-document begins with its delimiter: in
// a substitution, bash ends it there if a bracket follows.
func (t *treeWalker) endsEarly(n *syntax.Redirect) bool {
	if n.Hdoc == nil {
		return false
	}
	delimiter := readWord(n.Word).text
	for line := range strings.SplitSeq(t.source(n.Hdoc), "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "\t"), delimiter); ok && rest != "" {
			return true
		}
	}
	return false
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
var splitOperator = regexp.MustCompile(`&(\\\n)+[&>]|\|(\\\n)+[|&]|;(\\\n)+[;&]|>(\\\n)+[&>|(]|<(\\\n)+[&<>(]|\((\\\n)+\(|\$(\\\n)+`)

// visitText finds differences in the text of a script.
func (t *treeWalker) visitText() {
	if splitOperator.MatchString(t.text) {
		t.skip(strings.ReplaceAll(t.text, "\\\n", ""), "an operator on two lines")
	}
}
