package shell

import (
	"regexp"
	"slices"
	"strings"
)

// launchers are programs that run other programs or code. Nothing follows them, so
// they make the line opaque.
const launchers = ` R Rscript aarch64 ack ag ansible ansible-playbook apptainer aptitude asdf at aws-vault bat batch batcat bb bc bpftrace bpython bsdtar bun
 bunx busctl bwrap busybox caffeinate capsh ccache cgexec choom chpst chroot chronic clisp clj clojure coffee concurrently conda coproc coreutils coverage cpio
 crictl crontab cross-env crystal cscript csh csi ctags d8 daemonize dbus-launch dbus-run-session dc debugfs deno direnv distcc distrobox doas doppler
 dotenv dotenvx dotnet dotnet-script dpkg dtrace dumb-init eatmydata ecl ed elixir elvish emacs emacsclient entr envdir erl es escript ex expect
 fakechroot faketime fd fdfind fakeroot firejail fish flatpak flock foreman fzf gawk-exec gdb ghci gnuplot gosu gpg-agent gprolog groovy groovysh guile guix
 hatch honcho hush hyperfine i386 i486 i586 i686 iex ionice ip ipython ipython3 irb java javaw jdb jruby jshell julia jupyter-run kotlin ksh93 limactl
 lima linux32 linux64 lksh lldb ltrace lua luajit m4 machinectl mamba matlab memusage mise mksh mono mosh mysql nano nerdctl newgrp nim nix nix-shell
 node nodejs nodemon npx nsenter nsjail nu numactl nvim oc ocaml octave octave-cli osascript parallel pdm perf perl perl5 php php-cgi pico pipenv pipx
 pkexec posh powershell prlimit proot proxychains proxychains4 psql ptrace pwsh pypy pypy3 qjs racket rbash rc retry rksh rlwrap ruby rundll32 runghc
 runhaskell runsv runuser rye s6-setuidgid sbcl scala sccache scheme screen script setarch setlock setpriv setsid sftp sg sh-exec singularity snap softlimit
 sqlite3 ssh ssh-agent ssh-copy-id start-stop-daemon stdbuf strace su su-exec sudoedit supervise swift swipl systemd-run taskset tclsh tcpdump
 tcsh tini tmux toolbox torsocks toybox ts-node ts-retry tsx unbuffer uname26 unshare uvx v valgrind vi view vim vimdiff wasmer wasmtime watch watchexec
 wish x86_64 xdg-open xonsh xterm xvfb-run yash zx bash5 chrt `

// isLauncher reports whether a program runs others that are not followed.
func isLauncher(name string) bool {
	return listed(launchers, name) || strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so")
}

// isPython matches the names of Python, of all versions.
var isPython = regexp.MustCompile(`^python[0-9.tw]*$`)

// python visits Python: python -m pytest runs a program.
func (r *reader) python(name string, args []word) {
	switch {
	case asksVersion(args):
	case len(args) > 1 && first(args) == "-m" && listed(" pytest unittest pip venv json.tool mypy ruff black ", first(args[1:])):
		r.run(args[1:])
	default:
		r.skipWords(args, name+" runs code that is not a command line")
	}
}

// launchLetters are programs with options that run or load something, with the
// letters of those options. A command with one of the letters in a bundle of
// options, or with an option of launchNames, is opaque. Some letters are options of
// a subcommand.
var launchLetters = map[string]string{
	"tar": "IF", "gtar": "IF", "rsync": "eM", "curl": "K", "wget": "e", "scp": "SoFD", "zip": "T", "man": "PHC",
	"make": "fE", "gmake": "fE", "ninja": "f", "apt": "oc", "apt-get": "oc", "npm": "c", "pnpm": "c", "less": pagerLetters, "more": pagerLetters, "most": pagerLetters,
	"git": "O", "git clone": "uc", "git rebase": "x", "git merge": "s", "git pull": "s", "go": "", "go env": "wu",
	"sort": "", "split": "", "rg": "", "yarn": "", "pip": "", "gh": "", "cargo": "", "install": "", "openssl": "",
	"docker": "", "podman": "", "kubectl": "", "uv": "", "poetry": "", "bundle": "",
}

