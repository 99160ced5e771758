package shell

import "strings"

// changing are variables that change which programs run, or what they run
// first. Those that end in an asterisk are prefixes.
const changing = ` PATH FPATH ENV BASH_ENV SHELL SHELLOPTS BASHOPTS BASH_ALIASES BASH_CMDS BASH_COMPAT POSIXLY_CORRECT BASH_FUNC_* PS0 PS1 PS2 PS4 PROMPT_COMMAND ZDOTDIR HOME
 LD_* DYLD_* GCONV_PATH OPENSSL_CONF OPENSSL_MODULES LESSOPEN LESSCLOSE MAKEFLAGS MAKEFILES GOFLAGS GOENV
 PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB PYTHONSTARTUP PYTHONHOME PYTHONINSPECT NODE_OPTIONS LUA_INIT* JAVA_TOOL_OPTIONS _JAVA_OPTIONS
 JDK_JAVA_OPTIONS RUSTC_WRAPPER RUSTC CARGO_BUILD_* CARGO_TARGET_* TAR_OPTIONS GIT_CONFIG* GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ALLOW_PROTOCOL
 GIT_DIR GIT_COMMON_DIR XDG_* ZIPOPT ZIP UNZIP MANOPT RIPGREP_CONFIG_PATH WGETRC SYSTEM_WGETRC CURL_HOME GH_CONFIG_DIR GH_PATH
 GNUMAKEFLAGS GOROOT GOTOOLCHAIN GOTOOLDIR CARGO CARGO_HOME CARGO_ALIAS_* RUSTC_* RUSTDOC RUSTFLAGS RUSTDOCFLAGS RUSTUP_* GCC_EXEC_PREFIX COMPILER_PATH
 CCC_OVERRIDE_OPTIONS CLANG_CONFIG_FILE* NODE_PATH PYTHONBREAKPOINT PYTHONUSERBASE PYTHONEXECUTABLE PYTHONWARNINGS PYTEST_ADDOPTS PYTEST_PLUGINS PIP_PYTHON
 PIP_CONFIG_FILE YARN_* JAVA_HOME JAVA_OPTS CLASSPATH MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS GRADLE_USER_HOME ANT_OPTS ANT_ARGS DOTNET_STARTUP_HOOKS CORECLR_*
 PHPRC PHP_INI_SCAN_DIR R_PROFILE* R_ENVIRON* ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS GEM_HOME GEM_PATH BUNDLE_* LESSKEY* LESS_ADVANCED_PREPROCESSOR GROFF_* FZF_DEFAULT_OPTS* BAT_CONFIG_PATH
 BAT_OPTS ACKRC ACK_OPTIONS DOCKER_CONFIG KUBECONFIG AWS_CONFIG_FILE TF_CLI_* HELM_PLUGINS HELM_DATA_HOME ANSIBLE_* SCREENRC
 npm_config_* NPM_CONFIG_* AWKPATH AWKLIBPATH VIMINIT EXINIT INPUTRC TERMINFO BUNDLE_GEMFILE PAM_* `

// commanding are variables whose value is a command line for a program.
const commanding = ` PAGER MANPAGER GIT_PAGER GH_PAGER SYSTEMD_PAGER AWS_PAGER BAT_PAGER EDITOR VISUAL FCEDIT GIT_EDITOR GIT_SEQUENCE_EDITOR
 KUBE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF KUBECTL_EXTERNAL_DIFF RSYNC_RSH
 CVS_RSH BROWSER RSYNC_CONNECT_PROG GH_BROWSER GH_EDITOR SUDO_EDITOR SVN_EDITOR SVN_SSH HGEDITOR HGMERGE BAT_PAGER ACK_PAGER DELTA_PAGER SYSTEMD_EDITOR
 FZF_DEFAULT_COMMAND FZF_CTRL_T_COMMAND CC CXX CPP LD AR AS FC NM RANLIB STRIP OBJCOPY HOSTCC HOSTCXX GCCGO PKG_CONFIG `

// compiling are variables whose value is options for a compiler.
const compiling = " CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CGO_CFLAGS CGO_CXXFLAGS CGO_CPPFLAGS CGO_LDFLAGS "

// set looks at a variable that is given a value.
func (r *reader) set(name string, value word) {
	if name == "IFS" && strings.ContainsFunc(value.text, func(c rune) bool { return c > '~' }) {
		r.hide("IFS is set to what bash cannot split words at")
	}
	if listed(compiling, name) || name == "LESS" {
		r.options(name, value)
		return
	}
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

// options looks at a variable that holds options for a program.
func (r *reader) options(name string, value word) {
	var words []word
	for field := range strings.FieldsSeq(value.text) {
		words = append(words, literal(field))
	}
	switch {
	case !value.known:
		r.hide("programs run with the options in " + name)
	case name == "LESS":
		r.pager("less", words)
	default:
		r.compile("the compiler", words)
	}
}

// variable looks at a variable whose value is changed in a way not shown.
func (r *reader) variable(name string) {
	if covered(changing, name) || listed(commanding, name) || strings.HasPrefix(strings.ToLower(name), "npm_config_") {
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
