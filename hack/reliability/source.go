package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A target is what one name of a row stands for.
type target struct {
	dir string
	// test is a test's name, with its subtest.
	test string
	// story is the name of a golden file, which a subtest of that name plays.
	story string
}

// sources are the tests of the repository, as the code has them.
type sources struct {
	root string
	// tests are the names of tests by package.
	tests map[string][]string
	// text is the code of a package's tests.
	text map[string]string
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// scan reads the tests below a root.
func scan(root string) (sources, error) {
	s := sources{root: root, tests: map[string][]string{}, text: map[string]string{}}
	files := os.DirFS(root)
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, d.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		code, err := fs.ReadFile(files, file)
		s.add(path.Dir(file), string(code))
		return err
	})
	if err != nil {
		return sources{}, fmt.Errorf("looking for tests: %w", err)
	}
	return s, nil
}

// add adds the code of one file of a package.
func (s sources) add(dir, code string) {
	s.text[dir] += code
	for _, m := range testFunc.FindAllStringSubmatch(code, -1) {
		s.tests[dir] = append(s.tests[dir], m[1])
	}
}

var (
	storyName = regexp.MustCompile(`^(?:(\w+)/)?stories/([\w-]+\*?)$`)
	testName  = regexp.MustCompile(`^(?:(.+)\.)?(Test\w+)(?:/(.+))?$`)
)

// find returns the tests that a name of a row stands for; empty: there is none.
func (s sources) find(name string) []target {
	if m := storyName.FindStringSubmatch(name); m != nil {
		return s.stories(m[1], m[2])
	}
	if m := testName.FindStringSubmatch(name); m != nil {
		return s.named(m[1], m[2], m[3])
	}
	return nil
}

func (s sources) stories(controller, name string) []target {
	if controller == "" {
		controller = "run"
	}
	dir := path.Join("internal/controller", controller)
	files, err := filepath.Glob(filepath.Join(s.root, dir, "testdata/stories", name+".txt"))
	if err != nil {
		return nil
	}
	var out []target
	for _, f := range files {
		out = append(out, target{dir: dir, story: strings.TrimSuffix(filepath.Base(f), ".txt")})
	}
	return out
}

func (s sources) named(only, name, sub string) []target {
	var out []target
	for dir, tests := range s.tests {
		if only != "" && dir != only || !slices.Contains(tests, name) {
			continue
		}
		if sub == "" {
			out = append(out, target{dir: dir, test: name})
		} else if s.mentions(dir, sub) {
			out = append(out, target{dir: dir, test: name + "/" + strings.ReplaceAll(sub, " ", "_")})
		}
	}
	slices.SortFunc(out, func(a, b target) int { return strings.Compare(a.dir, b.dir) })
	return out
}

// mentions reports whether the tests of a package contain the name of a subtest. The record shows whether it ran.
func (s sources) mentions(dir, sub string) bool {
	for part := range strings.SplitSeq(sub, "/") {
		if !strings.Contains(s.text[dir], `"`+part+`"`) {
			return false
		}
	}
	return true
}
