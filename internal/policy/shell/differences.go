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
func (r *reader) visitDifferences(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.LetClause: // operators end it for bash, and belong to it for the parser
		if text := r.source(n); text == "" || strings.ContainsAny(text, "|&<>;#") {
			r.skip(text, "let with operators that end a command")
		}
	case *syntax.TimeClause:
		r.timed(n)
	case *syntax.CoprocClause: // the parser takes the first word for a name
		r.skip(r.source(n), "a coprocess, which shells parse differently")
	case *syntax.Assign:
		if n.Name != nil && !n.Naked && !syntax.ValidName(n.Name.Value) { // a program for bash
			r.markOpaque("a word that shells parse differently: " + excerpt(n.Name.Value))
		}
	case *syntax.Redirect:
		r.redirect(n)
	case *syntax.CmdSubst:
		r.hereDocuments(n, n.Stmts)
	case *syntax.ProcSubst:
		r.hereDocuments(n, n.Stmts)
	case *syntax.ParamExp:
		if text := r.source(n); strings.Contains(text, "<(") || strings.Contains(text, ">(") { // text for the parser
			r.markOpaque("a process substitution in an expansion")
		}
	case *syntax.Comment:
		r.comment(n)
	}
}

// source returns the text of a node.
func (r *reader) source(n syntax.Node) string { return r.between(n.Pos(), n.End()) }

// between returns the text between two positions.
func (r *reader) between(from, to syntax.Pos) string {
	if from.Offset() > to.Offset() || int(to.Offset()) > len(r.text) {
		return ""
	}
	return r.text[from.Offset():to.Offset()]
}

// timed visits the reserved word time. For bash, dashes after it end its options;
// the parser takes them for a program. After an operator, time is a program.
func (r *reader) timed(n *syntax.TimeClause) {
	r.line.commands = append(r.line.commands, command{"time", []word{anything}})
	syntax.Walk(n, func(part syntax.Node) bool {
		if call, ok := part.(*syntax.CallExpr); ok {
			if words := readWords(call.Args); first(words) == "--" {
				r.skipWords(words[1:], "options of time, which shells parse differently")
			}
		}
		return true
	})
}

// redirect visits a redirection.
func (r *reader) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.DplIn, syntax.DplOut: // "<&-word": for bash, - is the descriptor and word a word of the command
		if w := readWord(n.Word); strings.HasPrefix(w.text, "-") && (w.text != "-" || !w.known) {
			r.skip(w.text[1:], "a redirection that shells parse differently")
		}
	case syntax.Hdoc, syntax.DashHdoc:
		r.hereDocument(n)
	default:
	}
}

// hereDocument visits a here-document: its delimiter must be plain, and no line may
// become the delimiter when bash joins lines that end in a backslash.
func (r *reader) hereDocument(n *syntax.Redirect) {
	if !plainDelimiter.MatchString(r.source(n.Word)) {
		r.markOpaque("a here-document with a delimiter that shells parse differently")
	}
	if n.Hdoc == nil {
		return
	}
	text, delimiter := r.source(n.Hdoc), readWord(n.Word).text
	if strings.HasSuffix(r.restOfLine(n), "\\") || countLines(strings.ReplaceAll(text, "\\\n", ""), delimiter) > countLines(text, delimiter) {
		r.markOpaque("a here-document that shells end differently")
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
func (r *reader) restOfLine(n *syntax.Redirect) string {
	rest, _, _ := strings.Cut(r.text[min(len(r.text), int(n.Word.End().Offset())):], "\n")
	return rest
}

// hereDocuments finds here-documents in a substitution. Bash writes the commands
// out and parses them again, and loses separators. Only a single command with a
// plain here-document is parsed alike, as in $(cat <<'E' …).
func (r *reader) hereDocuments(substitution syntax.Node, stmts []*syntax.Stmt) {
	backquotes := strings.HasPrefix(r.source(substitution), "`")
	if backquotes && strings.Contains(r.source(substitution), "\\\\\n") {
		r.markOpaque("a line continued in backquotes, which shells parse differently")
	}
	simple := !backquotes && len(stmts) == 1 && isCall(stmts[0])
	syntax.Walk(substitution, func(part syntax.Node) bool {
		n, ok := part.(*syntax.Redirect)
		if !ok || n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc {
			return true
		}
		if !simple || strings.ContainsAny(r.restOfLine(n), ";&|\\") || r.endsEarly(n) {
			r.markOpaque("a here-document in a substitution, which shells parse differently")
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

// comment visits a comment. For bash it ends with its line; the parser continues it
// after a backslash. After a word without a blank, it is a part of the word for
// bash.
func (r *reader) comment(n *syntax.Comment) {
	before := r.text[:min(len(r.text), int(n.Hash.Offset()))]
	if strings.HasSuffix(n.Text, "\\\n") || strings.HasSuffix(before, "\\\n") ||
		before != "" && strings.TrimRight(before, " \t\n;&|()`") == before {
		r.skip(r.text, "a comment that shells parse differently")
	}
}

// splitOperator matches operators that a backslash and a newline divide: bash joins
// them.
var splitOperator = regexp.MustCompile(`&(\\\n)+[&>]|\|(\\\n)+[|&]|;(\\\n)+[;&]|>(\\\n)+[&>|(]|<(\\\n)+[&<>(]|\((\\\n)+\(|\$(\\\n)+`)

// visitText finds differences in the text of a script.
func (r *reader) visitText(text string) {
	if splitOperator.MatchString(text) {
		r.skip(strings.ReplaceAll(text, "\\\n", ""), "an operator on two lines")
	}
}
