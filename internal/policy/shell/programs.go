package shell

import "strings"

// valueOf is the value of the option that words begin with, if it is a listed one.
func valueOf(options string, words []word) (word, bool) {
	w := words[0]
	name, value, bound := strings.Cut(w.text, "=")
	if bound && listed(options, name) {
		return word{text: value, known: w.known}, true
	}
	if w.known && listed(options, w.text) {
		if len(words) == 1 {
			return literal(""), true
		}
		return words[1], true
	}
	if len(w.text) > 2 && w.text[1] != '-' && listed(options, w.text[:2]) {
		return word{text: w.text[2:], known: w.known}, true
	}
	return word{}, false
}

// find reads the commands of find.
func (r *reader) find(args []word) {
	for i, w := range args {
		if w.spreads {
			r.hide("find is given words that are only known when it runs: " + w.show())
		}
		if w.known && listed(" -exec -execdir -ok -okdir ", w.text) && r.step(len(args)-i) {
			r.run(r.replaced(untilEnd(args[i+1:]), "{}"))
		}
	}
}

// untilEnd are the words up to what ends a command of find.
func untilEnd(args []word) []word {
	for i, w := range args {
		if w.known && (w.text == ";" || w.text == "+" && i > 0 && strings.Contains(args[i-1].text, "{}")) {
			return args[:i]
		}
	}
	return args
}

// replaced are words of which those with a mark are only known when they run.
// One that looks like a command line is read all the same.
func (r *reader) replaced(args []word, mark string) []word {
	all := make([]word, len(args))
	for i, w := range args {
		if before, _, ok := strings.Cut(w.text, mark); ok && mark != "" {
			if strings.ContainsAny(w.text, " ;&|") && r.step(len(w.text)/8) {
				r.script(w.text)
			}
			w = word{text: before, spreads: w.spreads}
		}
		all[i] = w
	}
	return all
}

var xargs = wrapper{
	flags: "0rtxpo", values: "ILnPsdEaRJ",
	long:  " --null --no-run-if-empty --verbose --exit --interactive --open-tty --replace --max-lines --eof --show-limits ",
	longs: " --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var ",
}

// xargs reads the command of xargs, which is given more words than are shown.
func (r *reader) xargs(args []word) {
	rest, sure := xargs.inner(args)
	mark := ""
	for i, w := range args[:len(args)-len(rest)] {
		switch {
		case w.text == "-I" || w.text == "-J" || w.text == "-R":
			mark = args[min(i+1, len(args)-1)].text
		case strings.HasPrefix(w.text, "-I"):
			mark = w.text[2:]
		case strings.HasPrefix(w.text, "-i"), strings.HasPrefix(w.text, "--replace"):
			sure = false
		}
	}
	if !sure {
		r.tryAll(append(r.replaced(args, "{}"), anything))
		r.hide("xargs is given options that are not known here")
		return
	}
	if len(rest) == 0 {
		return // echo
	}
	r.run(append(r.replaced(rest, mark), anything))
}

// ssh reads the command for the other side. Options may also follow the host.
func (r *reader) ssh(args []word) {
	hosts := 0
	for len(args) > 0 && (hosts == 0 || args[0].flag()) {
		w := args[0]
		args = args[1:]
		if !w.flag() {
			hosts++
			continue
		}
		args = args[min(r.sshOption(w), len(args)):]
	}
	if len(args) == 0 {
		r.hide("ssh runs what is not shown")
		return
	}
	r.evaluateOrHide("ssh", args)
}

// sshOption looks at an option of ssh and says how many words its value takes.
func (r *reader) sshOption(w word) int {
	letter, _ := bundled(w, nil, sshOptions.reads+sshOptions.values, "")
	if strings.IndexByte(sshOptions.reads, letter) >= 0 && letter != 0 || !w.known {
		r.hide("ssh is given options that may run commands: " + w.show())
	}
	if letter != 0 && strings.IndexByte(w.text, letter) == len(w.text)-1 {
		return 1
	}
	return 0
}

// evaluateOrHide reads words that are put together to a command line.
func (r *reader) evaluateOrHide(name string, args []word) {
	for _, w := range args {
		if !w.known {
			r.hide(name + " runs what is only known when it runs: " + w.show())
			r.run(args)
			return
		}
	}
	r.evaluate(args)
}

// running are the first words with which a program runs another.
var running = map[string]string{
	"docker": " run exec create compose container buildx debug ", "podman": " run exec create compose container machine unshare ", "nerdctl": " run exec create compose container ",
	"kubectl": " exec run debug plugin cp ", "oc": " exec run debug rsh plugin ", "crictl": " exec run ",
	"uv": " run tool x ", "poetry": " run ", "pdm": " run ", "pipenv": " run ", "pipx": " run ", "rye": " run ", "hatch": " run ", "bundle": " exec ",
	"conda": " run ", "mamba": " run ", "mise": " exec x run ", "asdf": " exec ", "ip": " exec exe ex e ",
	"yarn": " exec dlx node ", "pnpm": " exec dlx node ", "npm": " exec exe x explore explor explo ", "go": " run tool ", "cargo": " run ",
}

// subcommand looks at programs that run others by some of their first words.
func (r *reader) subcommand(name string, args []word) {
	for i, w := range args {
		r.elsewhere(name, w, args[i+1:])
		switch {
		case !w.known && w.spreads:
			r.hide(name + " may run what is only known when it runs: " + w.show())
		case w.known && listed(running[name], w.text):
			if name == "go" || name == "cargo" {
				r.hide(name + " " + w.text + " runs code that is not a command line")
			}
			r.tryAll(args[i+1:])
			return
		}
	}
}

// elsewhere notes words by which ip and npm run what is not shown.
func (r *reader) elsewhere(name string, w word, rest []word) {
	switch {
	case name == "ip" && (len(w.text) > 1 && strings.HasPrefix("-batch", w.text) || w.text == "--batch"):
		r.hide("ip runs a file of commands")
	case name == "npm" && w.known && w.text == "edit":
		r.hide("npm starts an editor")
	case name == "npm" && w.known && listed(" set config c ", w.text):
		r.npmConfig(rest)
	}
}

// npmConfig notes a setting of npm that makes it run or load something.
func (r *reader) npmConfig(args []word) {
	for _, w := range args {
		name, _, _ := strings.Cut(w.text, "=")
		if listed(" script-shell shell browser git editor viewer node-options init-module prefix userconfig globalconfig ", name) || !w.known {
			r.hide("npm may run what is set by " + w.show())
		}
	}
}
