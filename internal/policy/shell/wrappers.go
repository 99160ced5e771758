package shell

import "strings"

// A wrapper is how a program that runs another takes its words.
type wrapper struct {
	flags   string // letters of options without a value
	values  string // letters of options with one
	long    string // long options without a value
	longs   string // long options whose value is the next word
	skip    int    // words before the program
	assigns bool   // takes NAME=value before the program
}

// wrappers are programs whose own words are known well enough to tell where the
// other program begins.
var wrappers = map[string]wrapper{
	"env": {
		flags: "i0v", values: "uCP", assigns: true, longs: " --unset --chdir --argv0 ",
		long: " --ignore-environment --null --debug --list-signal-handling --default-signal --ignore-signal --block-signal ",
	},
	"sudo": {
		flags: "ABbEHiKklNnPSsVv", values: "CDghprRTtuU", assigns: true,
		long:  " --askpass --background --preserve-env --set-home --login --non-interactive --stdin --shell --bell --no-update ",
		longs: " --close-from --chdir --group --host --prompt --role --chroot --command-timeout --type --user --other-user ",
	},
	"doas":    {flags: "Lns", values: "Cu", assigns: true},
	"nice":    {flags: "0123456789-", values: "n", longs: " --adjustment "},
	"nohup":   {},
	"time":    {flags: "apqvV", values: "fo", long: " --append --portability --verbose --quiet ", longs: " --format --output "},
	"timeout": {flags: "fpv", values: "ks", long: " --foreground --preserve-status --verbose ", longs: " --kill-after --signal ", skip: 1},
	"stdbuf":  {values: "ioe", longs: " --input --output --error "},
	"setsid":  {flags: "cfw", long: " --ctty --fork --wait "},
	"ionice":  {flags: "t", values: "cnpPu", long: " --ignore ", longs: " --class --classdata --pid --pgid --uid "},
	"chroot":  {longs: " --userspec --groups ", long: " --skip-chdir ", skip: 1},
	"exec":    {flags: "cl", values: "a"},
	"builtin": {}, "command": {flags: "p"}, "busybox": {}, "toybox": {}, "coproc": {},
	"npx":  {flags: "yq", values: "pcw", long: " --yes --no --no-install --quiet --prefer-offline ", longs: " --package --call --workspace "},
	"bunx": {flags: "y", values: "p", longs: " --package ", long: " --bun "},
	"uvx":  {flags: "qv", values: "p", longs: " --from --with --python --index "},
}

// loose are programs that run another, with words before it that are not known
// here: each word is tried.
const loose = ` strace ltrace unbuffer watch parallel runuser unshare nsenter taskset chrt prlimit systemd-run entr direnv setpriv
 capsh firejail bwrap fakeroot fakechroot tini dumb-init gosu su-exec s6-setuidgid chpst envdir softlimit numactl cgexec setarch linux32
 linux64 torsocks proxychains proxychains4 caffeinate script flock su rlwrap pkexec hyperfine valgrind perf chronic nsjail eatmydata ccache
 sccache distcc xvfb-run dbus-run-session dbus-launch doppler aws-vault start-stop-daemon daemonize lima pipenv nodemon concurrently
 watchexec cross-env dotenv dotenvx foreman honcho supervise setlock runsv coverage coreutils x86_64 i386 memusage faketime ts-retry retry
 fd fdfind nix-shell nix guix toolbox distrobox flatpak snap apptainer singularity ssh-agent gpg-agent choom busctl proot machinectl sg
 uname26 i486 i586 i686 aarch64 limactl `

// wrapped looks for the program that a wrapper runs.
func (r *reader) wrapped(name string, w wrapper, args []word) {
	if name == "command" && len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
		return // says where a program is
	}
	r.launches(name, args)
	rest, sure := w.inner(args)
	if !sure {
		r.startsShell(name, args)
		r.unsure(name, args)
		return
	}
	if w.assigns {
		rest = r.assigned(rest)
	}
	switch {
	case len(rest) == 0:
		r.startsShell(name, args)
	case listed(builtins, base(first(rest))) && name != "exec" && name != "command" && name != "builtin":
		// A program that has the name of something that is built into shells.
		r.line.commands = append(r.line.commands, command{rest[0].text, rest[1:]})
	default:
		r.run(rest)
	}
}

// unsure looks at a wrapper whose options are not all known.
func (r *reader) unsure(name string, args []word) {
	if name == "env" { // -S has it take a word apart
		r.hide("env is given options that are not known here")
	}
	r.pairs(args)
	r.tryAll(args)
}

// first is the first word, when it is known.
func first(words []word) string {
	if len(words) == 0 || !words[0].known {
		return ""
	}
	return words[0].text
}

// assigned takes the words like NAME=value off.
func (r *reader) assigned(args []word) []word {
	for i, w := range args {
		if name, value, ok := strings.Cut(w.text, "="); ok && name != "" {
			r.set(name, word{text: value, known: w.known})
			continue
		}
		return args[i:]
	}
	return nil
}

// inner are the words from the program on. It is not sure of them when there is
// an option that it does not know.
func (w wrapper) inner(args []word) (rest []word, sure bool) {
	for len(args) > 0 && (args[0].flag() || w.assigns && args[0] == literal("-")) { // env -
		if args[0] == literal("--") {
			return w.after(args[1:])
		}
		used, ok := w.option(args[0])
		if !ok || used > len(args) {
			return args, false
		}
		args = args[used:]
	}
	if len(args) > 0 && args[0].spreads && args[0].text == "" && !w.plain() {
		return args, false // it may be options
	}
	return w.after(args)
}

// plain reports whether the wrapper takes no options at all.
func (w wrapper) plain() bool { return w.flags+w.values+w.long+w.longs == "" }

// after skips the words that come before the program.
func (w wrapper) after(args []word) ([]word, bool) {
	for _, a := range args[:min(w.skip, len(args))] {
		if a.spreads {
			return args, false
		}
	}
	return args[min(w.skip, len(args)):], true
}

// option says how many words an option takes.
func (w wrapper) option(a word) (used int, ok bool) {
	if strings.HasPrefix(a.text, "--") {
		name, _, bound := strings.Cut(a.text, "=")
		switch {
		case bound:
			return 1, listed(w.long+w.longs, name)
		case !a.known:
			return 0, false
		case listed(w.longs, name):
			return 2, true
		}
		return 1, listed(w.long, name)
	}
	for i, c := range a.text[1:] {
		switch {
		case strings.ContainsRune(w.values, c):
			if i+2 < len(a.text) || !a.known {
				return 1, !a.spreads || i+2 < len(a.text)
			}
			return 2, true
		case !strings.ContainsRune(w.flags, c):
			return 0, false
		}
	}
	return 1, a.known
}
