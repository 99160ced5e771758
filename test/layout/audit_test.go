package layout_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slack is how many lines a security review may have fewer than AUDIT.md says before the page is
// to be corrected.
const slack = 100

var auditRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\| (.*) \\|$")

// AUDIT.md names packages that exist, the modules that they import, and how many lines they have.
func TestAuditListIsTrue(t *testing.T) {
	page, err := os.ReadFile(root + "/AUDIT.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := auditRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("AUDIT.md has %d packages", len(rows))
	}
	lines := 0
	for _, row := range rows {
		modules, n := audited(t, row[1])
		lines += n
		named := []string{}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			named = append(named, m[1])
		}
		if diff := cmp.Diff(named, modules); diff != "" {
			t.Errorf("%s imports other modules than AUDIT.md says, -page +imports:\n%s", row[1], diff)
		}
	}
	_, after, _ := strings.Cut(string(page), "\nLines: ")
	said, _, _ := strings.Cut(after, ".")
	bound, err := strconv.Atoi(strings.ReplaceAll(said, ",", ""))
	if err != nil || lines > bound || lines < bound-slack {
		t.Errorf("AUDIT.md says %q lines, there are %d: correct it, and say why if it grew", said, lines)
	}
}

// audited returns the modules of others that the packages below a path import, and how many lines
// they have, tests left out.
func audited(t *testing.T, path string) (modules []string, lines int) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=Dir,GoFiles,Imports,ImportPath", "./"+path+"/...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var imports []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath  string
			GoFiles, Imports []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if onlyForTests(strings.TrimPrefix(p.ImportPath, module)) {
			continue
		}
		imports = append(imports, p.Imports...)
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(data, []byte("\n"))
		}
	}
	return modulesOf(t, imports), lines
}

// modulesOf returns the modules of go.mod that have the packages.
func modulesOf(t *testing.T, imports []string) []string {
	t.Helper()
	file, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, m := range regexp.MustCompile(`(?m)^\s+(\S+) v`).FindAllStringSubmatch(string(file), -1) {
		if slices.ContainsFunc(imports, func(i string) bool { return i == m[1] || strings.HasPrefix(i, m[1]+"/") }) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return all
}
