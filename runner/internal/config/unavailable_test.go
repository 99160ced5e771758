package config

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// fakeNoProgram is a sandbox whose image has no program.
type fakeNoProgram struct{ sandbox.Sandbox }

func (fakeNoProgram) Start(context.Context, sandbox.Command) (sandbox.Process, error) {
	return nil, &sandbox.RefusedError{Reason: sandbox.NoProgram, Subject: "server"}
}

func TestOptionalToolsetsThatAreNotThereAreNamed(t *testing.T) {
	set := task.Toolset{Name: "files", Optional: true, Stdio: &task.StdioServer{Command: []string{"server"}, InSandbox: true}}
	b := &builder{Parts: Parts{Snapshot: task.Snapshot{Toolsets: []task.Toolset{set}}, Sandbox: fakeNoProgram{}}}
	h, err := b.openSandboxTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	got := h.Unavailable()
	want := []journal.Remote{{Name: "toolset files", Field: "spec.stdio of Toolset files", Unreachable: got[0].Unreachable}}
	if diff := cmp.Diff(want, got); diff != "" || got[0].Unreachable == "" {
		t.Errorf("Unavailable() (-want +got):\n%s", diff)
	}
}
