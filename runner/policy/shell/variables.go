package shell

import "strings"

// changing are variables that change which programs run, or what they run
// first. Those that end in an asterisk are prefixes.
const changing = ` PATH FPATH ENV BASH_ENV SHELL SHELLOPTS BASHOPTS BASH_FUNC_* PS0 PS1 PS2 PS4 PROMPT_COMMAND ZDOTDIR HOME
 LD_* DYLD_* GCONV_PATH OPENSSL_CONF OPENSSL_MODULES LESSOPEN LESSCLOSE MAKEFLAGS MAKEFILES GOFLAGS GOENV
 PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB PYTHONSTARTUP PYTHONHOME PYTHONINSPECT NODE_OPTIONS LUA_INIT* JAVA_TOOL_OPTIONS _JAVA_OPTIONS
 JDK_JAVA_OPTIONS RUSTC_WRAPPER RUSTC CARGO_BUILD_* CARGO_TARGET_* TAR_OPTIONS GIT_CONFIG* GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ALLOW_PROTOCOL
 npm_config_* NPM_CONFIG_* AWKPATH AWKLIBPATH VIMINIT EXINIT INPUTRC TERMINFO BUNDLE_GEMFILE PAM_* `

// commanding are variables whose value is a command line for a program.
const commanding = ` PAGER MANPAGER GIT_PAGER GH_PAGER SYSTEMD_PAGER AWS_PAGER BAT_PAGER EDITOR VISUAL FCEDIT GIT_EDITOR GIT_SEQUENCE_EDITOR
 KUBE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF KUBECTL_EXTERNAL_DIFF RSYNC_RSH
 CVS_RSH BROWSER `

// set looks at a variable that is given a value.
func (r *reader) set(name string, value word) {
	if !listed(commanding, name) {
		r.variable(name)
		return
	}
	if !value.known {
		r.hide("programs run what is in " + name)
		return
	}
	r.script(value.text)
}

// variable looks at a variable whose value is changed in a way not shown.
func (r *reader) variable(name string) {
	if covered(changing, name) || listed(commanding, name) {
		r.hide(name + " is changed, which changes what runs")
	}
}

// names looks at words that name variables: of read, unset, printf -v.
func (r *reader) names(args []word) {
	for _, w := range args {
		name, _, _ := strings.Cut(w.text, "[")
		r.variable(name)
		if w.known && substitutes(w.text) {
			r.hide("a command that is kept as text, which bash may run when it reads the variable")
		}
	}
}

// pairs looks at words like NAME=value, wherever a program takes them.
func (r *reader) pairs(args []word) {
	for _, w := range args {
		if name, value, ok := strings.Cut(w.text, "="); ok {
			r.set(strings.TrimSuffix(name, "+"), word{text: value, known: w.known})
		} else if w.known && !w.flag() {
			r.variable(w.text)
		}
	}
}

// listed reports whether a list of names, with space around each, has a name.
func listed(list, name string) bool {
	if name == "" || strings.ContainsAny(name, " *\n") {
		return false
	}
	return strings.Contains(list, " "+name+" ") || strings.Contains(list, " "+name+"\n")
}

// covered is listed for lists in which a name may end in an asterisk.
func covered(list, name string) bool {
	if listed(list, name) {
		return true
	}
	for entry := range strings.FieldsSeq(list) {
		prefix, ok := strings.CutSuffix(entry, "*")
		if ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
