package shell

import (
	"slices"
	"strings"
)

// builtins are the commands that shells have in themselves.
const builtins = ` . : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec
 exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift
 shopt source suspend test times trap true type typeset ulimit umask unalias unset wait `

// builtin looks at what shells do themselves, and reports whether this is of it.
func (r *reader) builtin(name string, args []word) bool {
	switch name {
	case "eval":
		r.hide("eval runs text as commands")
		r.evaluate(args)
	case ".", "source":
		r.hide(name + " runs the script " + shown(args))
	case "trap":
		r.trap(args)
	case "alias":
		r.alias(args)
	case "set", "shopt":
		r.switches(name, args)
	case "jobs":
		r.jobs(args)
	case "hash", "enable", "bind", "complete", "compgen", "compopt":
		if len(args) > 0 && !only(args, "-r", "-l") {
			r.hide(name + " changes what names run, or runs commands by itself")
		}
	case "fc":
		if len(args) == 0 || !only(args, "-r", "-l") || only(args, "-r") {
			r.hide("fc runs an editor, or commands of the history")
		}
	case "mapfile", "readarray":
		r.mapfile(name, args)
	case "read", "wait":
		r.named(args, namingOptions[name])
		r.names(args)
	case "unset", "getopts", "let", "test", "[":
		r.names(args)
	case "printf":
		if len(args) > 0 && strings.HasPrefix(args[0].text, "-v") {
			r.names([]word{literal(strings.TrimPrefix(args[0].text, "-v"))})
			r.names(args[1:])
		}
	case "export", "declare", "typeset", "local", "readonly": // \export, command export
		r.pairs(args)
		r.unnamed(name, args)
	default:
		return listed(builtins, name)
	}
	return true
}

// unnamed notes declarations of what is only known when they run.
func (r *reader) unnamed(name string, args []word) {
	for _, w := range args {
		if !w.known && !strings.Contains(w.text, "=") || w.flag() && strings.Contains(w.text, "n") && name != "export" {
			r.hide("variables whose names are only known when it runs: " + name + " " + w.show())
		}
		if w.known && substitutes(w.text) {
			r.hide("a command that is kept as text, which bash may run when it reads the variable")
		}
	}
}

// evaluate reads what eval is given, as far as it is written out.
func (r *reader) evaluate(args []word) {
	var text []string
	for _, w := range args {
		if !w.known {
			return
		}
		text = append(text, w.text)
	}
	r.script(strings.Join(text, " "))
}

// trap reads the commands of a trap.
func (r *reader) trap(args []word) {
	if len(args) > 0 && args[0].known && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) < 2 || args[0].known && listed(" - -l -p ", args[0].text):
	case args[0].known:
		r.script(args[0].text)
	default:
		r.hide("trap runs what is only known when it runs")
	}
}

// alias reads what aliases stand for. A plain sh expands them, so there they may
// change how the rest of the line is read; bash does so when it is told to, which
// is opaque by itself.
func (r *reader) alias(args []word) {
	for _, w := range args {
		name, value, ok := strings.Cut(w.text, "=")
		switch {
		case !w.known:
			r.hide("an alias of what is only known when it runs")
			continue
		case !ok: // shows it
			continue
		case wellKnown(name):
			r.hide("an alias takes the place of " + shorten(name))
		case strings.Contains(value, "\n"):
			r.hide("an alias of several lines: " + shorten(name))
		case r.dialect == POSIX || r.nested > 1:
			r.hide("an alias that the shell expands: " + shorten(name))
		}
		r.script(value)
	}
}

// namingOptions are the options of builtins: the letters that name a variable, and
// other letters with a value.
var namingOptions = map[string]launching{
	"read": {short: "a", values: "dinNptu"},
	"wait": {short: "p"},
}

// named looks at variables that options name, also in bundles: read -raPATH.
func (r *reader) named(args []word, l launching) {
	for i, w := range args {
		if !w.flag() {
			continue
		}
		if letter, value := bundled(w, args[i+1:], l.short, l.values); letter != 0 {
			r.names([]word{value})
		}
	}
}

// mapfile looks for the command that mapfile runs for every few lines. It may be
// in a bundle: -tCx, -tC x.
func (r *reader) mapfile(name string, args []word) {
	for _, w := range args {
		letter, _ := bundled(w, nil, "C", "dnOsuc")
		if w.flag() && letter != 0 || !w.known && (w.text == "" || w.flag() || w.text == "-") {
			r.hide(name + " -C runs commands by itself")
		}
	}
	r.names(args)
}

// jobs looks for the command of jobs -x, whose options may come in bundles.
func (r *reader) jobs(args []word) {
	runs := slices.ContainsFunc(args, func(w word) bool { return w.flag() && strings.Contains(w.text, "x") })
	switch {
	case slices.ContainsFunc(args, func(w word) bool { return !w.known && (w.text == "" || strings.HasPrefix(w.text, "-")) }):
		r.hide("jobs may run what is only known when it runs")
	case !runs:
		return
	}
	if rest := flagless(args); len(rest) > 0 {
		r.run(rest)
	}
}

// after runs the words after an option.
func (r *reader) after(args []word, option string) {
	for i, w := range args {
		if w.known && w.text == option {
			r.run(args[i+1:])
			return
		}
	}
}

// only reports whether there are no other words than these.
func only(args []word, these ...string) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return !w.known || !slices.Contains(these, w.text) })
}

// shown is the first word for people.
func shown(args []word) string {
	if len(args) == 0 {
		return ""
	}
	return args[0].show()
}

// common are programs that nothing else should be named after.
const common = ` awk base64 cat chgrp chmod chown cp curl cut date dd df diff docker du find git go grep gzip head helm id install kubectl less ln ls make mkdir
 mktemp mv nc node npm openssl patch perl pip python python3 rm rmdir rsync scp sed shred sort ssh stat su tail tar tee terraform touch tr truncate uniq
 unlink unzip wc wget which xargs yarn zip `

// wellKnown reports whether a name is that of something known here.
func wellKnown(name string) bool {
	_, wraps := wrappers[name]
	return wraps || shells[name] || python(name) || listed(builtins, name) || listed(common, name) || listed(loose, name) || listed(interpreters, name)
}
