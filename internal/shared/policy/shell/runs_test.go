package shell_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

// A line runs what is wanted, and is opaque where that is said.
type expectation struct {
	line   string
	runs   string // a program and words, with spaces between
	opaque bool
}

func check(t *testing.T, dialect shell.Dialect, want expectation) {
	t.Helper()
	line := shell.Read(want.line, dialect)
	wanted := strings.Fields(want.runs)
	if len(wanted) > 0 && !line.Runs(wanted[0], wanted[1:]...) {
		t.Errorf("%q does not run %s", want.line, want.runs)
	}
	if line.Opaque() != want.opaque {
		t.Errorf("%q: Opaque() = %t: %q", want.line, line.Opaque(), line.Reasons())
	}
}

func TestRunsWherever(t *testing.T) {
	cases := map[string]string{
		"alone":                        `rm -rf /`,
		"by path":                      `/bin/rm x`,
		"by another path":              `/usr/bin/rm x`,
		"in a list":                    `ls; rm x`,
		"after and":                    `ls && rm x`,
		"after or":                     `ls || rm x`,
		"in a pipe":                    `ls | rm x`,
		"in a pipe of both":            `ls |& rm x`,
		"in the background":            `rm x & ls`,
		"on a line of its own":         "ls\nrm x",
		"continued":                    "r\\\nm x",
		"negated":                      `! rm x`,
		"timed":                        `time rm x`,
		"timed, portably":              `time -p rm x`,
		"in a subshell":                `(cd x; rm y)`,
		"in braces":                    `{ rm x; }`,
		"in if":                        `if rm x; then ls; fi`,
		"in then":                      `if ls; then rm x; fi`,
		"in elif":                      `if ls; then :; elif rm x; then :; fi`,
		"in else":                      `if ls; then :; else rm x; fi`,
		"in while":                     `while rm x; do :; done`,
		"in do":                        `for x in a b; do rm $x; done`,
		"in a loop over numbers":       `for ((i=0;i<3;i++)); do rm $i; done`,
		"in until":                     `until rm x; do :; done`,
		"in select":                    `select x in a b; do rm $x; done`,
		"in a case":                    `case x in a) ls;; *) rm x;; esac`,
		"in a pattern of a case":       `case x in $(rm x)) ls;; esac`,
		"in a substitution":            `echo $(rm x)`,
		"in backquotes":                "echo `rm x`",
		"in nested backquotes":         "echo `echo \\`rm x\\``",
		"in double quotes":             `echo "a $(rm x) b"`,
		"in an assignment":             `a=$(rm x)`,
		"in an array":                  `a=(1 $(rm x))`,
		"in a subscript":               `a[$(rm x)]=1`,
		"in arithmetic":                `echo $((1 + $(rm x)))`,
		"in an arithmetic command":     `((a = $(rm x)))`,
		"in a default":                 `echo ${a:-$(rm x)}`,
		"in a replacement":             `echo ${a/b/$(rm x)}`,
		"in a slice":                   `echo ${a:$(rm x):1}`,
		"in a process substitution":    `cat <(rm x)`,
		"in one that is written to":    `ls > >(rm x)`,
		"in a test":                    `[[ -n $(rm x) ]]`,
		"after a test":                 `[[ -f x ]] && rm x`,
		"in a here-document":           "cat <<E\n$(rm x)\nE",
		"after a here-document":        "cat <<'E'\nrm\nE\nrm x",
		"in a here-string":             `cat <<< $(rm x)`,
		"in a redirection":             `ls > $(rm x)`,
		"after a redirection":          `>/dev/null rm x`,
		"after an assignment":          `A=b C=d rm x`,
		"with quotes in its name":      `r"m" x`,
		"with quotes around its name":  `'rm' x`,
		"with double quotes":           `"rm" x`,
		"with empty quotes":            `r''m x`,
		"with a backslash":             `\rm x`,
		"with backslashes":             `\r\m x`,
		"with C quotes":                `$'rm' x`,
		"with hexadecimal quotes":      `$'\x72\x6d' x`,
		"with octal quotes":            `$'\162\155' x`,
		"with Unicode quotes":          `$'\u0072\U0000006d' x`,
		"with translated quotes":       `$"rm" x`,
		"through env":                  `env rm x`,
		"through env by path":          `/usr/bin/env rm x`,
		"through env and variables":    `env -u C -i A=b rm x`,
		"through sudo":                 `sudo rm x`,
		"through sudo as somebody":     `sudo -u bob -n rm x`,
		"through sudo and a variable":  `sudo A=b rm x`,
		"through sudo with a bundle":   `sudo -nEu bob rm x`,
		"through nice":                 `nice -n 5 rm x`,
		"through old nice":             `nice -5 rm x`,
		"through nohup":                `nohup rm x &`,
		"through the program time":     `/usr/bin/time -f %e rm x`,
		"through timeout":              `timeout 5 rm x`,
		"through timeout with options": `timeout -k 1 -s KILL 5s rm x`,
		"through command":              `command rm x`,
		"through command -p":           `command -p rm x`,
		"through exec":                 `exec rm x`,
		"through exec -a":              `exec -a ls rm x`,
		"through builtin exec":         `builtin exec rm x`,
		"through several":              `sudo env A=b nice timeout 5 nohup rm x`,
		"through xargs":                `ls | xargs rm`,
		"through xargs with options":   `ls | xargs -0 -n 1 -P4 rm -f`,
		"through xargs -I":             `ls | xargs -I{} rm {}`,
		"through find":                 `find . -name x -exec rm {} \;`,
		"through find +":               `find . -exec rm {} +`,
		"through find -execdir":        `find . -execdir rm {} \;`,
		"through find -ok":             `find . -ok rm {} ';'`,
		"through find's second":        `find . -exec ls {} \; -exec rm {} \;`,
		"through find and env":         `find . -exec env A=b rm {} \;`,
		"through sh -c":                `sh -c 'rm x'`,
		"through bash -c":              `bash -c "rm x"`,
		"through bash -lc":             `bash -lc 'ls; rm x'`,
		"through options after -c":     `bash -c -x 'rm x'`,
		"through dash in sh":           `sh -c 'dash -c "rm x"'`,
		"through zsh":                  `/bin/zsh -c 'rm x'`,
		"through sh with words":        `sh -c 'rm "$1"' _ x`,
		"through a trap":               `trap 'rm x' EXIT`,
		"through python -m":            `python3 -m pytest; rm x`,
		"after a comment":              "ls # hello\nrm x",
		"after a quote with a hash":    `echo '#'; rm x`,
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			check(t, shell.Bash, expectation{line, "rm", false})
		})
	}
}

