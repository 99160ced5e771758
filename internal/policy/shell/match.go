package shell

import (
	"slices"
	"strings"
)

// Runs reports whether the line runs a program with these words.
//
// The program is named as on the line, or by the last part of its path. Words
// must follow in the given order, with any others between them; options, which
// begin with a dash, may be anywhere, and one letter is found among others: -r
// in -rf. A word that is only known when the line runs may be any of them, where
// one could stand.
func (l *Line) Runs(program string, words ...string) bool {
	if program == "" {
		return false
	}
	for _, c := range l.commands {
		if c.named(program) && c.has(words) {
			return true
		}
	}
	for _, text := range l.unread {
		if mentions(text, append([]string{program}, words...)) {
			return true
		}
	}
	return false
}

func (c command) named(program string) bool {
	return c.program == program || base(c.program) == program || strings.Contains(program, "/") && base(program) == base(c.program)
}

// has reports whether the wanted words may be among those of the command.
func (c command) has(wanted []string) bool {
	var order []string
	for _, want := range wanted {
		if !strings.HasPrefix(want, "-") {
			order = append(order, want)
			continue
		}
		if !slices.ContainsFunc(c.words, func(w word) bool { return w.offers(want) }) {
			return false
		}
	}
	return c.follow(order)
}

// follow reports whether words may follow in an order.
func (c command) follow(order []string) bool {
	settled := false // a word that is no option, nor the value of one, has its place
	after := false   // the word before was an option
	valued := valued[base(c.program)]
	for _, w := range c.words {
		if len(order) == 0 {
			return true
		}
		switch {
		case w.known && w.text == order[0]:
			order, settled, after = order[1:], false, false
		case !w.known && after && valued != "" && !w.spreads:
			after = false // the value of that option
		case !settled && w.anyWord():
			return true
		case w.flag():
			after = valued == "" && !strings.Contains(w.text, "=") || listed(valued, w.text)
		case !w.known: // a later word, of something else
		default:
			settled = settled || !after
			after = false
		}
	}
	return len(order) == 0
}

// anyWord reports whether a word may be any other that is no option.
func (w word) anyWord() bool { return !w.known && (!w.flag() || w.spreads) }

// valued are the options before the first word of programs that take the next
// word as their value. Of other programs every option may.
var valued = map[string]string{
	"git":     " -C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source ",
	"docker":  " -c --context -H --host -l --log-level --config --tlscacert --tlscert --tlskey ",
	"kubectl": " -n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group --as-uid --request-timeout -v --v --cache-dir --certificate-authority --client-key --client-certificate --password --username --profile --profile-output --tls-server-name ",
	"npm":     " --prefix -C -w --workspace --userconfig --registry --cache --loglevel ",
	"gh":      " -R --repo --hostname ",
	"go":      " -C ",
	"cargo":   " --color --config -C -Z ",
	"apt-get": " -o -c -t --option --config-file --target-release ",
	"apt":     " -o -c -t --option --config-file --target-release ",
}

// offers reports whether a word may be an option.
func (w word) offers(option string) bool {
	if !w.known && (w.text == "" || strings.HasPrefix(option, w.text)) {
		return true
	}
	name, _, _ := strings.Cut(w.text, "=")
	if name == option || w.text == option {
		return true
	}
	letter, one := strings.CutPrefix(option, "-")
	return one && len(letter) == 1 && w.flag() && w.text[1] != '-' && strings.Contains(name[1:], letter)
}

// mentions reports whether all words stand in a text that could not be parsed,
// whatever their order.
func mentions(text string, wanted []string) bool {
	for _, want := range wanted {
		found := false
		for piece := range strings.FieldsFuncSeq(unquoter.Replace(text), separates) {
			if piece == want || base(piece) == base(want) || strings.HasPrefix(want, "-") && strings.HasPrefix(piece, want) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// unquoter takes off what quotes a character or a word.
var unquoter = strings.NewReplacer(`"`, "", `'`, "", `\`, "", "\x00", "", "\n", " ", "\t", " ")

// separates reports whether a character ends a word.
func separates(c rune) bool { return strings.ContainsRune(" \t\r\n;&|()<>`${}=,", c) }
