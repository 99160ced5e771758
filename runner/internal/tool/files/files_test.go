package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A bench is the tools over a directory of the test.
type bench struct {
	*Toolset
	t   *testing.T
	dir string
}

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func newBench(t *testing.T) bench {
	t.Helper()
	dir := t.TempDir()
	d, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return bench{Toolset: Over(backend.New(d, noon), View{Root: "/workspace"}), t: t, dir: dir}
}

// put writes a file from outside the session.
func (b bench) put(name, content string) {
	b.t.Helper()
	at := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b bench) content(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// call is what the model reads after a call, which it writes as "Read {…}".
func (b bench) call(line string) string {
	b.t.Helper()
	name, args, _ := strings.Cut(line, " ")
	for _, one := range b.Tools() {
		if one.Name != name {
			continue
		}
		got, err := one.Call(b.t.Context(), tool.Call{Name: name, Args: json.RawMessage(args)})
		if err != nil {
			b.t.Fatalf("%s: %v", line, err)
		}
		return got.Render()
	}
	b.t.Fatalf("no tool for %q", line)
	return ""
}

// A dialogue is calls, each with what the model reads after it.
type dialogue [][2]string

func (b bench) hold(d dialogue) {
	b.t.Helper()
	for _, turn := range d {
		if diff := cmp.Diff(turn[1], b.call(turn[0])); diff != "" {
			b.t.Errorf("%s\n-want +got:\n%s", turn[0], diff)
		}
	}
}

func TestRead(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\ntwo\nthree\n")
	b.put("empty", "")
	b.put("windows", "\ufeffa\r\nb")
	b.put("long", strings.Repeat("é", chunk)+strings.Repeat("b", chunk)+"c\nnext\n")
	b.put("latin", "caf\xe9\n")
	b.put("binary", "\x00")
	var many strings.Builder
	for i := range 250 {
		fmt.Fprintf(&many, "line %d\n", i+1)
	}
	b.put("many", many.String())
	b.hold(dialogue{
		{`Read {"path":"/workspace/a.txt"}`, "1  one\n2  two\n3  three\n[lines 1 to 3 of 3]"},
		{`Read {"path":"a.txt"}`, "1  one\n2  two\n3  three\n[lines 1 to 3 of 3]"},
		{`Read {"path":"./a.txt","offset":1,"limit":1}`, "2  two\n[lines 2 to 2 of 3; next_offset: 2]"},
		{`Read {"path":"a.txt","offset":-1,"limit":0}`, "1  one\n[lines 1 to 1 of 3; next_offset: 1]"},
		{`Read {"path":"a.txt","offset":3}`, "Error: Line offset 3 exceeds file length (3 lines)"},
		{`Read {"path":"empty"}`, "System reminder: File exists but has empty contents"},
		{`Read {"path":"windows"}`, "1  a\n2  b\n[lines 1 to 2 of 2]"},
		{`Read {"path":"latin"}`, "1  caf\ufffd\n[lines 1 to 1 of 1; 1 byte of the file is not UTF-8 and is shown as \ufffd: the encoding may be ISO-8859-1 or Windows-1252]"},
		{`Read {"path":"long"}`, "1  " + strings.Repeat("é", chunk) + "\n1.1  " + strings.Repeat("b", chunk) + "\n1.2  c\n2  next\n[lines 1 to 2 of 2]"},
		{`Read {"path":"many","offset":98,"limit":3}`, " 99  line 99\n100  line 100\n101  line 101\n[lines 99 to 101 of 250; next_offset: 101]"},
		{`Read {"path":"none"}`, "Error: File 'none' not found\n- Find it with Glob or Ls."},
		{`Read {"path":"/workspace"}`, "Error: '/workspace' is a directory\n- List it with Ls."},
		{`Read {"path":"a.txt/x"}`, "Error: A part of the path 'a.txt/x' is a file, not a directory"},
		{`Read {"path":"binary"}`, "Error: File 'binary' is binary, not text"},
	})
	if got := b.call(`Read {"path":"many"}`); !strings.HasSuffix(got, "100  line 100\n[lines 1 to 100 of 250; next_offset: 100]") {
		t.Errorf("Read shows %q at the end, want 100 lines", got[len(got)-80:])
	}
}

// However much is asked for, a result is bounded, and says where to go on.
func TestReadIsBounded(t *testing.T) {
	b := newBench(t)
	b.put("wide", strings.Repeat(strings.Repeat("x", 999)+"\n", 200))
	b.put("one", strings.Repeat("x", 2<<20)+"\nnext\n")
	for file, want := range map[string]string{
		"wide": "[lines 1 to 79 of 200; next_offset: 79]",
		"one":  "[lines 1 to 1 of 2; next_offset: 1; line 1 is cut: search in it with Grep]",
	} {
		got := b.call(fmt.Sprintf(`Read {"path":%q,"limit":10000}`, file))
		if len(got) > maxResult+1000 || !strings.HasSuffix(got, want) {
			t.Errorf("Read of %s: %d characters that end %q, want %q", file, len(got), got[len(got)-100:], want)
		}
	}
}

func TestPaths(t *testing.T) {
	const below = "\n- Use a path below /workspace, such as /workspace/file.txt."
	b := newBench(t)
	b.put("foo..bar.txt", "x\n")
	if err := os.Symlink("/etc", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	b.hold(dialogue{
		{`Read {"path":"foo..bar.txt"}`, "1  x\n[lines 1 to 1 of 1]"},
		{`Read {"path":"/workspace//./foo..bar.txt"}`, "1  x\n[lines 1 to 1 of 1]"},
		{`Read {"path":"../etc/passwd"}`, "Error: Path traversal not allowed: ../etc/passwd" + below},
		{`Read {"path":"/workspace/../etc/passwd"}`, "Error: Path traversal not allowed: /workspace/../etc/passwd" + below},
		{`Read {"path":"/etc/../workspace/foo..bar.txt"}`, "Error: Path traversal not allowed: /etc/../workspace/foo..bar.txt" + below},
		{`Read {"path":"~/x"}`, "Error: Path traversal not allowed: ~/x" + below},
		{`Read {"path":"/etc/passwd"}`, "Error: Path '/etc/passwd' is outside /workspace" + below},
		{`Read {"path":"/workspaces/x"}`, "Error: Path '/workspaces/x' is outside /workspace" + below},
		{`Read {"path":"C:\\x\\y"}`, `Error: Windows absolute paths are not supported: C:\x\y` + below},
		{`Read {"path":"a\u0000b"}`, `Error: Not a usable path: "a\x00b"`},
		{`Write {"path":"../x","content":""}`, "Error: Path traversal not allowed: ../x" + below},
		{`Edit {"path":"/x","old_string":"a","new_string":"b"}`, "Error: Path '/x' is outside /workspace" + below},
		{`Ls {"path":"/"}`, "Error: Path '/' is outside /workspace" + below},
		{`Glob {"pattern":"*","path":".."}`, "Error: Path traversal not allowed: .." + below},
		{`Glob {"pattern":"../*"}`, "Error: Path traversal not allowed: ../*\n- Say where to look in path, and what to look for in the pattern."},
		{`Grep {"pattern":"x","glob":"../*"}`, "Error: Path traversal not allowed: ../*\n- Say where to look in path, and what to look for in the pattern."},
		{`Grep {"pattern":"x","path":"/etc"}`, "Error: Path '/etc' is outside /workspace" + below},
	})
}

func TestWrite(t *testing.T) {
	b := newBench(t)
	b.put("old", "theirs\n")
	b.hold(dialogue{
		{`Write {"path":"new/deep/f","content":"one\n"}`, "Created /workspace/new/deep/f (4 bytes)"},
		{`Write {"path":"new/deep/f","content":"two\n"}`, "Wrote /workspace/new/deep/f (4 bytes)"},
		{`Write {"path":"old","content":"ours\n"}`, "Error: You must read the file before overwriting it: 'old' exists and has not been read\n- Read it, then Write or Edit."},
		{`Write {"path":"old","content":"theirs\n"}`, "Wrote /workspace/old (7 bytes)"},
		{`Write {"path":"a\nb/.env","content":""}`, "Error: Not a usable path: \"a\\nb/.env\"\n- Choose a name without line ends and other control characters."},
		{`Write {"path":"a\u001b[2J","content":""}`, "Error: Not a usable path: \"a\\x1b[2J\"\n- Choose a name without line ends and other control characters."},
		{`Write {"path":"new","content":""}`, "Error: 'new' is a directory\n- List it with Ls."},
	})
	b.put("old", "theirs again\n")
	b.hold(dialogue{
		{`Write {"path":"old","content":"ours\n"}`, "Error: File 'old' was modified since it was read\n- Read it again, then repeat the change if it still applies."},
		{`Read {"path":"old"}`, "1  theirs again\n[lines 1 to 1 of 1]"},
		{`Write {"path":"old","content":"ours\n"}`, "Wrote /workspace/old (5 bytes)"},
	})
	if err := os.Chmod(filepath.Join(b.dir, "old"), 0o444); err != nil {
		t.Fatal(err)
	}
	b.hold(dialogue{
		{`Write {"path":"old","content":"more\n"}`, "Error: permission denied for write on old"},
		{`Edit {"path":"old","old_string":"ours","new_string":"more"}`, "Error: permission denied for write on old"},
	})
	if got := b.content("old"); got != "ours\n" {
		t.Errorf("the file has %q", got)
	}
}

func TestLsAndGlob(t *testing.T) {
	b := newBench(t)
	b.put("src/a.go", "package a\n")
	b.put("src/b.ts", strings.Repeat("x", 3000))
	b.put("read me", "")
	b.put("new\nline", "")
	if err := os.Mkdir(filepath.Join(b.dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.hold(dialogue{
		{`Ls {}`, "\"/workspace/new\\nline\"  0 bytes\n/workspace/read me  0 bytes\n/workspace/src/\n/workspace/void/"},
		{`Ls {"path":"src"}`, "/workspace/src/a.go  10 bytes\n/workspace/src/b.ts  2.9 KiB"},
		{`Ls {"path":"void"}`, "The directory is empty"},
		{`Ls {"path":"none"}`, "Error: Path 'none': path_not_found"},
		{`Ls {"path":"src/a.go"}`, "Error: Path 'src/a.go': not_a_directory\n- Read it with Read."},
		{`Glob {"pattern":"*.{go,ts}"}`, "/workspace/src/a.go\n/workspace/src/b.ts"},
		{`Glob {"pattern":"/workspace/src/*.go"}`, "/workspace/src/a.go"},
		{`Glob {"pattern":"/workspace/src/*.go","path":"void"}`, "/workspace/src/a.go"},
		{`Glob {"pattern":"*.go","path":"/workspace/void"}`, "No files found"},
		{`Glob {"pattern":"*","path":"none"}`, "Error: File 'none' not found\n- Find it with Glob or Ls."},
		{`Glob {"pattern":"[a"}`, "Error: The pattern '[a' is not valid: syntax error in pattern\n" +
			"- For Grep, write an RE2 expression (no look-around, no back-references), or set fixed to true to search for the text as it is.\n" +
			"- For Glob, write a pattern such as **/*.go or src/*.{ts,tsx}."},
	})
}

func TestGrep(t *testing.T) {
	b := newBench(t)
	b.put("a.go", "package a\nfunc F(x []int) {}\nfunc G() {}\n")
	b.put("sub/b.txt", "a func\n")
	b.hold(dialogue{
		{`Grep {"pattern":"func"}`, "/workspace/a.go\n/workspace/sub/b.txt"},
		{`Grep {"pattern":"^func","output_mode":"content"}`, "/workspace/a.go:2:func F(x []int) {}\n/workspace/a.go:3:func G() {}"},
		{`Grep {"pattern":"func","output_mode":"count"}`, "/workspace/a.go:2\n/workspace/sub/b.txt:1"},
		{`Grep {"pattern":"FUNC","ignore_case":true,"glob":"*.txt"}`, "/workspace/sub/b.txt"},
		{`Grep {"pattern":"F(x []int","fixed":true,"path":"a.go"}`, "/workspace/a.go"},
		{`Grep {"pattern":"func","limit":1}`, "/workspace/a.go\n" + truncated},
		{`Grep {"pattern":"func","limit":1,"output_mode":"content"}`, "/workspace/a.go:2:func F(x []int) {}\n" + truncated},
		{`Grep {"pattern":"nothing"}`, "No matches found"},
		{`Grep {"pattern":"^func","fixed":true}`, "No matches found. The pattern was taken as plain text; leave fixed out to use it as an expression."},
		{`Grep {"pattern":"F(x"}`, "Error: The pattern 'F(x' is not valid: error parsing regexp: missing closing ): `F(x`\n" +
			"- For Grep, write an RE2 expression (no look-around, no back-references), or set fixed to true to search for the text as it is.\n" +
			"- For Glob, write a pattern such as **/*.go or src/*.{ts,tsx}."},
		{`Grep {"pattern":"x","output_mode":"lines"}`, "Error: Invalid arguments for Grep: `output_mode` must be one of \"files_with_matches\", \"content\", \"count\"; got \"lines\"."},
	})
}

func TestGrepIsBounded(t *testing.T) {
	b := newBench(t)
	b.put("f", strings.Repeat(strings.Repeat("x", 900)+"\n", 1000))
	got := b.call(`Grep {"pattern":"x","output_mode":"content","limit":1000}`)
	if len(got) > maxResult+1000 || !strings.HasSuffix(got, "\n"+truncated) {
		t.Errorf("Grep: %d characters that end %q", len(got), got[len(got)-100:])
	}
}

func TestChanged(t *testing.T) {
	b := newBench(t)
	b.put("theirs", "a")
	b.hold(dialogue{
		{`Write {"path":"b/new","content":"four"}`, "Created /workspace/b/new (4 bytes)"},
		{`Write {"path":"gone/f","content":"x"}`, "Created /workspace/gone/f (1 bytes)"},
		{`Read {"path":"theirs"}`, "1  a\n[lines 1 to 1 of 1]"},
	})
	child := bench{Toolset: b.ForSession(), t: t, dir: b.dir}
	child.hold(dialogue{
		{`Edit {"path":"theirs","old_string":"a","new_string":"b"}`, "Error: You must read the file before editing it: 'theirs' has not been read\n- Read it, then Edit."},
		{`Write {"path":"a","content":"child"}`, "Created /workspace/a (5 bytes)"},
	})
	if err := os.RemoveAll(filepath.Join(b.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	b.put("b/new", "longer now")
	infos, err := b.Changed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, i := range infos {
		got += fmt.Sprintf("%s %d\n", i.Path, i.Size)
	}
	if diff := cmp.Diff("/workspace/a 5\n/workspace/b/new 10\n", got); diff != "" {
		t.Errorf("Changed() -want +got:\n%s", diff)
	}
}

// After a crash the calls that had succeeded are told again, and the session
// goes on as if nothing had happened. A write that runs again is harmless.
func TestReplay(t *testing.T) {
	b := newBench(t)
	b.put("read", "a")
	b.put("written", "x")
	b.Replay(NameRead, json.RawMessage(`{"path":"/workspace/read"}`))
	b.Replay(NameWrite, json.RawMessage(`{"path":"written","content":"x"}`))
	b.Replay(NameEdit, json.RawMessage(`{"path":"../outside"}`))
	b.Replay("shell", json.RawMessage(`"not an object"`))
	infos, err := b.Changed(t.Context())
	if err != nil || len(infos) != 1 || infos[0].Path != "/workspace/written" {
		t.Errorf("Changed() = %v, error %v; want the file written", infos, err)
	}
	b.hold(dialogue{
		{`Edit {"path":"read","old_string":"a","new_string":"b"}`, "Replaced 1 occurrence in /workspace/read, at line 1"},
		{`Write {"path":"written","content":"x"}`, "Wrote /workspace/written (1 bytes)"},
	})
}

func TestSpecs(t *testing.T) {
	type class struct {
		Effect      tool.Effect
		Concurrency tool.Concurrency
	}
	look := class{tool.ReadOnly, tool.Parallel}
	want := map[string]class{
		NameRead: look, NameLs: look, NameGlob: look, NameGrep: look,
		NameWrite: {tool.Idempotent, tool.PerPath}, NameEdit: {tool.Once, tool.PerPath},
	}
	got := map[string]class{}
	for _, one := range newBench(t).Tools() {
		s := one.Spec
		got[s.Name] = class{s.Effect, s.Concurrency}
		if s.Description == "" || !json.Valid(s.Input) {
			t.Errorf("%s is described as %q, with the schema %s", s.Name, s.Description, s.Input)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"a", "/workspace/a", "/workspace/../x", "../x", "~", "C:\\x", "//", "/workspace"} {
		f.Add(seed)
	}
	t := Over(nil, View{Root: "/workspace"})
	f.Fuzz(func(tt *testing.T, name string) {
		at, err := t.view.resolve(name)
		if err != nil {
			return
		}
		if _, err := backend.Clean(at); err != nil {
			tt.Errorf("resolve(%q) = %q: %v", name, at, err)
		}
		if !strings.HasPrefix(t.view.name(at)+"/", "/workspace/") {
			tt.Errorf("resolve(%q) = %q, which is %s", name, at, t.view.name(at))
		}
	})
}

func BenchmarkTools(b *testing.B) {
	for b.Loop() {
		Over(nil, View{Root: "/workspace"}).Tools()
	}
}