// A program that is run by another one that is not followed, or in a construct that
// is not, is found, and the line is opaque.
func TestRunsInSkippedParts(t *testing.T) {
	cases := map[string]string{
		"in a function":                `f() { rm x; }`,
		"in let":                       `let a=$(rm x)`,
		"in a function of bash":        `function f { rm x; }`,
		"in a function in a subshell":  `f() (rm x)`,
		"in a named coprocess":         `coproc N { rm x; }`,
		"through env in another place": `env --chdir=/tmp -- rm x`,
		"through sudo's long options":  `sudo --user=bob --preserve-env rm x`,
		"through doas":                 `doas -u bob rm x`,
		"through stdbuf":               `stdbuf -oL rm x`,
		"through setsid":               `setsid -w rm x`,
		"through ionice":               `ionice -c 3 rm x`,
		"through chroot":               `chroot /x rm x`,
		"through more options":         `bash --norc -euo pipefail -c 'rm x'`,
		"through an option after -c":   `sh -c -i 'rm -rf x'`,
		"through one that is not set":  `sh -c +x 'rm -rf x'`,
		"through two after -c":         `bash -c -e +o pipefail 'rm x'`,
		"through busybox":              `busybox rm x`,
		"through busybox sh":           `busybox sh -c 'rm x'`,
		"through toybox":               `toybox rm x`,
		"through an alias":             `alias x='rm -rf'`,
		"through strace":               `strace -f -o out rm x`,
		"through watch":                `watch -n 1 rm x`,
		"through a line for watch":     `watch -n 1 'ls; rm x'`,
		"through su":                   `su bob -c 'rm x'`,
		"through flock":                `flock l rm x`,
		"through flock -c":             `flock l -c 'rm x'`,
		"through setpriv":              `setpriv --reuid=1 rm x`,
		"through unshare":              `unshare -r rm x`,
		"through the loader":           `/lib64/ld-linux-x86-64.so.2 /bin/rm x`,
		"through parallel":             `parallel rm ::: a b`,
		"through a watcher in a watch": `watch 'strace rm x'`,
		"through an unknown option":    `timeout --new-option 5 rm x`,
		"through docker":               `docker run --rm alpine rm x`,
		"through kubectl":              `kubectl exec pod -- rm x`,
		"through ssh":                  `ssh -p 22 host rm x`,
		"through a line for ssh":       `ssh host 'cd /; rm x'`,
		"through tar":                  `tar xf x --to-command='rm x'`,
		"through a checkpoint of tar":  `tar cf x y --checkpoint=1 --checkpoint-action=exec='rm x'`,
		"through a versioned perl":     `perl5.36 -e 'exec("rm x")'`,
		"through nc":                   `nc -e rm h x`,
		"through socat":                `socat - EXEC:'rm x'`,
		"through sshpass":              `sshpass -p y rm x`,
		"through setuidgid":            `setuidgid u rm x`,
		"through runcon":               `runcon -t y rm x`,
		"through cmake":                `cmake -E env rm x`,
		"through rpm":                  `rpm --eval '%(rm x)'`,
		"in a versioned bash":          `bash5.2 -c 'rm x; ./y'`,
		"through rsync":                `rsync -e 'rm x' a b:c`,
		"through git rebase":           `git rebase -x 'rm x' main`,
		"through git bisect":           `git bisect run rm x`,
		"through git submodule":        `git submodule foreach 'rm x'`,
		"through a variable for git":   `GIT_SSH_COMMAND='rm x' git fetch`,
		"through a pager":              `PAGER='rm x' man ls`,
		"through sort":                 `sort --compress-program=rm x`,
		"through split":                `split --filter='rm x' y`,
		"through uv":                   `uv run rm x`,
		"through npx":                  `npx --yes rm x`,
		"through jobs":                 `jobs -x rm x`,
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			check(t, shell.Bash, expectation{line, "rm", true})
		})
	}
}