// launchNames are the names of options by which one of these programs runs or loads
// something, as getopt_long also accepts them abbreviated.
const launchNames = ` --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command --rsh --rsync-path
 --remote-option --daemon --config --config-file --filter --compress-program --pre --hostname-bin --pager --html --call --script-shell --shell --browser --git
 --editor --viewer --node-options --userconfig --globalconfig --init-module --unzip-command --use-askpass --execute --engine --option --editable --python
 --file --makefile --eval --strip-program --exec --exec-batch --lesskey-src --lesskey-file --upload-pack --receive-pack --extcmd --open-files-in-pager
 --sequence-editor --tool --exec-path --template --config-env --strategy -exec -toolexec --toolexec -vettool --vettool -fixtool --fixtool
 -ldflags --ldflags -gccgoflags --gccgoflags -engine -provider -provider-path -config `

// plainNames are options that look like an abbreviation of one in launchNames.
const plainNames = " --global --init --remote --remotes --edit --no-edit "

// launchCommands are subcommands that run programs or change what is run.
var launchCommands = map[string]string{
	"docker": " run exec create compose container buildx debug ", "podman": " run exec create compose container machine unshare ",
	"kubectl": " exec run debug plugin cp ", "uv": " run tool x ", "poetry": " run shell ", "bundle": " exec ", "go": " run tool ", "cargo": " run ",
	"npm": " exec exe x explore explor explo edit set config c ", "yarn": " exec dlx node ", "pnpm": " exec dlx node ", "openssl": " engine ",
}

// launchOptions visits the arguments of a program that may run others by its
// options or subcommands.
func (r *reader) launchOptions(name string, args []word) {
	var reason string
	switch {
	case name == "git":
		reason = gitReason(args)
	case name == "sed" || name == "gsed":
		reason = sedReason(args)
	case listed(" awk gawk mawk nawk original-awk ", name):
		reason = awkReason(args)
	case isCompiler.MatchString(name):
		reason = unlistedOption(args, compilerOption)
	case name == "make" || name == "gmake":
		r.assignments(args)
	case name == "go" && slices.ContainsFunc(args, func(w word) bool { return w.text == "env" }):
		r.assignments(args)
	}
	if reason == "" {
		reason = launchReason(name, args)
	}
	if reason != "" {
		r.skipWords(args, name+" runs or loads what is not shown: "+reason)
	}
}

// launchReason returns the first argument that may make a program run another.
func launchReason(name string, args []word) string {
	letters, ok := launchLetters[name]
	if !ok {
		return ""
	}
	if (name == "tar" || name == "gtar") && len(args) > 0 && !args[0].isOption() { // tar xzf is tar -xzf
		args = append([]word{{text: "-" + args[0].text, known: args[0].known}}, args[1:]...)
	}
	for _, w := range args {
		letters += launchLetters[name+" "+w.text]
	}
	end := slices.Index(args, literal("--"))
	for i, w := range args {
		if w.launchesCommand(launchCommands[name]) || (end < 0 || i < end) && w.launches(letters) {
			return w.show()
		}
	}
	return ""
}

// launchesCommand reports whether a word is one of the subcommands, or may be.
func (w word) launchesCommand(commands string) bool {
	return w.known && listed(commands, w.text) || !w.known && w.splits && commands != ""
}

// launches reports whether a word is an option that runs or loads something, or a
// command of a pager.
func (w word) launches(letters string) bool {
	name, _, _ := strings.Cut(w.text, "=")
	switch {
	case letters == pagerLetters && (strings.HasPrefix(name, "+") || name == "" && w.splits), listed(launchNames, name):
		return true
	case !w.isOption():
		return false
	case !strings.HasPrefix(name, "--"):
		return strings.ContainsAny(name[1:], letters)
	}
	return len(name) > 2 && !listed(plainNames, name) && strings.Contains(launchNames, " "+name)
}

const pagerLetters = "k"

// isCompiler matches compilers of C: gcc, gcc-13, x86_64-linux-gnu-gcc.
var isCompiler = regexp.MustCompile(`^(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|c99|c89|cpp|gfortran|gccgo|ld|lld)[-0-9.]*$`)

// compilerOption matches options of compilers that run or load nothing, and
// operands.
var compilerOption = regexp.MustCompile(`^([^-@].*|-([cswvES]|[ogILDUO].*|l[^o].*|W[a-z0-9=+-]*|std=.*|m[a-z0-9=-]*|shared|static|pipe|pthread|fPIC|fPIE|pie|MM?D?P?)|)$`)

// unlistedOption returns the first word that does not match.
func unlistedOption(args []word, plain *regexp.Regexp) string {
	for _, w := range args {
		if !plain.MatchString(w.text) || w.splits && w.text == "" {
			return w.show()
		}
	}
	return ""
}

