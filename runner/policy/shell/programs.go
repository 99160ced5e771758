package shell

import "strings"

// commandOptions are the options of programs whose value is a command line.
var commandOptions = map[string]string{
	"tar":       " -I -F --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command ",
	"bsdtar":    " --use-compress-program ",
	"rsync":     " -e --rsh --rsync-path ",
	"su":        " -c --command ",
	"runuser":   " -c --command ",
	"script":    " -c --command ",
	"flock":     " -c --command ",
	"split":     " --filter ",
	"sort":      " --compress-program ",
	"rg":        " --pre --hostname-bin ",
	"npx":       " -c --call ",
	"npm":       " -c --call --script-shell ",
	"pnpm":      " -c --script-shell ",
	"go":        " -exec --exec -toolexec --toolexec -vettool --vettool ",
	"man":       " -P -H --pager --html ",
	"nix-shell": " --run --command ",
	"zip":       " -TT --unzip-command ",
	"wget":      " --use-askpass ",
	"scp":       " -S ",
	"sftp":      " -S ",
	"git":       " --upload-pack --receive-pack --exec -x --extcmd --open-files-in-pager --exec-path --sequence-editor --tool ",
	"gh":        " --pager ",
	"ctags":     " --_interactive ",
	"pip":       " --editor --python ",
	"chronic":   " -c ",
	"xterm":     " -e ",
}

// commandFlags reads the options whose value is a command line.
func (r *reader) commandFlags(name string, args []word) {
	options, ok := commandOptions[name]
	if !ok {
		return
	}
	for i, w := range args {
		if !w.flag() || r.spent() {
			continue
		}
		value, found := valueOf(options, args[i:])
		switch {
		case !found:
		case !value.known:
			r.hide(name + " runs what is only known when it runs: " + w.show())
		default:
			r.script(strings.TrimPrefix(value.text, "exec=")) // of tar --checkpoint-action
		}
	}
}

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

// make looks for makefiles that are not the usual ones.
func (r *reader) make(args []word) {
	r.pairs(args)
	for _, w := range args {
		for _, option := range []string{"-f", "--file", "--makefile", "--eval", "-E"} {
			if strings.HasPrefix(w.text, option) {
				r.hide("make runs what is in " + w.show())
			}
		}
	}
}

// ssh reads the command for the other side.
func (r *reader) ssh(args []word) {
	var rest []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		if strings.HasPrefix(w.text, "-o") || strings.HasPrefix(w.text, "-F") || strings.HasPrefix(w.text, "-E") {
			r.hide("ssh is given options that may run commands")
		}
		if !w.flag() {
			rest = args[i+1:]
			break
		}
		if len(w.text) == 2 && strings.Contains("BbcDEeFIiJLlmOopQRSWw", w.text[1:]) {
			i++
		}
	}
	if len(rest) == 0 {
		r.hide("ssh runs what is not shown")
		return
	}
	r.evaluateOrHide("ssh", rest)
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
	"conda": " run ", "mamba": " run ", "mise": " exec x run ", "asdf": " exec ",
	"yarn": " exec dlx node ", "pnpm": " exec dlx node ", "npm": " exec x ", "go": " run tool ", "cargo": " run ",
}

// subcommand looks at programs that run others by some of their first words.
func (r *reader) subcommand(name string, args []word) {
	for i, w := range args {
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
