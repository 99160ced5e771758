package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// run visits one simple command.
func (r *reader) run(words []word) {
	for len(words) > 0 && !words[0].known {
		if !r.step(0) {
			return
		}
		r.markOpaque("the program is only known when it runs: " + words[0].show())
		if !words[0].splits {
			return
		}
		words = words[1:] // it may be no word at all
	}
	if len(words) == 0 || !r.step(len(words)) {
		return
	}
	program, args := words[0].text, words[1:]
	r.line.commands = append(r.line.commands, command{program, args})
	if strings.Contains(program, "/") && !isSystemPath(program) || strings.HasPrefix(program, "~") {
		r.markOpaque("runs the file " + excerpt(program))
	}
	r.arguments(base(program), args)
}

// base is the name of a program that may be given by its path.
func base(program string) string {
	if program == "" {
		return ""
	}
	return path.Base(program)
}

// isSystemPath reports whether a path is in a directory of installed programs.
func isSystemPath(program string) bool {
	if path.Clean(program) != program {
		return false
	}
	switch path.Dir(program) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/local/go/bin", "/lib", "/lib64":
		return true
	}
	return false
}

// arguments visits what a program does with its arguments.
func (r *reader) arguments(name string, args []word) {
	program := unversioned(name)
	w, isWrapper := wrappers[program]
	switch {
	case isWrapper:
		r.wrapper(program, w, args)
	case shells[program]:
		r.shell(program, args)
	case program == "xargs":
		r.xargs(args)
	case program == "find":
		r.find(args)
	case program == "python" || program == "pythonw":
		r.python(name, args)
	case isLauncher(program):
		if !asksVersion(args) {
			r.skipWords(append([]word{literal(name)}, args...), name+" runs code or programs that are not followed")
		}
	case !r.builtin(name, args):
		r.launchOptions(name, args)
	}
}

// asksVersion reports whether a program is only asked about itself.
func asksVersion(args []word) bool {
	return len(args) == 1 && args[0].known && listed(" --version -V --help -h -version -v -help ", args[0].text)
}

// A wrapper is the syntax of a program that runs another. An option that is not
// listed, and every long option, makes the line opaque.
type wrapper struct {
	flags   string // letters of options without a value
	values  string // letters of options with a value
	skip    int    // operands before the program
	assigns bool   // takes NAME=value before the program
}

var wrappers = map[string]wrapper{
	"env":     {flags: "i0v", values: "uC", assigns: true},
	"sudo":    {flags: "AbEHKklnPSv", values: "CDghpRTtuU", assigns: true},
	"nice":    {flags: "0123456789", values: "n"},
	"nohup":   {},
	"time":    {flags: "apqvV", values: "fo"},
	"timeout": {flags: "fpv", values: "ks", skip: 1},
	"exec":    {flags: "cl", values: "a"},
	"builtin": {},
	"command": {flags: "p"},
}

// wrapper visits the program that a wrapper runs.
func (r *reader) wrapper(name string, w wrapper, args []word) {
	if name == "command" && len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
		return // prints the path of a program
	}
	rest, ok := w.program(args)
	if !ok {
		r.assignments(args)
		r.skipWords(args, name+" has options that are not followed")
		return
	}
	for w.assigns && len(rest) > 0 && strings.Contains(rest[0].text, "=") {
		r.assignments(rest[:1])
		rest = rest[1:]
	}
	r.run(rest)
}

// program returns the words from the program on. It fails if an option is not
// listed.
func (w wrapper) program(args []word) (rest []word, ok bool) {
	ended := false
	for !ended && len(args) > 0 && (args[0].isOption() || args[0] == literal("-")) {
		used := w.option(args[0])
		if used == 0 || used > len(args) || used == 2 && args[1].isOption() {
			return nil, false
		}
		ended = args[0] == literal("--")
		args = args[used:]
	}
	mayBeOption := func(a word) bool { return a.splits && w.flags+w.values != "" }
	if slices.ContainsFunc(args[:min(w.skip+1, len(args))], mayBeOption) {
		return nil, false
	}
	return args[min(w.skip, len(args)):], true
}

