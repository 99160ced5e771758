package shell

import (
	"path"
	"strings"
)

// run looks at one simple command.
func (r *reader) run(words []word) {
	for len(words) > 0 && !words[0].known {
		if !r.step(0) {
			return
		}
		r.hide("the program is only known when it runs: " + words[0].show())
		if !words[0].spreads {
			return
		}
		words = words[1:] // it may be no word at all
	}
	if len(words) == 0 || !r.step(len(words)) {
		return
	}
	program := words[0].text
	r.line.commands = append(r.line.commands, command{program, words[1:]})
	if strings.Contains(program, "/") && !system(program) || program[:min(1, len(program))] == "~" {
		r.hide("runs the file " + shorten(program))
	}
	r.inside(base(program), words[1:])
}

// base is the name of a program that may be given by its path.
func base(program string) string {
	if program == "" {
		return ""
	}
	return path.Base(program)
}

// system reports whether a path leads to where programs are installed.
func system(program string) bool {
	if path.Clean(program) != program {
		return false
	}
	switch path.Dir(program) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/local/go/bin", "/lib", "/lib64":
		return true
	}
	return false
}

// inside looks at what a program does with its words.
func (r *reader) inside(name string, args []word) {
	if w, ok := wrappers[name]; ok {
		r.wrapped(name, w, args)
		return
	}
	if shells[name] {
		r.shell(name, args)
		return
	}
	if r.interpreter(name, args) || r.builtin(name, args) || r.particular(name, args) {
		return
	}
	r.startsShell(name, args)
	if name == "parallel" {
		r.parallel(args)
	}
	if listed(loose, name) || strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so") {
		r.tryAll(args)
	}
}

// particular looks at programs that may run others among much else they do.
func (r *reader) particular(name string, args []word) bool {
	r.launches(name, args)
	if compiler(name) {
		r.compile(name, args)
		return true
	}
	switch name {
	case "find":
		r.find(args)
	case "xargs":
		r.xargs(args)
	case "git":
		r.git(args)
	case "sed", "gsed":
		r.sed(args)
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		r.awk(args)
	case "make", "gmake":
		r.pairs(args)
	case "openssl":
		if first(args) == "engine" {
			r.hide("openssl loads an engine")
		}
	case "less", "more", "most":
		r.pager(name, args)
	case "ssh":
		r.ssh(args)
	case "su", "runuser":
		r.startsShell(name, args)
		r.tryAll(args)
	case "go":
		r.goOptions(args)
		r.subcommand(name, args)
	case "ip", "docker", "podman", "nerdctl", "kubectl", "oc", "crictl", "uv", "poetry", "pdm", "pipenv", "pipx", "bundle", "conda",
		"mamba", "mise", "asdf", "yarn", "pnpm", "npm", "cargo", "rye", "hatch":
		r.startsShell(name, args)
		r.subcommand(name, args)
	default:
		return false
	}
	return true
}

// tryAll takes every word for the beginning of a command: which of them is the
// program cannot be told.
func (r *reader) tryAll(args []word) {
	if r.flat {
		return // that is what is being done
	}
	r.flat = true
	defer func() { r.flat = false }()
	for i, w := range args {
		if !r.step(0) {
			return
		}
		switch {
		case w.flag():
			r.tryValue(w, args[i+1:])
		case w.known:
			r.try(args[i:])
		default:
			r.hide("the program may only be known when it runs: " + w.show())
		}
	}
}

// tryValue takes what an option is given for a program, or for a command line.
func (r *reader) tryValue(w word, rest []word) {
	_, value, ok := strings.Cut(w.text, "=")
	if ok && value != "" && r.step(len(rest)) {
		r.try(append([]word{{text: value, known: w.known}}, rest...))
	}
	if ok || strings.HasPrefix(w.text, "--") {
		return
	}
	for from := 2; from < min(len(w.text), maxBundle) && r.step(len(rest)); from++ { // -ccmd, -qccmd
		r.try(append([]word{{text: w.text[from:], known: w.known}}, rest...))
	}
}

// maxBundle is how far into a word options are looked for that are bundled.
const maxBundle = 6

// pager looks for commands that a pager begins with, and for files of them.
func (r *reader) pager(name string, args []word) {
	for _, w := range args {
		if strings.HasPrefix(w.text, "+") || strings.HasPrefix(w.text, "-k") || strings.HasPrefix(w.text, "--lesskey") || w.spreads && w.text == "" {
			r.hide(name + " begins with commands that are not followed: " + w.show())
		}
	}
}

// try takes the first word for a program, or for a command line.
func (r *reader) try(words []word) {
	text := words[0].text
	switch {
	case strings.ContainsAny(text, " \t\n;|&$`<>"):
		r.script(text)
	case listed(builtins, text): // nothing that other programs can run
	default:
		if hasScriptName(text) {
			r.hide("runs the script " + shorten(text))
		}
		r.run(words)
	}
}

// hasScriptName reports whether a name is that of a file of code.
func hasScriptName(name string) bool {
	ext := path.Ext(name)
	return ext != "" && listed(scripts, ext)
}

// scripts are the endings of files with code.
const scripts = " .sh .bash .zsh .py .pyz .js .mjs .cjs .ts .mts .rb .pl .php .lua .tcl .awk .sed .ps1 "
