package attempt

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/egress"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// sandboxClients are the connections to the other containers of the pod.
type sandboxClients struct {
	mu   sync.Mutex
	open []*sandbox.Client
}

// dial makes a client of the container that shares a directory.
func (s *sandboxClients) dial(dir string) sandbox.Sandbox {
	c := sandbox.Dial(filepath.Join(dir, task.SandboxSocket))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, c)
	return c
}

func (s *sandboxClients) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close() // the attempt has ended
	}
}

// ofRun returns the sandbox of the Run; nil: there is none. It also starts the egress proxy for its commands.
func (s *sandboxClients) ofRun(ctx context.Context, env Environment, want *task.Sandbox, refused func(host, port, reason string)) sandbox.Sandbox {
	if want == nil || env.Sandbox == "" {
		return nil
	}
	go func() {
		err := egress.Serve(ctx, filepath.Join(env.Sandbox, task.ProxySocket), egress.Options{
			Hosts:   want.Hosts,
			Refused: refused,
			Log: func(host string, allowed bool) {
				env.Log.Warn("A command reaches out", "host", host, "allowed", allowed, "audit", "egress")
			},
		})
		if err != nil && ctx.Err() == nil {
			env.Log.Error("Commands have no way out", "error", err)
		}
	}()
	return s.dial(env.Sandbox)
}

// ofServers finds the container of the MCP server of a Toolset, below a directory; nil: there are none.
func (s *sandboxClients) ofServers(dir string) func(toolset string) sandbox.Sandbox {
	if dir == "" {
		return nil
	}
	return func(toolset string) sandbox.Sandbox { return s.dial(filepath.Join(dir, toolset)) }
}

// showConfinement reports how commands are confined. Where the confinement is not required, nothing
// waits for NetworkPolicies: the status has PortsOnly until they were shown to be enforced.
func (e Environment) showConfinement(ctx context.Context, status *statusReporter, c sandbox.Confinement) {
	show := func(network string) {
		status.showConfinement(&task.Confinement{Process: c.Process, Files: c.Files, Network: network, LandlockABI: c.LandlockABI})
	}
	show(c.Network)
	if c.Network != sandbox.PortsOnly || e.network == nil {
		return
	}
	go func() {
		switch f := e.network(ctx); {
		case f.State == networkcheck.Closed:
			show(sandbox.Enforced)
		case f.State == networkcheck.Unknown && ctx.Err() == nil:
			e.Log.Warn("It is unknown whether NetworkPolicies are enforced", "error", f.Err)
		}
	}()
}