func TestRunsAndOpaque(t *testing.T) {
	cases := []string{ // what is hidden does not hide what is there
		`env -S 'rm x'`, `env '-Srm x'`, `env -vS 'rm x'`, `$x rm y`, `"$@" rm x`, `{rm,-rf,/}`, `sudo $opts rm x`, `timeout $t rm x`, `eval 'rm x'`, `eval rm x`,
		`./rm x`, `cd /bin && ./rm x`, `~/rm x`, `PATH=/tmp:$PATH rm x`, `bash <<'E'` + "\nrm x\nE", `sh <<< 'rm x'`, `LD_PRELOAD=./x.so rm x`, `xargs --new rm x`, `ls | xargs -I% sh -c 'cat %; rm x'`,
		`alias ls='rm x'`, `coproc rm x`, `ls() { rm x; }; ls`, `git() { command git "$@"; }; rm x`, `bash --rcfile x -c 'rm x'`, `bash $o -c 'rm x'`, `awk 'BEGIN{system("x")}'; rm x`,
		"ls\r\nrm x\r\n", "ls \\\r\nrm x", "rm x; (", "if rm x", `rm "x`, "rm x\n)", "r\x00m x", "rm \xff", `find $x -exec rm {} \;`, `sudo -s; rm x`, `find . -exec sh -c 'rm {}' \;`, `perl -e 'x' ; rm x`,
		`strace python3 x.py; rm x`, `flock /tmp/l rm x`, `docker run -v /:/x alpine rm x`, `yes | sudo -S bash -c 'rm x; bash y.sh'`, "cat <<$'E'\nE\nrm x\n$E\n", `[[ -v 'a[$(x)]' ]] && rm x`, strings.Repeat("(", 2000) + "rm x",
		strings.Repeat("echo $(", 500) + "rm x" + strings.Repeat(")", 500), strings.Repeat("rm x;", 20000), strings.Repeat("strace ", 9000) + "rm x",
	}
	for _, line := range cases {
		t.Run(line[:min(len(line), 30)], func(t *testing.T) {
			check(t, shell.Bash, expectation{line, "rm", true})
		})
	}
}

func TestDoesNotRun(t *testing.T) {
	cases := []string{
		``, ` `, "\n", `# rm x`, `echo rm`, `echo 'rm x'`, `echo "rm x"`, `grep -rn rm .`, `cat <<'E'` + "\nrm x\n$(rm x)\nE", `rmdir x`, `ls rm`, `git rm x`, `type rm`,
		`command -v rm`, `command -V rm`, `which rm`, `A=rm ls`, `a=rm`, `for rm in x; do ls; done`, `case rm in rm) ls;; esac`, `ls > rm`, `[[ rm == rm ]]`, `[ rm = rm ]`,
		`sudo -u rm ls`, `timeout 5 ls rm`, `nice -n 5 ls rm`, `env -u rm ls`, `xargs -I rm ls`, `find . -name rm`, `sh -c 'ls' rm`, `docker ps rm`, `git commit -m 'rm x'`,
		`echo "\$(rm)"`, "echo '`rm`'", `printf '%s\n' rm`, `awk '{print $1}' rm`, `sed -n 's/rm/x/p' rm`, `trap '' INT`, `trap - EXIT`, `export rm=1`,
		`python3 -m pytest -k rm`, `make rm`, `npm run rm`, `alias`, `cat rm | head`, `diff <(ls) rm`, `echo ${rm}`, `echo $((rm + 1))`, `cd rm && ls`, `tee rm < x`,
	}
	for _, line := range cases {
		t.Run(line, func(t *testing.T) {
			read := shell.Read(line, shell.Bash)
			if read.Runs("rm") {
				t.Errorf("%q runs rm", line)
			}
			if read.Opaque() {
				t.Errorf("%q is opaque: %q", line, read.Reasons())
			}
		})
	}
}