// sedReason returns the script of sed, unless it is plain: one that runs nothing.
func sedReason(args []word) string {
	var scripts []word
	isScript := false
	for _, w := range args {
		switch {
		case isScript || len(scripts) == 0 && !w.isOption():
			scripts, isScript = append(scripts, w), false
		case w.text == "-e" && w.known:
			isScript = true
		case w.isOption() && (!w.known || !sedOption.MatchString(w.text)):
			return w.show()
		}
	}
	for _, w := range scripts {
		if !w.known || !sedScript.MatchString(w.text) {
			return w.show()
		}
	}
	return ""
}

// sedOption matches options of sed that have nothing to do with scripts.
var sedOption = regexp.MustCompile(`^-([nErsuz]+|i.*|-(quiet|silent|regexp-extended|in-place.*))$`)

// sedScript matches scripts of the commands s, p, d, q and = with the usual
// delimiters and addresses.
var sedScript = func() *regexp.Regexp {
	section := func(delimiter string) string {
		return `(?:\\.|\[[^]\\\n` + delimiter + `]+\]|[^\[\\\n` + delimiter + `])*` + `[` + delimiter + `]`
	}
	substitution := func(delimiter string) string {
		return `s[` + delimiter + `]` + section(delimiter) + section(delimiter) + `[gpI0-9]*`
	}
	address := `(?:[0-9]+|\$|/` + section("/") + `)`
	command := `(?:[pdq=]|` + substitution("/") + `|` + substitution("|") + `|` + substitution("#") + `|` + substitution(",") + `)`
	return regexp.MustCompile(`^(?:[ ;\n]*(?:` + address + `(?:,` + address + `)?)?!? *` + command + ` *(?:[;\n]|$))*$`)
}()

// awkReason returns the program of awk if it may run commands.
func awkReason(args []word) string {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.known && (w.text == "-F" || w.text == "-v"):
			i++ // the value
		case strings.HasPrefix(w.text, "-F"), strings.HasPrefix(w.text, "-v"), asksVersion(args):
		case w.isOption() || !w.known:
			return w.show()
		default:
			if program := strings.ReplaceAll(w.text, "||", ""); strings.Contains(program, "system") || strings.ContainsAny(program, "|@") {
				return w.show()
			}
			return ""
		}
	}
	return ""
}

// gitCommands are the subcommands of Git that run nothing but hooks.
const gitCommands = ` add am annotate apply blame branch cat-file check-ignore checkout cherry cherry-pick clean clone commit count-objects describe diff diff-tree
 fetch for-each-ref format-patch fsck gc grep init log ls-files ls-remote ls-tree merge merge-base mv name-rev notes prune pull push range-diff rebase reflog remote
 reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref sparse-checkout stash status submodule switch symbolic-ref tag update-index
 update-ref verify-commit version whatchanged worktree write-tree `

// gitSettings matches settings of Git that run nothing.
var gitSettings = regexp.MustCompile(`^(user|author|committer|color|advice|init|pull|push|branch)\.[A-Za-z.]+(=.*)?$`)

// gitReason returns the argument by which Git may run a program: a subcommand that is not
// listed may be an alias, and many settings run programs.
func gitReason(args []word) string {
	for i, w := range args {
		isSetting := i > 0 && args[i-1] == literal("-c") && (!w.known || strings.ContainsAny(w.text, ".="))
		if strings.Contains(w.text, "ext::") || w.text == "foreach" || isSetting && !gitSettings.MatchString(w.text) {
			return w.show()
		}
	}
	args = afterGitOptions(args)
	switch {
	case len(args) == 0, asksVersion(args), listed(gitCommands, first(args)), first(args) == "config" && plainConfig(args[1:]):
		return ""
	}
	return args[0].show()
}

// afterGitOptions returns the words after the options that all subcommands have.
func afterGitOptions(args []word) []word {
	for len(args) > 0 {
		switch {
		case listed(" -C -c ", first(args)) && len(args) > 1:
			args = args[2:]
		case listed(" --no-pager -P ", first(args)):
			args = args[1:]
		default:
			return args
		}
	}
	return args
}

// plainConfig reports whether git config reads settings, or sets one that runs
// nothing.
func plainConfig(args []word) bool {
	for len(args) > 0 && listed(" --global --local ", first(args)) {
		args = args[1:]
	}
	return listed(" --get --get-all --get-regexp --list -l ", first(args)) || gitSettings.MatchString(first(args))
}
