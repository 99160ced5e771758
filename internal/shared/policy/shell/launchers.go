package shell

import (
	"path"
	"slices"
	"strings"
)

// launchers are programs that run other programs or code. They are not followed, so they make the line opaque.
const launchers = ` aa-exec aarch64 abduco ack ag ansible ansible-playbook apptainer aptitude asdf at aws-vault bash5 bashdb bat batcat batch bats bb bc bpftrace bpython
 bsdtar bun bunx busctl busybox bwrap byebug caffeinate capsh catchsegv ccache cgexec choom chpst chronic chroot chrt clisp clj clojure coffee
 concurrently conda coproc coreutils coverage cpio cpulimit crictl crontab cross-env crystal cscript csh csi ctags d8 daemon daemonize dbus-launch
 dbus-run-session dc debugfs debuild deno direnv distcc distrobox doas doppler dotenv dotenvx dotnet dotnet-script dpkg dpkg-buildpackage dtach dtrace
 dumb-init eatmydata ecl ed elixir elvish emacs emacsclient entr env_parallel envdir erl es escript evim ex expect fakechroot fakeroot faketime fd
 fdfind firejail fish flatpak flock foreman fzf gawk-exec gdb genv gfind ghci gnice gnohup gnuplot gosu gpg-agent gprolog groovy groovysh gstdbuf
 gtimeout guile guix gvim gxargs hatch heaptrack honcho hush hx hyperfine i386 i486 i586 i686 iex ifne incus ionice ip ipdb ipython irb java
 javaw jdb jed joe jruby jshell julia jupyter-run kak kotlin ksh93 lckdo lima limactl linux32 linux64 lksh lldb logrotate logsave ltrace lua luajit
 lxc lxc-attach lxc-execute m4 machinectl mamba matlab memusage mise mksh mono mosh mpiexec mpirun multitime mysql nano nc ncat nerdctl netcat newgrp
 nim nix nix-shell node nodejs nodemon npx nsenter nsjail nu numactl nvim oc ocaml octave octave-cli oil oksh osascript osh parallel pdb pdksh pdm pee
 perf perl pexec php php-cgi pico pipenv pipx pkexec posh powershell prlimit proot proxychains psql ptrace pudb pwsh pypy qjs
 R racket rbash rc rdbg retry rksh rlwrap rpmbuild rpmspec Rscript ruby run-parts runcon rundll32 runghc runhaskell runsv runuser rview rvim rye
 s6-setuidgid sbcl scala sccache schedtool scheme screen script sem setarch setlock setpriv setsid setuidgid sftp sg sh-exec singularity snap socat
 softlimit sqlite3 srun ssh ssh-agent ssh-copy-id sshpass start-stop-daemon stdbuf strace su su-exec sudoedit supervise swift swipl systemd-run
 taskset tclsh tcpdump tcsh tini tmux toolbox torify torsocks toybox trickle ts-node ts-retry tsocks tsx uftrace uname26 unbuffer unshare uvx v
 valgrind vi view vim vimdiff vipe wasmer wasmtime watch watchexec wish x86_64 xdg-open xonsh xterm xvfb-run yash ysh zx `

// isLauncher reports whether a program runs others that are not followed.
func isLauncher(name string) bool {
	return listed(launchers, name) || strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so")
}

// versioned matches the name of a program with a version or a variant: perl5.36,
// node18, python3-dbg, vim.tiny.
var versioned = lazy(`^(.*?[A-Za-z+]{2})(?:[-_.]?[0-9][0-9.]*[a-z]?(?:-.*)?|[-.](?:dbg|debug|static|basic|tiny|nox|gtk3|openbsd|traditional))$`)

// unversioned returns the name of a program without its version. Numbers that belong to a name, as in sqlite3, are
// kept.
func unversioned(name string) string {
	if match := versioned().FindStringSubmatch(name); match != nil && !isLauncher(name) {
		return match[1]
	}
	return name
}

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

// A launchSyntax describes which words make a program run or load something that the line does not show.
type launchSyntax struct {
	letters  string                            // short options, also in bundles
	commands string                            // subcommands that run programs or change what is run
	check    func(args []word) (reason string) // returns an argument that is not known to be harmless
}

