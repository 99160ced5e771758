//go:build linux

package supervise

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// The server sends the cause before it kills the command. On a busy machine the
// supervisor may notice the death long before it reads the cause.
func TestKillCauseWaitsForTheServer(t *testing.T) {
	for name, cause := range map[string]sandbox.Cause{
		"killed by the server": sandbox.TooManyProcesses,
		"killed by a command":  sandbox.Exited,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer near.Close()
				runner, _ := net.Pipe()
				s := newSupervisor(frame.New(runner), frame.New(near))
				s.status = syscall.WaitStatus(syscall.SIGKILL)
				go func() {
					defer far.Close()
					server := frame.New(far)
					if _, err := server.Expect(frame.AskCause); err != nil {
						return
					}
					time.Sleep(time.Second) // the machine is busy
					if cause != sandbox.Exited {
						_ = server.Send(frame.Kill, []byte(cause))
					}
					_ = server.Send(frame.Kill, []byte(sandbox.Exited))
					_, _ = server.Receive()
				}()
				go s.followServer()
				got := s.killCause(stop{cause: sandbox.Exited})
				if got.cause != cause || got.silent {
					t.Errorf("cause %s, silent %v, want %s", got.cause, got.silent, cause)
				}
				near.Close()
				close(s.allEnded)
			})
		})
	}
}
