package git

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// paths are what the rules are tried on; a directory ends in a slash.
var paths = []string{
	"a", "a.log", "b/", "b/a", "b/a.log", "b/c/", "b/c/a", "b/c/d/", "b/c/d/a", "build/", "build/x", "src/", "src/build/", "src/build/x", "src/build.go",
	"foo/", "foo/keep", "foo/bar", "#x", "!x", "x ", "{a,b}", "[z]", "é", "target", "doc/", "doc/target/", "doc/target/x", "doc/a.txt", "doc/sub/", "doc/sub/a.txt", "x1", "x2", "xa", ".hidden", "b/.hidden",
}

func TestRulesAreThoseOfGit(t *testing.T) {
	cases := map[string]map[string]string{
		"names":                         {".gitignore": "a\n"},
		"patterns":                      {".gitignore": "*.log\n"},
		"what is not ignored after all": {".gitignore": "*.log\n!a.log\nb/*\n!b/c/\n"},
		"directories only":              {".gitignore": "build/\ntarget/\n"},
		"anchored":                      {".gitignore": "/build\n/a\n"},
		"with a slash inside":           {".gitignore": "b/a\nsrc/build\n"},
		"two stars before":              {".gitignore": "**/build\n**/d/a\n"},
		"two stars between":             {".gitignore": "b/**/a\n"},
		"two stars after":               {".gitignore": "foo/**\n!foo/keep\n"},
		"two stars that are one":        {".gitignore": "b**\nfo**o\n"},
		"only stars":                    {".gitignore": "*\n!*/\n!*.go\n"},
		"comments and escapes":          {".gitignore": "# a\n\\#x\n\\!x\n\n   \n"},
		"spaces at the end":             {".gitignore": "a   \nx\\ \n"},
		"line breaks of Windows":        {".gitignore": "a\r\n*.log\r\n"},
		"a byte order mark":             {".gitignore": "\ufeffa\n"},
		"braces are braces":             {".gitignore": "{a,b}\n"},
		"classes":                       {".gitignore": "[ab]\nx[0-9]\n"},
		"classes turned round":          {".gitignore": "x[!0-9]\n"},
		"classes with names":            {".gitignore": "x[[:digit:]]\n[[:upper:][:punct:]]x\n"},
		"classes of punctuation":        {".gitignore": "[[:punct:]]x\nx[[:blank:]]\n"},
		"one character":                 {".gitignore": "x?\n"},
		"dots are no exception":         {".gitignore": "*hidden\n"},
		"a directory's own":             {".gitignore": "*.txt\n", "doc/.gitignore": "!a.txt\n/target\n"},
		"a directory's own, deeper":     {"doc/.gitignore": "sub/a.txt\n*.txt\n!/a.txt\n", "b/.gitignore": "c/\n"},
		"broken patterns":               {".gitignore": "[\n*.log\n\\\n"},
		"a slash alone":                 {".gitignore": "/\n//\n"},
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want := gitIgnores(t, dir)
			for _, p := range paths {
				p = strings.TrimSuffix(p, "/")
				if got := rulesIgnore(files, p); got != want[p] {
					t.Errorf("%q is ignored: %v, of git: %v", p, got, want[p])
				}
			}
		})
	}
}

// gitIgnores are the paths that git ignores, of those that are made there.
func gitIgnores(t *testing.T, dir string) map[string]bool {
	t.Helper()
	for _, p := range paths {
		at := filepath.Join(dir, p)
		if strings.HasSuffix(p, "/") {
			_ = os.MkdirAll(at, 0o700)
			continue
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(in string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
			t.Fatalf("git: %v", err)
		}
		return string(out)
	}
	run("", "init", "-q")
	all, asked := map[string]bool{}, strings.ReplaceAll(strings.Join(paths, "\x00"), "/\x00", "\x00")
	for p := range strings.SplitSeq(run(asked, "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
		all[p] = true
	}
	return all
}

// rulesIgnore walks down to a path as a snapshot does.
func rulesIgnore(files map[string]string, p string) bool {
	var r rules
	dir := ""
	for rest := p; ; {
		r = r.with(dir, []byte(files[path.Join(dir, ignoreFile)]))
		name, below, deeper := strings.Cut(rest, "/")
		at := path.Join(dir, name)
		mode := fs.ModeDir
		if !deeper && !isDirectory(p) {
			mode = 0
		}
		if r.ignore(at, mode) {
			return true
		}
		if !deeper {
			return false
		}
		dir, rest = at, below
	}
}

func isDirectory(p string) bool { return slices.Contains(paths, p+"/") }