// launchSyntaxes are the programs that run or load something only with some words: the listed ones, and the options of
// launchNames. A name of two words is a subcommand, to which the letters of its program apply too.
var launchSyntaxes = map[string]launchSyntax{
	"apt": {letters: "oc"}, "apt-get": {letters: "oc"}, "bundle": {commands: " exec "}, "cargo": {commands: " run "},
	"cmake": {check: onlyWords(`([^-].*|-([^ECP].*)?)?`)}, "curl": {letters: "K"},
	"docker": {commands: " run exec create compose container buildx debug "}, "gh": {},
	"git": {letters: "O", check: gitReason}, "git clone": {letters: "uc"}, "git merge": {letters: "s"}, "git pull": {letters: "s"}, "git rebase": {letters: "x"},
	"go": {commands: " run tool "}, "go env": {letters: "wu"}, "gmake": {letters: "fE"}, "gtar": {letters: "IF"}, "install": {},
	"kubectl": {commands: " exec run debug plugin cp "}, "less": {letters: "k", check: onlyWords(`([^+].*)?`)}, "make": {letters: "fE"}, "man": {letters: "PHC"},
	"more": {letters: "k", check: onlyWords(`([^+].*)?`)}, "most": {letters: "k", check: onlyWords(`([^+].*)?`)},
	"mvn": {check: onlyWords(`[^:]+`)}, "ninja": {letters: "f"}, "npm": {letters: "c", commands: " exec exe x explore explor explo edit set config c "},
	"openssl": {commands: " engine "}, "pip": {}, "pnpm": {letters: "c", commands: " exec dlx node "}, "podman": {commands: " run exec create compose container machine unshare "},
	"poetry": {commands: " run shell "}, "rg": {},
	"rpm":   {check: onlyWords(`([^-].*|-[^-DE]+|--(force|help|import|nodeps|qf|query|queryformat|verify|version)(=.*)?)?`)},
	"rsync": {letters: "eM"}, "scp": {letters: "SoFD"}, "sort": {}, "split": {}, "ssh-add": {letters: "sS"}, "ssh-keygen": {letters: "Dw"}, "tar": {letters: "IF"},
	"uv": {commands: " run tool x "}, "wget": {letters: "e"}, "yarn": {commands: " exec dlx node "}, "zip": {letters: "T"},
	"awk": {check: awkReason}, "gawk": {check: awkReason}, "mawk": {check: awkReason}, "nawk": {check: awkReason}, "original-awk": {check: awkReason},
	"sed": {check: sedReason}, "gsed": {check: sedReason},
}

// launchNames are the names of options with which these programs run or load something. getopt_long also accepts
// abbreviations of them.
const launchNames = ` --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command --rsh --rsync-path
 --remote-option --daemon --config --config-file --filter --compress-program --pre --hostname-bin --pager --html --call --script-shell --shell --browser --git
 --editor --viewer --node-options --userconfig --globalconfig --init-module --unzip-command --use-askpass --execute --engine --option --editable --python
 --file --makefile --eval --strip-program --exec --exec-batch --lesskey-src --lesskey-file --upload-pack --receive-pack --extcmd --open-files-in-pager
 --sequence-editor --tool --exec-path --template --config-env --strategy -exec -toolexec --toolexec -vettool --vettool -fixtool --fixtool
 -ldflags --ldflags -gccgoflags --gccgoflags -engine -provider -provider-path -config `

// plainNames are harmless options that could be taken for abbreviations of options in launchNames.
const plainNames = " --global --init --remote --remotes --edit --no-edit "

// launchOptions visits the arguments of a program that may run others by its
// options or subcommands.
func (r *reader) launchOptions(name string, args []word) {
	program := unversioned(name)
	if program == "make" || program == "gmake" || program == "go" && slices.ContainsFunc(args, func(w word) bool { return w.text == "env" }) {
		r.assignments(args)
	}
	syntax, ok := launchSyntaxes[program]
	if isCompiler.MatchString(name) {
		syntax, ok = launchSyntax{check: compilerReason}, true
	}
	if !ok {
		return
	}
	reason := ""
	if syntax.check != nil {
		reason = syntax.check(args)
	}
	if reason == "" {
		reason = syntax.launchReason(program, args)
	}
	if reason != "" {
		r.skipWords(args, name+" runs or loads what is not shown: "+reason)
	}
}

// launchReason returns the first argument that may make a program run another.
func (s launchSyntax) launchReason(name string, args []word) string {
	if (name == "tar" || name == "gtar") && len(args) > 0 && !args[0].isOption() { // tar xzf is tar -xzf
		args = append([]word{{text: "-" + args[0].text, known: args[0].known}}, args[1:]...)
	}
	var letters strings.Builder
	letters.WriteString(s.letters)
	for _, w := range args {
		letters.WriteString(launchSyntaxes[name+" "+w.text].letters)
	}
	end := slices.Index(args, literal("--"))
	for i, w := range args {
		if w.launchesCommand(s.commands) || (end < 0 || i < end) && w.launches(letters.String()) {
			return w.show()
		}
	}
	return ""
}

