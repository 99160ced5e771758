package runner_test

import (
	"encoding/json"
	"errors"
	"flag"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateAPI = flag.Bool("update-api", false, "write testdata/api.txt")

// The library keeps what it exports. A line that goes, or changes, breaks a program that uses it; a line
// that comes is a promise. After a change that is meant:
//
//	go test ./runner -run TestTheLibraryExports -update-api
func TestTheLibraryExports(t *testing.T) {
	if testing.Short() {
		t.Skip("only reads the source, so it runs without the race detector")
	}
	const golden = "testdata/api.txt"
	got := strings.Join(exported(t), "\n") + "\n"
	for line := range strings.Lines(got) {
		if strings.Contains(line, "/internal/") && !strings.HasPrefix(line, "runner/tool.Spec.Internal ") {
			t.Errorf("other modules cannot name a type of this line: %s", line)
		}
	}
	if *updateAPI {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs from what the library exports; write it with -update-api if that is meant. -file +library:\n%s", golden, diff)
	}
}

// exported returns a line for each exported identifier of the public packages, sorted.
func exported(t *testing.T) []string {
	t.Helper()
	files, public := map[string]string{}, []string(nil)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module+"runner") && !strings.Contains(p.ImportPath, "/internal/") {
			public = append(public, p.ImportPath)
		}
	}
	read := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	var lines []string
	for _, path := range public {
		pkg, err := read.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				lines = append(lines, declaration(o)...)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// declaration returns the lines of an identifier, and of its exported fields and methods.
func declaration(o types.Object) []string {
	short := func(p *types.Package) string { return strings.TrimPrefix(p.Path(), module) }
	at := strings.TrimPrefix(o.Pkg().Path(), module) + "."
	lines := []string{at + o.Name() + " " + kindOf(o) + strings.TrimPrefix(types.TypeString(o.Type(), short), "func")}
	named, is := o.(*types.TypeName)
	if !is || named.IsAlias() {
		return lines
	}
	lines[0] = at + o.Name() + " type " + underlying(named.Type().Underlying(), short)
	add := func(member types.Object) {
		if member.Exported() {
			lines = append(lines, at+o.Name()+"."+member.Name()+" "+strings.TrimPrefix(types.TypeString(member.Type(), short), "func"))
		}
	}
	if s, is := named.Type().Underlying().(*types.Struct); is {
		for field := range s.Fields() {
			add(field)
		}
	}
	for method := range types.NewMethodSet(types.NewPointer(named.Type())).Methods() {
		add(method.Obj())
	}
	if i, is := named.Type().Underlying().(*types.Interface); is {
		for method := range i.Methods() {
			add(method)
		}
	}
	return lines
}

// kindOf is the keyword of a declaration.
func kindOf(o types.Object) string {
	switch o.(type) {
	case *types.Const:
		return "const "
	case *types.Var:
		return "var "
	case *types.TypeName:
		return "= "
	}
	return "func"
}

// underlying is the type of a declared type, without the members that have lines of their own.
func underlying(t types.Type, short types.Qualifier) string {
	switch t.(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	}
	return types.TypeString(t, short)
}
