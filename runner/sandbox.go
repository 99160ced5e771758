package runner

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/egress"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// boxes are the connections to the containers beside the runner's.
type boxes struct {
	mu   sync.Mutex
	open []*sandbox.Client
}

// dial makes a client of the container that shares a directory.
func (b *boxes) dial(dir string) sandbox.Sandbox {
	c := sandbox.Dial(filepath.Join(dir, task.SandboxSocket))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, c)
	return c
}

func (b *boxes) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.open {
		_ = c.Close() // it is over either way
	}
}

// box is the sandbox of the Run; nil: there is none. With it goes the way out for
// its commands.
func (w *work) box(ctx context.Context) sandbox.Sandbox {
	want := w.snapshot.Sandbox
	if want == nil || w.sandbox == "" {
		return nil
	}
	go func() {
		err := egress.Serve(ctx, filepath.Join(w.sandbox, task.ProxySocket), egress.Options{
			Hosts: want.Hosts,
			Log:   func(host string, allowed bool) { w.log.Warn("A command reaches out", "host", host, "allowed", allowed) },
		})
		if err != nil && ctx.Err() == nil {
			w.log.Error("Commands have no way out", "error", err)
		}
	}()
	return w.boxes.dial(w.sandbox)
}

// server finds the container of the MCP server of a Toolset; nil: there are none.
func (w *work) server() func(toolset string) sandbox.Sandbox {
	if w.servers == "" {
		return nil
	}
	return func(toolset string) sandbox.Sandbox { return w.boxes.dial(filepath.Join(w.servers, toolset)) }
}