// launchesCommand reports whether a word is, or may be, one of the subcommands.
func (w word) launchesCommand(commands string) bool {
	return w.known && listed(commands, w.text) || !w.known && w.splits && commands != ""
}

// launches reports whether a word is an option that runs or loads something.
func (w word) launches(letters string) bool {
	name, _, _ := strings.Cut(w.text, "=")
	switch {
	case listed(launchNames, name):
		return true
	case !w.isOption():
		return false
	case !strings.HasPrefix(name, "--"):
		return strings.ContainsAny(name[1:], letters)
	}
	return len(name) > 2 && !listed(plainNames, name) && strings.Contains(launchNames, " "+name)
}

// isCompiler matches compilers of C: gcc, gcc-13, x86_64-linux-gnu-gcc. Cross
// compilers have numbers in their names, so it takes the name with its version.
var isCompiler = lazy(`^(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|c99|c89|cpp|gfortran|gccgo|ld|lld|tcc)[-0-9.]*$`)

// compilerReason returns the first word that is neither an operand of a compiler nor a harmless option.
var compilerReason = onlyWords(`[^-@].*|-([cswvES]|[ogILDUO].*|l[^o].*|W[a-z0-9=+-]*|std=.*|m[a-z0-9=-]*|shared|static|pipe|pthread|fPIC|fPIE|pie|MM?D?P?)|`)

// onlyWords returns a check that every word matches a pattern as a whole.
func onlyWords(pattern string) func(args []word) string {
	plain := lazy(`^(?:` + pattern + `)$`)
	return func(args []word) string {
		for _, w := range args {
			if !plain.MatchString(w.text) || w.splits && w.text == "" {
				return w.show()
			}
		}
		return ""
	}
}

// sedReason returns the first script or option of sed that is not known to be harmless.
func sedReason(args []word) string {
	isScript := true // the next operand
	for i, w := range args {
		isValue := i > 0 && args[i-1] == literal("-e")
		switch {
		case w.isOption() && w.known && !isValue && sedOption.MatchString(w.text):
			isScript = isScript || w.text == "-e"
		case w.isOption(), isScript && (!w.known || !sedScript.MatchString(w.text)):
			return w.show()
		default:
			isScript = false
		}
	}
	return ""
}

// sedOption matches harmless options of sed, and -e.
var sedOption = lazy(`^-(e|[nErsuz]+|i.*|-(quiet|silent|regexp-extended|in-place.*))$`)

// sedScript matches p, d, q, = and s/a/b/ with the flags g, p, I and numbers, after
// line numbers and /patterns/. Nothing else is known to be harmless.
var sedScript = func() expression {
	text := `(?:[^[\\\n/]|\\.|\[\^?[^]^\\\n/][^]\\\n/]*\])*[/]`
	commands := []string{`[pdq=]`}
	for _, delimiter := range []string{"/", "|", "#", ","} {
		commands = append(commands, strings.ReplaceAll(`s[/]`+text+text+`[gpI0-9]*`, "/", delimiter))
	}
	address := `(?:[0-9]+|\$|/` + text + `)`
	return lazy(`^(?:[ ;\n]*(?:` + address + `(?:,` + address + `)?)?!? *(?:` + strings.Join(commands, `|`) + `) *(?:[;\n]|$))*$`)
}()

// plainAwk matches the harmless options of awk.
var plainAwk = followed(`(-[Fv] [^ ]+ |-[Fv][^ ]+ )*`)

// awkReason returns the program of awk if it may run commands, or an option that is not followed.
func awkReason(args []word) string {
	rest, ok := after(plainAwk, args)
	if ok && (len(rest) == 0 || rest[0].known && !awkLaunch.MatchString(rest[0].text)) || asksVersion(args) {
		return ""
	}
	return args[len(args)-len(rest)].show()
}

// awkLaunch matches programs of awk that may run commands or load code.
var awkLaunch = lazy(`system|getline|@|(^|[^|])[|](\|\|)*([^|]|$)`)

