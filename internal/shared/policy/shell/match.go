package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Runs reports whether the line runs a program with these words.
//
// The program is named as on the line, or by the last part of its path. Words must follow in the given order, with any
// others between them. Options, which begin with a dash, may be anywhere, and a single letter matches in a bundle: -r
// in -rf. A word that is known only at run time matches any word that it can be.
func (l *Line) Runs(program string, words ...string) bool {
	if program == "" {
		return false
	}
	for _, c := range l.commands {
		if c.isNamed(program) && c.has(words) {
			return true
		}
	}
	return slices.ContainsFunc(l.skipped, func(part skipped) bool { return part.mentions(program, words) })
}

func (c command) isNamed(program string) bool {
	return c.program == program || base(c.program) == base(program)
}

// has reports whether the wanted words may be among the words of the command.
func (c command) has(wanted []string) bool {
	var order []string
	for _, want := range wanted {
		if !strings.HasPrefix(want, "-") {
			order = append(order, want)
			continue
		}
		if !slices.ContainsFunc(c.words, func(w word) bool { return w.mayBeOption(want) }) {
			return false
		}
	}
	return c.hasInOrder(order)
}

// hasInOrder reports whether the words may follow in this order.
func (c command) hasInOrder(order []string) bool {
	seenOperand := false // a word that is neither an option nor the value of one
	afterOption := false
	withValue := optionsWithValue[base(c.program)]
	for _, w := range c.words {
		if len(order) == 0 {
			return true
		}
		switch {
		case w.known && w.text == order[0]:
			order, seenOperand, afterOption = order[1:], false, false
		case !w.known && afterOption && withValue != "" && !w.splits:
			afterOption = false // the value of that option
		case !seenOperand && !w.known && (!w.isOption() || w.splits):
			return true // may be any word
		case w.isOption():
			afterOption = withValue == "" && !strings.Contains(w.text, "=") || listed(withValue, w.text)
		case !w.known: // a later operand
		default:
			seenOperand = seenOperand || !afterOption
			afterOption = false
		}
	}
	return len(order) == 0
}

// optionsWithValue are the options before the subcommand whose value is the next
// word. Of other programs, every option may have a value.
var optionsWithValue = map[string]string{
	"git":     " -C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source ",
	"kubectl": " -n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group --as-uid --request-timeout -v --v --cache-dir --certificate-authority --client-key --client-certificate --password --username --profile --profile-output --tls-server-name ",
}

// mayBeOption reports whether a word may be an option. If the word may split into several, any of them may be.
func (w word) mayBeOption(option string) bool {
	if !w.known && (w.text == "" || w.splits || strings.HasPrefix(option, w.text)) {
		return true
	}
	name, _, _ := strings.Cut(w.text, "=")
	if name == option || w.text == option {
		return true
	}
	letter, isShort := strings.CutPrefix(option, "-")
	return isShort && len(letter) == 1 && w.isOption() && w.text[1] != '-' && strings.Contains(name[1:], letter)
}

// mentions reports whether a skipped part names a program and these words, in any
// order.
func (s skipped) mentions(program string, words []string) bool {
	pieces := strings.FieldsFunc(unquoter.Replace(s.text), isSeparator)
	open := s.open || strings.ContainsAny(s.text, "$`*?[{") || slices.Contains(pieces, "xargs") || slices.Contains(pieces, "parallel")
	for i, want := range append([]string{program}, words...) {
		if i > 0 && open {
			return true
		}
		if !slices.ContainsFunc(pieces, func(piece string) bool { return mayName(piece, want) }) {
			return false
		}
	}
	return true
}

// mayName reports whether a piece of text may be a program or a word: also as the value of an option without a space,
// as in -Irm, and after a colon, as in EXEC:rm.
func mayName(piece, want string) bool {
	switch {
	case piece == want, base(piece) == base(want), base(piece[strings.LastIndex(piece, ":")+1:]) == base(want):
		return true
	case !strings.HasPrefix(piece, "-"):
		return false
	case strings.HasPrefix(want, "-"):
		return strings.HasPrefix(piece, want) || literal(piece).mayBeOption(want)
	}
	return strings.HasSuffix(piece, base(want))
}

// unquoter removes quotes.
var unquoter = strings.NewReplacer(`"`, "", `'`, "", `\`, "", "\x00", "", "\n", " ", "\t", " ")

// isSeparator reports whether a character ends a word.
func isSeparator(c rune) bool { return strings.ContainsRune(" \t\r\n;&|()<>`${}=,", c) }

// An expression is a regular expression that is compiled when it is first used. A Run uses few of them; to compile
// all of them takes a millisecond of its start.
type expression func() *regexp.Regexp

func lazy(text string) expression {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// MatchString reports whether a text has a match.
func (e expression) MatchString(text string) bool { return e().MatchString(text) }
