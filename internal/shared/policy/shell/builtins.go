package shell

import (
	"path"
	"slices"
	"strings"
)

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