// option returns how many words an option has, 0 if it is not listed.
func (w wrapper) option(a word) int {
	if a == literal("--") {
		return 1
	}
	for i, c := range a.text[1:] {
		switch {
		case strings.ContainsRune(w.values, c) && (i+2 < len(a.text) || !a.known && !a.splits):
			return 1
		case strings.ContainsRune(w.values, c) && a.known:
			return 2
		case !strings.ContainsRune(w.flags, c):
			return 0
		}
	}
	if !a.known || a.text == "-" {
		return 0
	}
	return 1
}

// find visits the commands of find.
func (r *reader) find(args []word) {
	for i, w := range args {
		if w.splits {
			r.markOpaque("find has arguments that are only known when it runs: " + w.show())
		}
		if w.known && listed(" -exec -execdir -ok -okdir ", w.text) && r.step(len(args)-i) {
			r.run(r.replaced(untilEnd(args[i+1:]), "{}"))
		}
	}
}

// untilEnd returns the words before the end of a command of find.
func untilEnd(args []word) []word {
	for i, w := range args {
		if w.known && (w.text == ";" || w.text == "+" && i > 0 && strings.Contains(args[i-1].text, "{}")) {
			return args[:i]
		}
	}
	return args
}

// replaced returns the words with the placeholder as words that are only known when
// they run. A word that looks like a command line is parsed, too.
func (r *reader) replaced(args []word, placeholder string) []word {
	all := make([]word, len(args))
	for i, w := range args {
		if before, _, ok := strings.Cut(w.text, placeholder); ok && placeholder != "" {
			if strings.ContainsAny(w.text, " ;&|") && r.step(len(w.text)/8) {
				r.script(w.text)
			}
			w = word{text: before, splits: w.splits}
		}
		all[i] = w
	}
	return all
}

// xargs visits the command of xargs, which gets more words than are shown.
func (r *reader) xargs(args []word) {
	rest, ok := wrapper{flags: "0rtxpo", values: "ILnPsdEa"}.program(args)
	if !ok {
		r.skipWords(append(slices.Clip(args), anything), "xargs has options that are not followed")
		return
	}
	placeholder := ""
	for i, w := range args[:len(args)-len(rest)] {
		if w.text == "-I" {
			placeholder = args[min(i+1, len(args)-1)].text
		} else if strings.HasPrefix(w.text, "-I") {
			placeholder = w.text[2:]
		}
	}
	if len(rest) > 0 { // without a command it runs echo
		r.run(append(r.replaced(rest, placeholder), anything))
	}
}

// shells are programs that run such command lines.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "zsh": true, "ksh": true}

// shell visits a shell: sh -c 'line'. Every other use is opaque.
func (r *reader) shell(name string, args []word) {
	if asksVersion(args) {
		return
	}
	line, ok := commandString(args)
	if !ok {
		r.skipWords(args, name+" runs commands that are not shown")
		return
	}
	outer := r.dialect
	defer func() { r.dialect = outer }()
	r.dialect = POSIX
	if name == "bash" {
		r.dialect = Bash
	}
	r.script(line)
}

// commandString returns the value of -c of a shell. A word behind -c that begins with a
// minus or a plus is another option (sh -c +x 'rm y'): the value is a later word.
func commandString(args []word) (string, bool) {
	hasCommand := false
	for shellOption.MatchString(first(args)) {
		option := args[0].text
		args = args[1:]
		hasCommand = hasCommand || strings.Contains(option, "c")
		if strings.HasSuffix(option, "o") {
			if !listed(" pipefail errexit nounset xtrace ", first(args)) {
				return "", false
			}
			args = args[1:]
		}
	}
	if len(args) > 1 && args[0] == literal("--") {
		args = args[1:]
	}
	value := first(args)
	return value, hasCommand && len(args) > 0 && args[0].known && !strings.HasPrefix(value, "-") && !strings.HasPrefix(value, "+")
}

// shellOption matches options of shells that load nothing. The value of o is the
// next word.
var shellOption = regexp.MustCompile(`^-[aceflnpuvx]*o?$`)

// first returns the first word if it is known.
func first(words []word) string {
	if len(words) == 0 || !words[0].known {
		return ""
	}
	return words[0].text
}
