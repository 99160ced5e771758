package shell_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

// Whatever the line: no panic; reasons exactly when it is opaque; what follows
// on a line of its own is seen, or all is opaque; and what a line runs or hides
// it also runs or hides inside bash -c.
func FuzzRead(f *testing.F) {
	for _, line := range []string{
		`rm -rf /`, `ls | xargs -I{} sh -c 'rm {}'`, "cat <<'E'\n$(x)\nE", `sudo -u bob env A=b timeout 5 bash -lc "git push"`, `find . -exec rm {} \;`, `f() { "$@"; }; f rm`,
		`$'\x72m' x`, `{rm,-rf,/}`, `[[ a || b ]] && ((i++))`, `for x in *.go; do echo "${x%.go}"; done`, `case $1 in a|b) ls;; esac`, `git -c alias.x='!ls' x`, `sed 's/a/b/e;1e x' y`,
		`awk '{print | "sh"}' x`, `a[$(rm x)]=1`, "`ls`", `echo $((1 + $(ls)))`, `docker run -v "$PWD":/x y ls`, `python3 -m pytest`, `trap 'ls' EXIT`, `alias x=y`, `export A=b PATH=c`, `coproc x { ls; }`,
		`ls > >(tee x) 2>&1`, `! time -p ls`, `ls \`, `env -S 'a b'`, `ssh -p 1 x ls`, `tar -I zstd -xf x`, `make -f x`, `printf -v x y`, `read -r PATH`, `exec -a x y`, `xargs`, `"" ''`, `~`, `- -- -c`, "x\\\r", "x &>y z",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 4<<10 {
			return // the same, but slow
		}
		shell.Read(line, shell.POSIX)
		read := shell.Read(line, shell.Bash)
		if read.Opaque() != (len(read.Reasons()) > 0) {
			t.Fatal("a line is opaque without a reason, or the other way round")
		}
		followed(t, read, line)
		if !strings.ContainsAny(line, "\x00\r") && utf8.ValidString(line) {
			inside(t, read, line)
		}
	})
}

// followed holds a line to letting be seen what comes after it.
func followed(t *testing.T, read *shell.Line, line string) {
	if read.Opaque() || strings.HasSuffix(line, `\`) {
		return
	}
	if next := shell.Read(line+"\nxyzzy x", shell.Bash); !next.Opaque() && !next.Runs("xyzzy", "x") {
		t.Fatalf("what follows %q is not seen", line)
	}
}

// inside holds a line to being read alike inside bash -c.
func inside(t *testing.T, read *shell.Line, line string) {
	inner := shell.Read("bash -c -- '"+strings.ReplaceAll(line, "'", `'\''`)+"'", shell.Bash)
	if read.Opaque() && !inner.Opaque() {
		t.Fatalf("%q hides something, and not inside bash -c: %q", line, read.Reasons())
	}
	for _, program := range []string{"rm", "ls", "git", "x"} {
		if read.Runs(program) && !inner.Runs(program) {
			t.Fatalf("%q runs %s, and not inside bash -c", line, program)
		}
	}
}

// Lines that are made to be hard to read are read in bounded time and memory;
// what is nested too deep is opaque.
func TestHardLines(t *testing.T) {
	for _, piece := range []string{
		"$(", "(", "((", "$((", "{ ", "`", "if ", "! ", "\"$(", "${a:-", "<(", "f() ", "a|", "a&&", "a;", "a|a ", "[[ ( ", "((a?", "((-", "$((a[", "a[", "${a[", "x=", "sudo ", "strace sort ", "env -S ", "xargs ",
		"find -exec ", "sh -c ", "a=b ", "git -c a=b ", "{a,b}", "\\", "''", "$x ", "~ ", "cat <<E\n", "1+", "((1+", "$((1+1", "sed s/a/b/;", "[", "*", "$'\\x61'", "echo $((a)) ", "\"${a[@]}\" ",
		"#\\\n", "a #\\\n", "a\\\n#\n", "a <&-b ", "coproc a;", "sudo --x;", "ssh ", "ssh a;", "time -- a;", "a &\\\n& ", "$(<<E\nE\n)", "alias a=b;", "PATH=a ", "f(){ a;};", "read -aPATH ", "bash <<E\nE\n", "sed p;",
	} {
		for _, dialect := range []shell.Dialect{shell.Bash, shell.POSIX} {
			line := strings.Repeat(piece, shell.MaxLine/len(piece))
			shell.Read(line, dialect).Runs("rm", "-r", "x", "y")
		}
	}
	for _, pair := range [][2]string{{"$(", ")"}, {"(", ")"}, {"{ ", ";}"}, {"if ", ";then :;fi"}, {"\"$(", ")\""}, {"f() {", "\n}"}} {
		line := strings.Repeat(pair[0], 3000) + "rm x" + strings.Repeat(pair[1], 3000)
		if read := shell.Read(line, shell.Bash); !read.Opaque() || !read.Runs("rm") {
			t.Errorf("%s…: nested 3000 deep and read", pair[0])
		}
	}
}
