package shell_test

import "strings"

// definition writes aliases and what makes bash expand them.
func (g *grammar) definition() {
	if g.choices(3) > 0 {
		g.put(g.pick("shopt -s expand_aliases", "shopt -s extglob", "set -o posix", "shopt -s nullglob", "set -f", "set +B", "set -k", "shopt -s lastpipe", "set -o history; set -H", "shopt -u interactive_comments", "shopt -so posix", "POSIXLY_CORRECT=1", "BASH_COMPAT=3.1", "shopt -s compat31", "set -e", "set -n", "set -u", "set -a", "set --", "set -x", "set -o histexpand", "set -H", "shopt -s expand_aliases extglob", "set -vH", "set +o posix", "export POSIXLY_CORRECT"))
		g.put(g.pick("; ", "\n"))
	}
	g.put("alias ", g.pick("k", "ll", "aa", "oo", "x", "if", "-p k", "--  k"), "=")
	g.put(g.pick("ff", "'ff x'", "'ff '", "'ff # '", "'ff #\\'", `$'ff\ncc'`, "'ff\ncc'", "'ff; cc'", `'ff "'`, "'if'", "'ff |'", `"ff 'x"`, `'ff \'`, "'#'", "''", "' '", "'ff <<E'", "'ff ('", "'{ ff;'", "'('", "'case x in x)'", "'ff $('", "'time '", "'! '", "'x=1 '", "'>out '", "'ff &&'", "$x", "ff\\\ncc", "'function f'", "'[['", "gg", "'gg '", "'for x in a; do'", `'\ff'`, "'ff & '", "'`ff'"))
	g.newline()
	g.flush()
	g.put(g.pick("k", "ll x", "aa", "oo x", "k push", "k ll", "k aa", "k; cc", "if", "x", "k -r", "k)", "k }", "k\ncc", "k '", "k \"\nrr\n\"", "k\nE\n", "k #\ncc"))
}

// nested writes what evaluates text.
func (g *grammar) nested() {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	inner := &grammar{choices: g.choices, depth: g.depth + 1}
	inner.list(2)
	inner.flush()
	text := quoted(inner.text.String())
	g.put(g.pick("eval ", "trap ", "eval -- ", "trap -- "), text, g.pick(" EXIT", "", " DEBUG", " 0", " RETURN ERR"))
}

// builtinOptions writes builtins that run commands, or evaluate subscripts, by an
// option: by itself, in a bundle, with its value, among others.
func (g *grammar) builtinOptions() {
	callback := g.pick("aa", "'aa x'", "ff", "$x", "'a[$(aa)]'")
	g.put(g.pick(
		"mapfile -C "+callback+" -c1 x <<< x", "mapfile -tC "+callback+" -c1 x <<< x", "mapfile -tC"+callback+" -c1 x <<< x", "readarray -c1 -tC "+callback+"<<<x",
		"mapfile -n1 -tC"+callback+" -c1 x <<< x", "mapfile -d x -C "+callback+" -c 1 y <<< x", "readarray -s0 -c1 -C"+callback+" x <<< x", "mapfile -t "+callback+" <<< x",
		"read "+callback+" <<< x", "read -ra "+callback+" <<< x", "read -ra"+callback+" <<< x", "read -r -d '' "+callback+" <<< x", "wait -np "+callback, "wait -np"+callback,
		"printf -v "+callback+" x", "printf -v"+callback+" x", "test -v "+callback, "[ -v "+callback+" ]", "test ! -v "+callback, "[ "+callback+" -eq 1 ]", "let "+callback, "unset "+callback, "unset -v "+callback,
		"compgen -W "+callback, "compgen -C "+callback+" x", "compgen -aC"+callback+" x", "compgen -F "+callback+" x", "complete -C "+callback+" x", "hash aa", "hash -p x aa; aa", "enable -n test; test x",
		"jobs -x "+callback, "jobs -rx "+callback+" x", "jobs -x -- "+callback, "jobs -x -r "+callback, "exec -cla x "+callback, "exec -lax "+callback, "exec -a x -c "+callback, "command -p "+callback, "command -pv "+callback,
		"builtin command "+callback, "builtin -- eval "+callback, "getopts a "+callback+" -a", "trap -- "+callback+" EXIT", "set -o history; history -s "+callback+"; fc -s", "fc", "declare -gn y="+callback, "declare -i y="+callback, "coproc "+callback,
		"bind -x '\"a\":"+callback+"'", "alias k="+callback, "history -p "+callback, "command eval "+callback, "command . "+callback, "source "+callback,
	))
}

// odd writes what is hardly ever written.
func (g *grammar) odd() {
	g.put(g.pick("declare x=y", "declare -a x=(a # b\n)", "export x=$(aa)", "local x", "readonly y=1", "typeset x", "declare -A m=([a]=b)", "unset x", ": ${x:=y}", "set -- a b", "shift", "return", "break", ": # x",
		"wait", "declare x=(\n# it's \\\naa\n)", "a=(b\n#\\\naa\n)", "export -f f", "declare -f", "exit", "x=1 y=2", "a+=(b)", "{fd}>out", "<out", ">out", "export $(aa)", "declare \"x=$(aa)\"", "time", "!", "! ", "{ }", "()", "{aa,ff}", "{ aa; } ff", "(aa) ff",
		"aa() ff", "$x", "$(aa) x", "\"$(aa)\"", "*", "[a]", "a[0]=$(aa)", "x=`aa`", "if", "fi", "in", "in x", "] x", "]] x", "{x", "}x", "!x", "!!", "!aa", "^aa^ff", "function", "coproc", "time -x aa", "-- aa", "esac x",
		"aa $'a' 'b'", "printf %s x", "builtin printf x", "command", "builtin", "exec", "exec >out", "exec 2>&1"))
}
