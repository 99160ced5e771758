package files

import (
	"os"
	"path/filepath"
	"testing"
)

// command does what a command of the session does to its files.
func (b bench) command(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b bench) at(name string) string { return filepath.Join(b.dir, name) }

func TestAFileThatACommandRemovedCanBeWrittenAgain(t *testing.T) {
	b := newBench(t)
	b.put("read", "one\n")
	b.hold(dialogue{
		{`Read {"path":"read"}`, "1  one\n[lines 1 to 1 of 1]"},
		{`Write {"path":"dir/written","content":"one\n"}`, "Created /workspace/dir/written (4 bytes)"},
	})
	b.command(os.Remove(b.at("read")))
	b.command(os.RemoveAll(b.at("dir")))
	b.hold(dialogue{
		{`Write {"path":"read","content":"two\n"}`, "Created /workspace/read (4 bytes). The file had been removed since it was last read or written."},
		{`Write {"path":"dir/written","content":"two\n"}`, "Created /workspace/dir/written (4 bytes). The file had been removed since it was last read or written."},
		{`Write {"path":"read","content":"three\n"}`, "Wrote /workspace/read (6 bytes)"},
	})
}

func TestReadOfARemovedFileForgetsIt(t *testing.T) {
	b := newBench(t)
	b.put("f", "one\n")
	b.call(`Read {"path":"f"}`)
	b.command(os.Remove(b.at("f")))
	b.hold(dialogue{
		{`Read {"path":"f"}`, "Error: File 'f' not found\n- Find it with Glob or Ls."},
		{`Write {"path":"f","content":"two\n"}`, "Created /workspace/f (4 bytes)"},
	})
	b.command(os.Remove(b.at("f")))
	b.call(`Read {"path":"f"}`)
	b.put("f", "theirs\n")
	b.hold(dialogue{
		{`Write {"path":"f","content":"ours\n"}`, "Error: You must read the file before overwriting it: 'f' exists and has not been read\n- Read it, then Write or Edit."},
		{`Edit {"path":"f","old_string":"theirs","new_string":"ours"}`, "Error: You must read the file before editing it: 'f' has not been read\n- Read it, then Edit."},
	})
}

func TestEditOfARemovedFileSaysSo(t *testing.T) {
	b := newBench(t)
	b.put("f", "one\n")
	b.call(`Read {"path":"f"}`)
	b.command(os.Remove(b.at("f")))
	b.hold(dialogue{
		{`Edit {"path":"f","old_string":"one","new_string":"two"}`, "Error: File 'f' not found: it was removed since it was last read or written\n- Write it again, or find where it is with Glob."},
		{`Write {"path":"f","content":"two\n"}`, "Created /workspace/f (4 bytes)"},
	})
}

func TestAFileThatACommandReplaced(t *testing.T) {
	const modified = "Error: File 'f' was modified since it was read\n- Read it again, then repeat the change if it still applies."
	replaced := map[string]struct {
		command func(b bench) error
		want    string
	}{
		"by other content": {
			func(b bench) error { return os.WriteFile(b.at("f"), []byte("other\n"), 0o644) }, modified,
		},
		"by a rename over it": {
			func(b bench) error { b.put("g", "other\n"); return os.Rename(b.at("g"), b.at("f")) }, modified,
		},
		"by the same content, removed and made again": {
			func(b bench) error {
				b.command(os.Remove(b.at("f")))
				return os.WriteFile(b.at("f"), []byte("one\n"), 0o644)
			}, "Wrote /workspace/f (4 bytes)",
		},
		"by the content that is to be written": {
			func(b bench) error { return os.WriteFile(b.at("f"), []byte("two\n"), 0o644) }, "Wrote /workspace/f (4 bytes)",
		},
		"by a directory": {
			func(b bench) error { b.command(os.Remove(b.at("f"))); return os.Mkdir(b.at("f"), 0o755) },
			"Error: 'f' is a directory\n- List it with Ls.",
		},
		"by a binary file": {
			func(b bench) error { return os.WriteFile(b.at("f"), []byte("GIF8\x00"), 0o644) },
			"Error: File 'f' is binary, not text\n- Write replaces text files only. If the content is not needed, remove the file with a command, then Write.",
		},
	}
	for name, tc := range replaced {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("f", "one\n")
			b.call(`Read {"path":"f"}`)
			b.command(tc.command(b))
			b.hold(dialogue{{`Write {"path":"f","content":"two\n"}`, tc.want}})
		})
	}
}

// A resumed session knows which files it had read, not what they were.
func TestAResumedSessionWritesAFileThatWasRemoved(t *testing.T) {
	b := newBench(t)
	b.Replay(NameRead, []byte(`{"path":"f"}`))
	b.hold(dialogue{
		{`Write {"path":"f","content":"two\n"}`, "Created /workspace/f (4 bytes). The file had been removed since it was last read or written."},
		{`Write {"path":"f","content":"two\n"}`, "Wrote /workspace/f (4 bytes)"},
	})
}
