// Command skipped fails if a test of the repository did not run: make check-skipped. A test
// that is skipped proves nothing.
//
//	skipped FILE[,FILE...]...
//
// Each FILE holds test events as `go test -json` prints them; files of one run are joined with a
// comma. A file that does not exist or has no event is an error. So is a test that was skipped and
// ran in no other file of its run, and a package with tests of which none of the files has a test,
// because all of it was skipped or because nothing ran it. The exceptions are in known.txt.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed known.txt
var known string

func main() {
	if err := check(os.DirFS("."), known, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check returns what did not run of the tests of a repository. The names of the files are
// those of the file system of the process.
func check(repository fs.FS, known string, files []string) error {
	if len(files) == 0 {
		return errors.New("no files with test events are named. Run: skipped FILE")
	}
	modules, tested, err := scan(repository)
	if err != nil {
		return fmt.Errorf("looking for tests: %w", err)
	}
	missing, err := notRun(modules, tested, files)
	if err != nil {
		return err
	}
	allowed := strings.Split(known, "\n")
	missing = slices.DeleteFunc(missing, func(line string) bool { return slices.Contains(allowed, line) })
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("these tests, or all tests of these directories, did not run. Run them, or add them to hack/skipped/known.txt:\n%s", strings.Join(slices.Compact(missing), "\n"))
}

// notRun returns tests and directories that did not run.
func notRun(modules modules, tested, files []string) ([]string, error) {
	var missing []string
	ran := map[string]bool{}
	for _, together := range files {
		r, err := readAll(strings.Split(together, ","))
		if err != nil {
			return nil, err
		}
		for _, s := range slices.DeleteFunc(r.skipped, func(s test) bool { return r.played[s] }) {
			missing = append(missing, modules.dir(s.pkg)+" "+s.name)
		}
		for pkg := range r.ran {
			ran[modules.dir(pkg)] = true
		}
	}
	for _, dir := range tested {
		if !ran[dir] {
			missing = append(missing, dir)
		}
	}
	return missing, nil
}

// A record is the content of test events.
type record struct {
	ran     map[string]bool // the packages of which a test ran
	played  map[test]bool   // or failed, which others have to see
	skipped []test
}

type test struct{ pkg, name string }

// readAll returns the joint record of files.
func readAll(files []string) (record, error) {
	r := record{ran: map[string]bool{}, played: map[test]bool{}}
	for _, name := range files {
		if err := r.read(name); err != nil {
			return record{}, fmt.Errorf("reading test events: %w", err)
		}
	}
	return r, nil
}

// read adds the events of a file.
func (r *record) read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	events := 0
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue // output of a build, or about the package
		}
		events++
		switch event.Action {
		case "skip":
			r.skipped = append(r.skipped, test{event.Package, event.Test})
		case "pass", "fail":
			r.ran[event.Package] = true
			r.played[test{event.Package, event.Test}] = true
		}
	}
	if events == 0 && lines.Err() == nil {
		return fmt.Errorf("%s has no event of a test", name)
	}
	return lines.Err()
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)
	testFunc   = regexp.MustCompile(`(?m)^func Test\w*\(\w+ \*testing\.T\)`)
)

// modules are the directories of modules by their paths.
type modules map[string]string

// dir returns the directory of a package; the root of the repository is ".".
func (m modules) dir(pkg string) string {
	for module := pkg; module != "."; module = path.Dir(module) {
		if dir, is := m[module]; is {
			return path.Join(dir, strings.TrimPrefix(pkg, module))
		}
	}
	return pkg
}

// scan returns the modules of a repository, and the directories that have tests.
func scan(repository fs.FS) (modules, []string, error) {
	found, tested := modules{}, []string{}
	err := fs.WalkDir(repository, ".", func(file string, d fs.DirEntry, err error) error {
		dir := path.Dir(file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata", "node_modules"}, d.Name()):
			return fs.SkipDir
		case d.Name() != "go.mod" && !strings.HasSuffix(file, "_test.go") || slices.Contains(tested, dir) && d.Name() != "go.mod":
			return nil
		}
		text, err := fs.ReadFile(repository, file)
		if m := moduleLine.FindSubmatch(text); d.Name() == "go.mod" && m != nil {
			found[string(m[1])] = dir
		} else if testFunc.Match(text) {
			tested = append(tested, dir)
		}
		return err
	})
	return found, tested, err
}
