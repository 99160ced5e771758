package shell

import "strings"

// shells are programs that run command lines like these.
var shells = map[string]bool{
	"sh": true, "bash": true, "rbash": true, "dash": true, "ash": true, "hush": true, "zsh": true, "ksh": true, "mksh": true, "ksh93": true, "rksh": true,
	"yash": true, "posh": true, "lksh": true, "bash5": true,
}

// An invocation is how a shell is started.
type invocation struct {
	command bool // -c
	rest    []word
	doubt   string // what cannot be followed, or is not shown
}

// shell looks at a shell that is started.
func (r *reader) shell(name string, args []word) {
	if len(args) == 1 && informs(args[0]) || checks(args) {
		return
	}
	in := invoke(args)
	switch {
	case in.doubt != "":
		r.hide(name + " is started with " + in.doubt)
		r.tryAll(args)
	case len(in.rest) == 0:
		r.hide(name + " reads its commands from elsewhere")
	case !in.command:
		r.hide(name + " runs the script " + in.rest[0].show())
	case !in.rest[0].known:
		r.hide(name + " -c runs what is only known when it runs: " + in.rest[0].show())
	default:
		r.nestedScript(name, in.rest[0].text)
	}
}

// nestedScript reads a line for another shell.
func (r *reader) nestedScript(name, text string) {
	outer := r.dialect
	defer func() { r.dialect = outer }()
	r.dialect = POSIX
	if name == "bash" || name == "rbash" || name == "bash5" {
		r.dialect = Bash
	}
	r.script(text)
}

// checks reports whether a shell is only asked for the syntax of a file.
func checks(args []word) bool {
	return len(args) == 2 && args[0].known && args[0].text == "-n" && !args[1].flag() && !args[1].spreads
}

// invoke reads the options of a shell.
func invoke(args []word) invocation {
	var in invocation
	for len(args) > 0 {
		a := args[0]
		option := len(a.text) > 1 && (a.text[0] == '-' || a.text[0] == '+')
		switch {
		case !option && a.spreads:
			in.doubt = "options that are only known when it runs"
			return in
		case !option && a.known && a.text == "-", a.known && a.text == "--":
			in.rest = args[1:]
			return in
		case !option:
			in.rest = args
			return in
		}
		used, doubt := in.option(a)
		if doubt != "" || used > len(args) {
			in.doubt = doubt
			return in
		}
		args = args[used:]
	}
	return in
}

// option reads one option and says how many words it takes.
func (in *invocation) option(a word) (used int, doubt string) {
	switch {
	case !a.known:
		return 0, "options that are only known when it runs"
	case strings.HasPrefix(a.text, "--rcfile"), strings.HasPrefix(a.text, "--init-file"):
		return 0, "a file of commands"
	case strings.HasPrefix(a.text, "--"):
		return 1, ""
	}
	used = 1
	for _, c := range a.text[1:] {
		switch c {
		case 'c':
			in.command = true
		case 's':
			return 0, "commands to read from elsewhere"
		case 'o', 'O':
			used++
		}
	}
	return used, ""
}

// informs reports whether a word asks a program about itself.
func informs(w word) bool {
	return w.known && listed(" --version -V --help -h -version -v -help ", w.text)
}
