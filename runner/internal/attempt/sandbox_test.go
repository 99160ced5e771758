package attempt

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The status says PortsOnly until policies were shown to be enforced, and no finding makes it
// say more than the sandbox found.
func TestTheStatusShowsWhatWasFound(t *testing.T) {
	for name, tc := range map[string]struct {
		sandbox    string
		found      networkcheck.State // empty: it is not asked
		want, logs string
	}{
		"policies are enforced":      {sandbox.PortsOnly, networkcheck.Closed, sandbox.Enforced, ""},
		"they are not":               {sandbox.PortsOnly, networkcheck.Open, sandbox.PortsOnly, ""},
		"it is not known":            {sandbox.PortsOnly, networkcheck.Unknown, sandbox.PortsOnly, "the operator is away"},
		"there are none":             {sandbox.PortsOnly, "", sandbox.PortsOnly, ""},
		"low ports are open":         {sandbox.Unenforced, networkcheck.Closed, sandbox.Unenforced, ""},
		"it was required, and shown": {sandbox.Enforced, networkcheck.Open, sandbox.Enforced, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logs strings.Builder
				a := &attempt{Environment: Environment{Log: slog.New(slog.NewTextHandler(io.Writer(&logs), nil))}}
				found := make(chan struct{})
				if tc.found != "" {
					a.network = func(context.Context) networkcheck.Finding {
						<-found
						return networkcheck.Finding{State: tc.found, Err: errors.New("the operator is away")}
					}
				}
				at := &fakeReporter{}
				status := &statusReporter{to: at}
				a.showConfinement(t.Context(), status, sandbox.Confinement{Process: sandbox.Enforced, Network: tc.sandbox})
				network := func() string {
					status.Report(func() task.Progress { return task.Progress{} })
					return at.last.Confinement.Network
				}
				if got := network(); got != tc.sandbox {
					t.Errorf("at first %s, want %s", got, tc.sandbox)
				}
				close(found)
				synctest.Wait()
				if got := network(); got != tc.want {
					t.Errorf("in the end %s, want %s", got, tc.want)
				}
				if got := logs.String(); !strings.Contains(got, tc.logs) || (got != "") != (tc.logs != "") {
					t.Errorf("the log is %q, want %q in it", got, tc.logs)
				}
			})
		})
	}
}