// plainGit matches the words of Git up to a subcommand that runs only hooks. A subcommand that is not listed may be an
// alias, and many settings run programs.
var plainGit = followed(`((-C [^ ]+|--no-pager|-P|-c ` + plainSetting + `=[^ ]*) )*((--version|--help|-h|-v) |config ((--global|--local) )*` +
	`((--get|--get-all|--get-regexp|--list|-l) |` + plainSetting + ` )|submodule (add|deinit|init|status|sync|update) |(add|am|annotate|apply|` +
	`blame|branch|cat-file|check-ignore|checkout|cherry|cherry-pick|clean|clone|commit|count-objects|describe|diff|diff-tree|fetch|for-each-ref|` +
	`format-patch|fsck|gc|grep|init|log|ls-files|ls-remote|ls-tree|merge|merge-base|mv|name-rev|notes|prune|pull|push|range-diff|rebase|reflog|` +
	`remote|reset|restore|rev-list|rev-parse|revert|rm|shortlog|show|show-branch|show-ref|sparse-checkout|stash|status|switch|symbolic-ref|tag|` +
	`update-index|update-ref|verify-commit|version|whatchanged|worktree|write-tree) )`)

// plainSetting matches harmless settings of Git.
const plainSetting = `(user|author|committer|color|advice|init|pull|push|branch)\.[A-Za-z.]+`

// gitReason returns the argument with which Git may run a program.
func gitReason(args []word) string {
	for _, w := range args {
		if strings.Contains(w.text, "ext::") {
			return w.show()
		}
	}
	if len(args) == 0 || plainGit.MatchString(joined(args)) {
		return ""
	}
	return args[0].show()
}

// builtin visits the builtins of a shell that run commands, set variables or change
// how commands are parsed. It reports whether the command is one of them.
func (r *reader) builtin(name string, args []word) bool {
	switch name {
	case ".", "source", "eval", "bind", "complete", "compgen", "compopt", "enable", "fc", "hash",
		"export", "declare", "typeset", "local", "readonly": // not read as declarations, as in \export
		r.assignments(args)
		r.skipWords(args, name+" runs commands, or replaces programs")
	case "alias":
		if slices.ContainsFunc(args, func(w word) bool { return !w.known || strings.Contains(w.text, "=") }) {
			r.skipWords(append(slices.Clip(args), anything), "an alias may replace a program")
		}
	case "trap":
		r.trap(args)
	case "set", "shopt":
		r.shellOptions(name, args)
	case "jobs":
		r.commandOption(name, 'x', args)
	case "mapfile", "readarray":
		r.commandOption(name, 'C', args)
		r.variableNames(args)
	case "read", "wait", "unset", "getopts", "let", "test", "[":
		r.variableNames(args)
	case "printf":
		if len(args) > 0 && strings.HasPrefix(args[0].text, "-v") {
			r.variableNames(args)
		}
	default:
		return false
	}
	return true
}

// trap visits the commands of a trap.
func (r *reader) trap(args []word) {
	if first(args) == "--" {
		args = args[1:]
	}
	switch {
	case len(args) < 2 || args[0].known && listed(" - -l -p ", args[0].text):
	case args[0].known:
		r.script(args[0].text)
	default:
		r.markOpaque("trap runs what is only known when it runs")
	}
}

// commandOption finds the option of a builtin that runs a command, also in a
// bundle.
func (r *reader) commandOption(name string, letter rune, args []word) {
	if slices.ContainsFunc(args, func(w word) bool {
		return w.isOption() && (!w.known || strings.ContainsRune(w.text, letter)) || !w.known && (w.text == "" || w.text == "-")
	}) {
		r.skipWords(args, name+" -"+string(letter)+" runs commands")
	}
}

// shellOptions visits set and shopt. Some options change how bash parses the rest: it expands aliases, or accepts
// assignments after a program.
func (r *reader) shellOptions(name string, args []word) {
	for _, w := range args {
		if name == "set" && w.known && (w.text == "--" || w.text == "-") {
			return
		}
		switch {
		case !w.known:
			r.markOpaque("options of the shell that are only known when it runs: " + name + " " + w.show())
		case listed(" expand_aliases posix keyword histexpand history interactive_comments ", w.text), strings.HasPrefix(w.text, "compat"),
			name == "set" && w.isOption() && strings.Contains(w.text, "k"):
			r.markOpaque("an option changes how the shell parses commands: " + name + " " + w.show())
		}
	}
}

