package files

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/composite"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
)

// newPlaces is the tools over the places that an agent has.
func newPlaces(t *testing.T) bench {
	t.Helper()
	dir := t.TempDir()
	work, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = work.Close() })
	results := state.New(state.Options{Now: noon})
	if err := results.Write(t.Context(), "s3c1", []byte("long\n"), backend.None); err != nil {
		t.Fatal(err)
	}
	c, err := composite.New(
		composite.Mount{Path: "/workspace", Driver: work},
		composite.Mount{Path: "/tmp", Driver: state.New(state.Options{Now: noon})},
		composite.Mount{Path: "/results", Driver: results, ReadOnly: true},
		composite.Mount{Path: "/memories", Driver: store.New(store.NewMemory(store.MemoryOptions{Now: noon}), store.Options{})},
	)
	if err != nil {
		t.Fatal(err)
	}
	tools := Over(backend.New(c, noon), View{Home: "/workspace", Places: c.Places()})
	return bench{Toolset: tools, t: t, dir: dir}
}

func TestSeveralPlaces(t *testing.T) {
	const (
		below   = "\n- Use a path below /memories, /results, /tmp, /workspace, such as /workspace/file.txt."
		outside = " is outside /memories, /results, /tmp, /workspace" + below
	)
	b := newPlaces(t)
	b.hold(dialogue{
		{`Write {"path":"/results/s3c1","content":"x"}`, "Error: permission denied for write on /results/s3c1\n- /results is read-only. Write below /workspace."},
		{`Write {"path":"a.md","content":"one\n"}`, "Created /workspace/a.md (4 bytes)"},
		{`Write {"path":"/tmp/a.md","content":"two\n"}`, "Created /tmp/a.md (4 bytes)"},
		{`Write {"path":"/memories/user/a.md","content":"three\n"}`, "Created /memories/user/a.md (6 bytes)"},
		{`Read {"path":"/workspace/a.md"}`, "1  one\n[lines 1 to 1 of 1]"},
		{`Read {"path":"a.md"}`, "1  one\n[lines 1 to 1 of 1]"},
		{`Edit {"path":"/tmp/a.md","old_string":"two","new_string":"2"}`, "Replaced 1 occurrence in /tmp/a.md, at line 1"},
		{`Read {"path":"/results/s3c1"}`, "1  long\n[lines 1 to 1 of 1]"},
		{`Write {"path":"/results/s3c1","content":"x"}`, "Error: permission denied for write on /results/s3c1\n- /results is read-only. Write below /workspace."},
		{`Edit {"path":"/results/s3c1","old_string":"long","new_string":"x"}`, "Error: permission denied for write on /results/s3c1\n- /results is read-only. Write below /workspace."},
		{`Edit {"path":"/results/s3c1","old_string":"none","new_string":"x"}`, "Error: permission denied for write on /results/s3c1\n- /results is read-only. Write below /workspace."},
		{`Write {"path":"/results/s3c1","content":"long\n"}`, "Error: permission denied for write on /results/s3c1\n- /results is read-only. Write below /workspace."},
		{`Ls {}`, "/workspace/a.md  4 bytes"},
		{`Ls {"path":"/"}`, "/memories/\n/results/\n/tmp/\n/workspace/"},
		{`Ls {"path":"/memories"}`, "/memories/user/"},
		{`Glob {"pattern":"*.md"}`, "/workspace/a.md"},
		{`Glob {"pattern":"*.md","path":"/"}`, "/memories/user/a.md\n/tmp/a.md\n/workspace/a.md"},
		{`Glob {"pattern":"/memories/**/*.md"}`, "/memories/user/a.md"},
		{`Glob {"pattern":"/*.md"}`, "/workspace/a.md"},
		{`Grep {"pattern":"o|2","path":"/","output_mode":"content"}`, "/results/s3c1:1:long\n/tmp/a.md:1:2\n/workspace/a.md:1:one"},
		{`Grep {"pattern":"two|three","path":"/memories"}`, "/memories/user/a.md"},
		{`Read {"path":"/etc/passwd"}`, "Error: Path '/etc/passwd'" + outside},
		{`Write {"path":"/file","content":""}`, "Error: Path '/file'" + outside},
		{`Ls {"path":"/home"}`, "Error: Path '/home'" + outside},
		{`Glob {"pattern":"*","path":"/mem"}`, "Error: Path '/mem'" + outside},
		{`Read {"path":"/tmp/../etc/passwd"}`, "Error: Path traversal not allowed: /tmp/../etc/passwd" + below},
		{`Read {"path":"/tmp"}`, "Error: '/tmp' is a directory\n- List it with Ls."},
		{`Read {"path":"/"}`, "Error: '/' is a directory\n- List it with Ls."},
	})
	infos, err := b.Changed(t.Context())
	var names []string
	for _, i := range infos {
		names = append(names, i.Path)
	}
	if diff := cmp.Diff("/workspace/a.md", strings.Join(names, " ")); diff != "" || err != nil {
		t.Errorf("Changed: error %v, -want +got:\n%s", err, diff)
	}
}

// Two sessions remember in one place: the second to write learns that it is
// late.
func TestTheSecondWriterOfAMemoryGetsAConflict(t *testing.T) {
	b := newPlaces(t)
	b.hold(dialogue{{`Write {"path":"/memories/a","content":"one\n"}`, "Created /memories/a (4 bytes)"}})
	other := bench{Toolset: b.ForSession(), t: t}
	other.hold(dialogue{
		{`Read {"path":"/memories/a"}`, "1  one\n[lines 1 to 1 of 1]"},
		{`Write {"path":"/memories/a","content":"two\n"}`, "Wrote /memories/a (4 bytes)"},
	})
	b.hold(dialogue{
		{
			`Write {"path":"/memories/a","content":"three\n"}`,
			"Error: File '/memories/a' was modified since it was read\n- Read it again, then repeat the change if it still applies.",
		},
	})
}
