package shell

import "strings"

// interpreters are programs that run code: of a file, of an option, of their
// input. Nothing here reads that code.
const interpreters = ` pypy pypy3 ipython ipython3 bpython jupyter-run perl perl5 ruby jruby irb node nodejs deno bun ts-node tsx php php-cgi lua luajit
 tclsh wish expect Rscript R julia octave octave-cli matlab ghci runghc runhaskell ocaml elixir iex escript erl racket guile sbcl clisp ecl scheme
 clojure clj bb groovy groovysh kotlin scala jshell java javaw dotnet dotnet-script csi mono pwsh powershell osascript fish csh tcsh nu xonsh elvish
 rc es vi vim vimdiff view nvim ex ed emacs emacsclient nano pico gdb lldb at batch crontab screen tmux m4 dc bc gnuplot psql mysql sqlite3 swipl
 gprolog coffee qjs d8 wasmtime wasmer swift crystal nim v zx cscript ansible ansible-playbook rundll32 debugfs gawk-exec sh-exec ptrace dtrace bpftrace `

// harmless are the first words with which an interpreter runs no code that
// somebody wrote for it.
var harmless = map[string]string{
	"bun":     " install add remove ",
	"deno":    " fmt lint check types ",
	"dotnet":  " build test restore format clean ",
	"node":    " --check ",
	"php":     " -l ",
	"ruby":    " -c ",
	"crontab": " -l ",
	"tmux":    " ls list-sessions kill-session kill-server ",
	"screen":  " -ls -list ",
}

// modules are the modules of Python that are programs like others.
const modules = ` pytest unittest pip venv virtualenv ensurepip json.tool http.server py_compile compileall black ruff mypy flake8 pylint isort pyright build twine
 coverage tox nox doctest pdm poetry uv pre_commit zipfile tarfile calendar sysconfig site platform `

// interpreter looks at programs that run code, and reports whether this is one.
func (r *reader) interpreter(name string, args []word) bool {
	if python(name) {
		r.python(name, args)
		return true
	}
	if !listed(interpreters, name) {
		return false
	}
	if len(args) == 1 && informs(args[0]) || listed(harmless[name], first(args)) {
		return true
	}
	if name == "bc" && len(args) == 0 || name == "dc" && len(args) == 0 {
		return true // arithmetic
	}
	r.hide(name + " runs code that is not a command line")
	r.tryAll(args)
	return true
}

// python reports whether a program is a Python, of whatever version.
func python(name string) bool {
	version, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(version, "0123456789.tw") == ""
}

// python looks at Python: its modules that are tools are programs.
func (r *reader) python(name string, args []word) {
	for len(args) > 0 && args[0].known && listed(" -u -B -I -E -s -S -O -OO -q -v -b -bb ", args[0].text) {
		args = args[1:]
	}
	switch {
	case len(args) == 1 && informs(args[0]):
	case len(args) > 1 && args[0].text == "-m" && args[1].known && listed(modules, args[1].text):
		r.run(args[1:])
	default:
		r.hide(name + " runs code that is not a command line")
	}
}
