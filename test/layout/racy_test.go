package layout_test

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each package with tests is tested with or without the race detector, and none is left out. With it are those whose
// code starts goroutines, and those that have locks and whose tests start goroutines.
func TestRacyPackages(t *testing.T) {
	racy, others := racyPackages(t), racyPackages(t, "others")
	for _, dir := range others {
		if slices.Contains(racy, dir) {
			t.Errorf("%s is tested with and without the race detector", dir)
		}
		code, tests := sourceOf(t, dir)
		if len(tests) > 0 && (startsGoroutines(code) || hasLocks(code) && startsGoroutines(tests)) {
			t.Errorf("%s is not tested under the race detector, and has goroutines", dir)
		}
	}
	for _, dir := range racy {
		code, tests := sourceOf(t, dir)
		if !startsGoroutines(code) && !hasLocks(code) && !startsGoroutines(tests) {
			t.Errorf("%s is tested under the race detector, and has no goroutines or locks", dir)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-C", root, "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if dir := "./" + strings.TrimPrefix(pkg, module); !slices.Contains(racy, dir) && !slices.Contains(others, dir) {
			t.Errorf("%s is not tested", dir)
		}
	}
}

func racyPackages(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), root+"/hack/racy", args...).Output()
	if err != nil {
		t.Fatalf("hack/racy %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

// sourceOf returns the files of a package, and those of its tests.
func sourceOf(t *testing.T, dir string) (code, tests []*ast.File) {
	t.Helper()
	p, err := build.ImportDir(filepath.Join(root, dir), 0)
	if noCode := (*build.NoGoError)(nil); err != nil && !errors.As(err, &noCode) {
		t.Fatalf("reading %s: %v", dir, err)
	}
	parse := func(names []string) (files []*ast.File) {
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		return files
	}
	return parse(p.GoFiles), parse(slices.Concat(p.TestGoFiles, p.XTestGoFiles))
}

// startsGoroutines reports whether a file has a go statement, or calls Go of a group.
func startsGoroutines(files []*ast.File) bool {
	found := false
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				found = found || ok && s.Sel.Name == "Go"
			}
			return !found
		})
	}
	return found
}

// hasLocks reports whether a file imports the package of locks, or that of atomic values.
func hasLocks(files []*ast.File) bool {
	return slices.ContainsFunc(files, func(f *ast.File) bool {
		return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"sync"` || i.Path.Value == `"sync/atomic"` })
	})
}
