package shell

import (
	"slices"
	"strings"
)

// shellStarters are programs that start a shell, which reads its standard input,
// when they are given no command. Of those with options that are not known here
// it cannot be told whether they are given one.
var shellStarters = map[string]wrapper{
	"unshare": {
		flags: "muinpUCTfcrh", values: "SGRwl",
		long:  " --mount --uts --ipc --net --pid --user --cgroup --time --fork --mount-proc --map-root-user --map-current-user --map-auto --keep-caps --kill-child ",
		longs: " --map-user --map-group --map-users --map-groups --propagation --setgroups --root --wd --setuid --setgid --monotonic --boottime ",
	},
	"nsenter": {
		flags: "amuinpCUTrwFZech", values: "tSGWN",
		long:  " --all --mount --uts --ipc --net --pid --cgroup --user --time --root --wd --no-fork --follow-context --preserve-credentials --env --join-cgroup ",
		longs: " --target --setuid --setgid --wdns --net-socket ",
	},
	"setarch": architecture(1), "linux32": architecture(0), "linux64": architecture(0), "i386": architecture(0), "i486": architecture(0),
	"i586": architecture(0), "i686": architecture(0), "x86_64": architecture(0), "uname26": architecture(0), "aarch64": architecture(0),
	"fakeroot":   {flags: "uvh", values: "lsib", long: " --unknown-is-real ", longs: " --lib --faked --fd-base "},
	"fakechroot": {flags: "shv", values: "dbce", long: " --use-system-libs ", longs: " --elfloader --bindir --config-dir --environment "},
	"firejail":   {flags: "", long: " --quiet --private --noprofile --noroot --seccomp --net "},
	"pkexec":     {longs: " --user ", long: " --disable-internal-agent --keep-cwd "},
	"proot":      {flags: "0vh", values: "rbqwkSRi"},
	"parallel": {
		flags: "0kqtuvXxmz", values: "jPaIEdLnNsS",
		long:  " --null --keep-order --bar --eta --progress --dry-run --verbose --group --ungroup --line-buffer --will-cite --no-run-if-empty --halt-on-error --tag --pipe ",
		longs: " --jobs --arg-file --delay --timeout --retries --joblog --halt --max-args --delimiter --colsep --sshlogin ",
	},
}

// architecture is how the programs that change the architecture take their words.
func architecture(skip int) wrapper {
	return wrapper{flags: "BFILRSTXZ3vh", long: " --32bit --addr-no-randomize --fdpic-funcptrs --verbose --uname-2.6 --whole-seconds --mmap-page-zero --4gb ", skip: skip}
}

// alwaysShells are programs that start a shell or an editor, whatever they are given.
const alwaysShells = " newgrp login sulogin sudoedit visudo vipw vigr run0 "

// shellWords are the words with which programs start a shell.
var shellWords = map[string]string{
	"nix": " shell develop run ", "guix": " shell environment ", "pipenv": " shell ", "poetry": " shell ", "hatch": " shell ", "toolbox": " enter ",
	"distrobox": " enter ", "apptainer": " shell ", "singularity": " shell ", "machinectl": " shell login ", "capsh": " -- == ", "limactl": " shell ",
}

// startsShell notes a program that starts a shell which reads what is not shown.
func (r *reader) startsShell(name string, args []word) {
	if len(args) == 1 && informs(args[0]) {
		return
	}
	starts := listed(alwaysShells, name)
	switch name {
	case "su", "runuser", "script", "nix-shell":
		starts = !commandGiven(name, args)
	case "sudo", "doas":
		starts = shellOption(args, wrapper{values: wrappers[name].values}, "sie", " --shell --login --edit ")
	case "systemd-run":
		starts = shellOption(args, wrapper{values: "upEHM"}, "S", " --shell ")
	case "capsh":
		starts = slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "--sh") })
	case "chroot", "npx":
		starts = len(args) > 0 || name == "npx"
	case "sg":
		starts = len(slices.DeleteFunc(slices.Clone(args), func(w word) bool { return strings.HasPrefix(w.text, "-") })) < 2
	}
	if w, ok := shellStarters[name]; ok {
		rest, sure := w.inner(args)
		starts = !sure || len(rest) == 0 || strings.HasPrefix(first(rest), "::")
	}
	if words := shellWords[name]; !starts && words != "" {
		starts = slices.ContainsFunc(args, func(w word) bool { return w.known && listed(words, w.text) })
	}
	if starts {
		r.hide(name + " may start a shell that reads what is not shown")
	}
}

// shellOption reports whether one of the options asks for a shell, or may.
func shellOption(args []word, w wrapper, letters, long string) bool {
	return slices.ContainsFunc(args, func(a word) bool {
		if !a.flag() {
			return false
		}
		letter, _ := bundled(a, nil, letters, w.values)
		_, found := longOption(long, "", a, nil)
		return letter != 0 || found || !a.known
	})
}

// commandGiven reports whether an option gives the command for a shell.
func commandGiven(name string, args []word) bool {
	l := launchers[name]
	for i := 0; i < len(args); i++ {
		w := args[i]
		if name == "runuser" && w.text == "--" {
			return i+1 < len(args)
		}
		if !w.flag() {
			continue
		}
		_, long := longOption(l.long, l.others, w, nil)
		if letter, _ := bundled(w, nil, l.short, l.values); long || letter != 0 {
			return true
		}
		if last := w.text[len(w.text)-1]; w.text[1] != '-' && strings.IndexByte(w.text, last) == len(w.text)-1 && strings.IndexByte(l.values, last) >= 0 {
			i++ // the value of this option
		}
	}
	return false
}

// parallel reads the command of parallel, which is a line for a shell with the
// items in the places of {}.
func (r *reader) parallel(args []word) {
	rest, _ := shellStarters["parallel"].inner(args)
	if end := slices.IndexFunc(rest, func(w word) bool { return strings.HasPrefix(w.text, "::") }); end >= 0 {
		rest = rest[:end]
	}
	for _, w := range rest {
		if strings.Contains(w.text, "{") && strings.ContainsAny(w.text, " ;&|") && r.step(len(w.text)/8) {
			r.script(strings.ReplaceAll(w.text, "{", "$x{"))
		}
	}
	if len(rest) > 0 {
		r.run(append(r.replaced(rest, "{"), anything))
	}
}
