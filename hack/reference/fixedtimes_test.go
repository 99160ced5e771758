package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// leastFixed is the shortest time that the page lists.
const leastFixed = 5 * time.Second

// The page of fixed times has each time in the code, and its value.
func TestFixedTimes(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/fixed-times.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]time.Duration{}
	for _, row := range regexp.MustCompile("(?m)^\\|[^|]+\\| ([0-9a-z]+) \\|[^|]*\\| `([^`]+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		if listed[row[2]], err = time.ParseDuration(row[1]); err != nil {
			t.Errorf("%s: %v", row[2], err)
		}
	}
	inCode := map[string]time.Duration{}
	for _, root := range []string{"runner", "internal", "cmd"} {
		addTimes(t, inCode, root)
	}
	if diff := cmp.Diff(listed, inCode); diff != "" {
		t.Errorf("docs/reference/fixed-times.md differs from the code: add, change or remove rows. -page +code:\n%s", diff)
	}
}

// addTimes adds the constants and variables of packages that are times.
func addTimes(t *testing.T, to map[string]time.Duration, root string) {
	t.Helper()
	top := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(top, root), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(top, filepath.Dir(path))
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				addDeclared(to, filepath.ToSlash(pkg), d)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func addDeclared(to map[string]time.Duration, pkg string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, value := range v.Values {
			if d, isTime := timeOf(value); isTime && d >= leastFixed {
				to[pkg+"."+v.Names[i].Name] = d
			}
		}
	}
}

var units = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// timeOf evaluates a product of numbers and a unit of package time.
func timeOf(e ast.Expr) (d time.Duration, isTime bool) {
	n, isTime := product(e)
	return time.Duration(n), isTime
}

func product(e ast.Expr) (n int64, isTime bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, _ := strconv.ParseInt(strings.ReplaceAll(e.Value, "_", ""), 10, 64)
		return n, false
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" {
			return int64(units[e.Sel.Name]), units[e.Sel.Name] > 0
		}
	case *ast.BinaryExpr:
		x, isX := product(e.X)
		y, isY := product(e.Y)
		return x * y, e.Op == token.MUL && isX != isY
	}
	return 0, false
}
