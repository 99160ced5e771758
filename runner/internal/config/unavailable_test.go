package config

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/mcp"
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

// Another attempt finds the same URL, so the Run ends at once.
func TestToolsetsAtAddressesThatAreNeverReachedAreMisconfigured(t *testing.T) {
	for at, want := range map[string]string{
		"http://169.254.169.254/mcp":       "the address 169.254.169.254 may not be reached",
		"http://[::ffff:a9fe:a9fe]/mcp":    "may not be reached",
		"http://[64:ff9b::a9fe:a9fe]/mcp":  "may not be reached",
		"http://2852039166/mcp":            "the host 2852039166 may not be reached: it is a number",
		"http://127.0.0.1:8080/mcp":        "the address 127.0.0.1 may not be reached",
		"http://0.0.0.0:8080/mcp":          "the address 0.0.0.0 may not be reached",
		"http://localhost:8080/mcp":        "is the runner itself",
		"http://user:password@api.svc/mcp": "has a user or password",
	} {
		set := task.Toolset{Name: "web", HTTP: &task.HTTPServer{URL: at}}
		b := &builder{Parts: Parts{Snapshot: task.Snapshot{Toolsets: []task.Toolset{set}}}}
		_, err := b.openSandboxTools(t.Context())
		end, is := errors.AsType[*task.EndError](err)
		if !is || end.Reason != task.ReasonMisconfigured || !strings.HasPrefix(end.Message, "Toolset web: spec.http.url: ") || !strings.Contains(end.Message, want) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestEndOfToolset(t *testing.T) {
	never := &address.RefusedError{Addr: netip.MustParseAddr("169.254.169.254")}
	unavailable := func(err error) error { return &mcp.UnavailableError{Toolset: "web", Field: "spec.http.url", Err: err} }
	for name, tc := range map[string]struct {
		err  error
		want task.Reason
	}{
		"a name that resolves to a metadata service": {unavailable(&net.OpError{Op: "dial", Err: never}), task.ReasonMisconfigured},
		"a redirect to a metadata service":           {unavailable(&url.Error{Op: "Post", Err: never}), task.ReasonMisconfigured},
		"an image without the program":               {&sandbox.RefusedError{Reason: sandbox.NoProgram}, task.ReasonMisconfigured},
		"a sandbox that is busy":                     {&sandbox.RefusedError{Reason: sandbox.Busy}, task.ReasonToolUnavailable},
		"a server that is not there yet":             {unavailable(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), task.ReasonToolUnavailable},
	} {
		end, is := errors.AsType[*task.EndError](endOfToolset("web", tc.err))
		if !is || end.Reason != tc.want || !strings.HasPrefix(end.Message, "Toolset web: ") {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
