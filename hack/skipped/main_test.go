package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// repository has tests in its root, in packages and in a module below it.
var repository = fstest.MapFS{
	"go.mod":                     {Data: []byte("module example.com/x\n\ngo 1.26\n")},
	"root_test.go":               {Data: []byte("package x\n\nfunc TestRoot(t *testing.T) {}\n")},
	"a/a_test.go":                {Data: []byte("package a\n\nfunc TestA(t *testing.T) {}\n")},
	"a/bench_test.go":            {Data: []byte("package a\n\nfunc BenchmarkA(b *testing.B) {}\n")},
	"b/b_test.go":                {Data: []byte("package b\n\nfunc BenchmarkB(b *testing.B) {}\n")},
	"b/testdata/x/x_test.go":     {Data: []byte("package x\n\nfunc TestX(t *testing.T) {}\n")},
	"c/c.go":                     {Data: []byte("package c\n")},
	"tagged/tagged_test.go":      {Data: []byte("//go:build e2e\n\npackage tagged\n\nfunc TestTagged(t *testing.T) {}\n")},
	"below/go.mod":               {Data: []byte("module example.org/below\n")},
	"below/deep/deep_test.go":    {Data: []byte("package deep\n\nfunc TestDeep(t *testing.T) {}\n")},
	"bin/tools/tools_test.go":    {Data: []byte("package tools\n\nfunc TestTools(t *testing.T) {}\n")},
	"a/node_modules/m/m_test.go": {Data: []byte("package m\n\nfunc TestM(t *testing.T) {}\n")},
}

// event is an event of `go test -json`.
func event(action, pkg, test string) string {
	if test != "" {
		test = `,"Test":"` + test + `"`
	}
	return `{"Time":"2030-01-01T00:00:00Z","Action":"` + action + `","Package":"` + pkg + `"` + test + "}\n"
}

func TestCheck(t *testing.T) {
	const root, a, below, tagged = "example.com/x", "example.com/x/a", "example.org/below/deep", "example.com/x/tagged"
	all := event("pass", root, "TestRoot") + event("pass", root, "") + event("pass", a, "TestA") + event("skip", "example.com/x/c", "") +
		event("skip", "example.com/x/b", "") + event("skip", tagged, "") + "# a line of the compiler\n"
	module, e2e := event("pass", below, "TestDeep"), event("pass", tagged, "TestTagged")
	cases := map[string]struct {
		files []string
		known string
		want  string // in the error; empty: there is none
	}{
		"all ran":                             {[]string{all, module, e2e}, "", ""},
		"a test is skipped":                   {[]string{all + event("skip", a, "TestB"), module, e2e}, "", "\na TestB"},
		"a test of the root is skipped":       {[]string{all + event("skip", root, "TestB"), module, e2e}, "", "\n. TestB"},
		"a test of a module is skipped":       {[]string{all, module + event("skip", below, "TestB"), e2e}, "", "\nbelow/deep TestB"},
		"a part of a test is skipped":         {[]string{all + event("skip", a, "TestA/b"), module, e2e}, "", "\na TestA/b"},
		"one that is known":                   {[]string{all + event("skip", a, "TestB"), module, e2e}, "# why\na TestB\n", ""},
		"a part of one that is known":         {[]string{all + event("skip", a, "TestB/c"), module, e2e}, "a TestB\n", "\na TestB/c"},
		"one of the name in another package":  {[]string{all + event("skip", root, "TestB"), module, e2e}, "a TestB\n", "\n. TestB"},
		"one that ran in another file":        {[]string{all + event("skip", a, "TestB"), module, e2e, event("pass", a, "TestB")}, "", "\na TestB"},
		"a package is skipped":                {[]string{all, module, event("pass", a, "TestA") + event("skip", tagged, "")}, "", "\ntagged"},
		"a package is skipped that is known":  {[]string{all, module}, "tagged\n", ""},
		"all tests of a package are skipped":  {[]string{all, module, event("skip", tagged, "TestTagged")}, "", "\ntagged\ntagged TestTagged"},
		"a package has passed without a test": {[]string{strings.Replace(all, event("pass", root, "TestRoot"), "", 1), module, e2e}, "", "\n."},
		"nothing ran a module":                {[]string{all, e2e}, "", "\nbelow/deep"},
		"a test failed as others have to see": {[]string{all, event("fail", below, "TestDeep"), e2e}, "", ""},
		"a file is empty":                     {[]string{all, module, e2e, ""}, "", "has no event of a test"},
		"a file has no test":                  {[]string{all, module, e2e, event("pass", a, "")}, "", "has no event of a test"},
		"there is no file":                    {nil, "", "no files with test events are named"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var files []string
			for i, text := range tc.files {
				files = append(files, filepath.Join(t.TempDir(), string(rune('a'+i))+".json"))
				if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			switch err := check(repository, tc.known, files); {
			case tc.want == "" && err != nil:
				t.Errorf("check() = %v", err)
			case tc.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tc.want) && !strings.Contains(err.Error(), tc.want+".")):
				t.Errorf("check() = %v, want %q at its end", err, tc.want)
			}
		})
	}
}

// Files of one run are named together: what one of them skipped ran in another.
func TestFilesOfOneRun(t *testing.T) {
	const a = "example.com/x/a"
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "events.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	short := write(event("pass", "example.com/x", "TestRoot") + event("pass", a, "TestA") + event("skip", a, "TestB"))
	long := write(event("pass", a, "TestB"))
	const others = "below/deep\ntagged"
	if err := check(repository, others, []string{short + "," + long}); err != nil {
		t.Errorf("check() = %v", err)
	}
	if err := check(repository, others, []string{short, long}); err == nil || !strings.HasSuffix(err.Error(), "\na TestB") {
		t.Errorf("files of two runs: check() = %v", err)
	}
}

// A verb that wrote no file ran no test.
func TestAFileThatDoesNotExist(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.json")
	if err := os.WriteFile(file, []byte(event("pass", "example.com/x", "TestRoot")), 0o600); err != nil {
		t.Fatal(err)
	}
	err := check(repository, "a\nbelow/deep\ntagged", []string{file, file + "-of-another"})
	if err == nil || !strings.Contains(err.Error(), file+"-of-another") {
		t.Errorf("check() = %v", err)
	}
}

// Each line of known.txt names a directory that has tests.
func TestKnown(t *testing.T) {
	_, tested, err := scan(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, dir := range tested {
		has[dir] = true
	}
	if len(tested) < 100 || !has["hack/skipped"] {
		t.Errorf("only %d directories with tests are found", len(tested))
	}
	for line := range strings.Lines(known) {
		if dir, _, _ := strings.Cut(strings.TrimSpace(line), " "); !strings.HasPrefix(line, "#") && !has[dir] {
			t.Errorf("%q is not a directory with tests", dir)
		}
	}
}