// launchVariables are patterns of variables that change which programs run, or what they run or load.
var launchVariables = strings.Fields(`
 PATH FPATH ENV BASH_* SHELL SHELLOPTS BASHOPTS POSIXLY_CORRECT PS0 PS1 PS2 PS4 PROMPT_COMMAND ZDOTDIR HOME LD LD_* DYLD_* GCONV_PATH
 *FLAGS *_OPTS *_OPTS_FILE *_ARGS *_OPTIONS *_CONFIG *_CONFIG_* *_HOME *PAGER *EDITOR *BROWSER *_ASKPASS *_RSH *_SSH *_SSH_COMMAND
 OPENSSL_* LESS* MAKEFILES GOENV GOROOT GOTOOL* PERL* RUBY* NODE_PATH LUA_INIT* JDK_* RUSTC* RUSTDOC* RUSTUP_* CARGO CARGO_*
 PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONUSERBASE PYTHONEXECUTABLE PYTHONWARNINGS PYTEST_ADDOPTS PYTEST_PLUGINS PIP_PYTHON
 GIT_CONFIG* GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ALLOW_PROTOCOL GIT_DIR GIT_COMMON_DIR GIT_PROXY_COMMAND *_EXTERNAL_DIFF XDG_* ZIP ZIPOPT UNZIP MANOPT
 *WGETRC GH_PATH GCC_EXEC_PREFIX COMPILER_PATH CLANG_* YARN_* CLASSPATH DOTNET_STARTUP_HOOKS CORECLR_* PHPRC PHP_INI_SCAN_DIR R_PROFILE* R_ENVIRON*
 GEM_PATH BUNDLE_* GROFF_* ACKRC KUBECONFIG TF_CLI_* HELM_PLUGINS ANSIBLE_* SCREENRC AWKPATH AWKLIBPATH VIMINIT EXINIT INPUTRC TERMINFO PAM_* FZF_*
 VISUAL FCEDIT HGMERGE RSYNC_CONNECT_PROG CC CXX CPP AR AS FC NM RANLIB STRIP OBJCOPY HOSTCC HOSTCXX GCCGO PKG_CONFIG npm_config_*`)

// isLaunchVariable reports whether a variable changes what programs run.
func isLaunchVariable(name string) bool {
	if strings.HasPrefix(strings.ToLower(name), "npm_config_") {
		return true
	}
	for _, pattern := range launchVariables {
		if matched, _ := path.Match(pattern, name); matched {
			return true
		}
	}
	return false
}

// isInteractive matches variables whose value agents often set to a program that
// does nothing, as in GIT_EDITOR=true.
var isInteractive = lazy(`(PAGER|EDITOR|VISUAL)$`)

// setVariable visits a variable that gets a value.
func (r *reader) setVariable(name string, value word) {
	if name == "IFS" && strings.ContainsFunc(value.text, func(c rune) bool { return c > '~' }) {
		r.markOpaque("bash cannot split words at this value of IFS")
	}
	harmless := value.known && slices.Contains([]string{"", ":", "cat", "true"}, value.text) && isInteractive.MatchString(name)
	switch {
	case harmless:
		r.run([]word{value})
	case isLaunchVariable(name):
		r.skipWords([]word{value}, name+" is set, which changes what runs")
	}
}

// changedVariable visits a variable that is set to a value that is not shown.
func (r *reader) changedVariable(name string) {
	if isLaunchVariable(name) {
		r.markOpaque(name + " is changed, which changes what runs")
	}
}

// assignments visits words like NAME=value.
func (r *reader) assignments(args []word) {
	for _, w := range args {
		if name, value, ok := strings.Cut(w.text, "="); ok && r.step(0) {
			r.setVariable(strings.TrimSuffix(name, "+"), word{text: value, known: w.known})
		}
	}
}

// variableNames visits words that name variables, as for read, unset and printf -v. The name may be in a bundle of
// options, as in read -raPATH. Bash evaluates a subscript of the name.
func (r *reader) variableNames(args []word) {
	for _, w := range args {
		name := w.text
		if end := strings.IndexAny(name, "[="); end >= 0 {
			name = name[:end]
		}
		r.changedVariable(name)
		for i := 2; w.isOption() && i < min(len(name), maxBundle); i++ {
			r.changedVariable(name[i:])
		}
		if w.known && hasSubstitution(w.text) {
			r.markOpaque("a quoted command, which bash may run when it evaluates the variable")
		}
	}
}

// maxBundle is the longest bundle of options before a name, with the dash.
const maxBundle = 8

// listed reports whether a list of names, with space around each, has a name.
func listed(list, name string) bool {
	if name == "" || strings.ContainsAny(name, " \n") {
		return false
	}
	return strings.Contains(list, " "+name+" ") || strings.Contains(list, " "+name+"\n")
}
