package git

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// attributePaths are what the attributes are tried on.
var attributePaths = []string{
	"a", "a.png", "a.PNG", "x y.png", "#x", "!x", `"q"`, "[attr]x", "{a,b}.png", "b/a.png", "b/c/a.png", "b/c/d/a.png", "src/img/a.png", "img/a.png", "img/deep/a.png", "é.png", "b", "-a",
}

func TestAttributesAreThoseOfGit(t *testing.T) {
	const lfs = " filter=lfs diff=lfs merge=lfs -text\n"
	cases := map[string]map[string]string{
		"a name":                             {".gitattributes": "a" + lfs},
		"a pattern":                          {".gitattributes": "*.png" + lfs},
		"another filter":                     {".gitattributes": "*.png filter=crypt\n"},
		"a later line wins":                  {".gitattributes": "*.png" + lfs + "a.png -filter\nb/*.png !filter\nb/c/*.png filter=other\n"},
		"a later line of other attributes":   {".gitattributes": "*.png" + lfs + "a.png text diff\n"},
		"a later attribute of a line wins":   {".gitattributes": "*.png filter=other filter=lfs\na.png filter=lfs -filter\n"},
		"a filter without a value":           {".gitattributes": "*.png filter\n"},
		"a filter with an empty value":       {".gitattributes": "*.png" + lfs + "a.png filter=\n"},
		"a filter that is unset with a name": {".gitattributes": "*.png" + lfs + "a.png -filter=lfs\n"},
		"anchored":                           {".gitattributes": "/a.png" + lfs + "/img/*" + lfs},
		"a slash inside":                     {".gitattributes": "img/*.png" + lfs},
		"two stars before":                   {".gitattributes": "**/img/*.png" + lfs},
		"two stars between":                  {".gitattributes": "b/**/a.png" + lfs},
		"two stars after":                    {".gitattributes": "img/**" + lfs},
		"a directory":                        {".gitattributes": "img/" + lfs + "b" + lfs},
		"all":                                {".gitattributes": "*" + lfs},
		"a pattern of letters":               {".gitattributes": "*.[pP][nN][gG]" + lfs},
		"a negative pattern":                 {".gitattributes": "*.png" + lfs + "!a.png -filter\n!x filter=lfs\n"},
		"a comment":                          {".gitattributes": "#x" + lfs + "  # a" + lfs},
		"an escaped comment":                 {".gitattributes": `\#x` + lfs + `\!x` + lfs},
		"spaces before":                      {".gitattributes": " \t*.png\t" + lfs},
		"in quotes":                          {".gitattributes": `"x y.png"` + lfs + `"\303\251.png"` + lfs},
		"quotes that do not end":             {".gitattributes": `"x y.png` + lfs + `"q"` + lfs},
		"quotes that are escaped":            {".gitattributes": `"\"q\""` + lfs},
		"quotes without a space behind":      {".gitattributes": `"a.png"filter=lfs` + "\n"},
		"classes with names":                 {".gitattributes": "x[[:space:]]y.png" + lfs},
		"braces are braces":                  {".gitattributes": "{a,b}.png" + lfs},
		"line breaks of Windows":             {".gitattributes": "*.png filter=lfs\r\n"},
		"no line break at the end":           {".gitattributes": "*.png filter=lfs"},
		"a byte order mark":                  {".gitattributes": "\ufeff*.png" + lfs},
		"a macro":                            {".gitattributes": "[attr]big" + lfs + "*.png big\na.png -big\nb/*.png !big\nimg/*.png big=1\n"},
		"a macro that is defined later":      {".gitattributes": "*.png big\n[attr]big" + lfs},
		"a macro without a name":             {".gitattributes": "[attr] big" + lfs + "*.png big\n"},
		"a macro that is defined twice":      {".gitattributes": "[attr]big filter=other\n[attr]big" + lfs + "*.png big\n"},
		"a macro in a macro":                 {".gitattributes": "[attr]big" + lfs + "[attr]huge big x\n*.png huge\n"},
		"a macro in itself":                  {".gitattributes": "[attr]big big filter=lfs\n*.png big\n"},
		"a macro against its line":           {".gitattributes": "[attr]big" + lfs + "a.png -filter big\nb/a.png big -filter\n"},
		"a macro after an own attribute":     {".gitattributes": "[attr]big" + lfs + "*.png big\na.png -filter\n"},
		"a macro that is unset later":        {".gitattributes": "[attr]big" + lfs + "*.png filter=lfs\na.png -big\n"},
		"the macro of git":                   {".gitattributes": "*.png" + lfs + "a.png binary\n"},
		"a macro below":                      {".gitattributes": "*.png big\n", "img/.gitattributes": "[attr]big" + lfs},
		"a directory's own":                  {".gitattributes": "*.png" + lfs, "b/.gitattributes": "*.png -filter\n/c/a.png filter=lfs\n", "img/.gitattributes": "deep/*" + lfs},
		"a directory's own, alone":           {"b/c/.gitattributes": "*.png" + lfs},
		"a name that is none":                {".gitattributes": "*.png filter=lfs a/b\na.png -- filter=lfs\nimg/*.png -- filter=lfs\n"},
		"a line that is too long":            {".gitattributes": "*.png filter=lfs " + strings.Repeat("x", 2048) + "\n"},
		"a line that is as long as may be":   {".gitattributes": "*.png filter=lfs " + strings.Repeat("x", 2047-len("*.png filter=lfs ")) + "\n"},
		"broken patterns":                    {".gitattributes": "[" + lfs + "*.png" + lfs},
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			want := gitFilters(t, files)
			for _, p := range attributePaths {
				var a attributes
				for dir := "."; ; {
					a = a.with(strings.TrimPrefix(dir, "."), []byte(files[path.Join(dir, attributesFile)]))
					rest := strings.TrimPrefix(strings.TrimPrefix(p, strings.TrimPrefix(dir, ".")), "/")
					next, _, deeper := strings.Cut(rest, "/")
					if !deeper {
						break
					}
					dir = path.Join(dir, next)
				}
				if got := a.filter(p); got != want[p] {
					t.Errorf("the filter of %q is %q, of git: %q", p, got, want[p])
				}
			}
		})
	}
}

// gitFilters returns the filters of git, of the paths that have one.
func gitFilters(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(in string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git: %v", err)
		}
		return string(out)
	}
	run("", "init", "-q")
	found := map[string]string{}
	fields := strings.Split(run(strings.Join(attributePaths, "\x00")+"\x00", "check-attr", "-z", "--stdin", "filter"), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if value := fields[i+2]; value != "unspecified" && value != "unset" && value != "set" {
			found[fields[i]] = value
		}
	}
	return found
}
