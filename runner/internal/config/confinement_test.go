package config

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A confinedBox is a sandbox in which nothing is ever run.
type confinedBox struct {
	sandbox.Sandbox
	is sandbox.Confinement
}

func (b confinedBox) Describe(context.Context) (sandbox.Description, error) {
	return sandbox.Description{Shell: "/bin/sh", Confinement: b.is}, nil
}

// With confinement: Required nothing runs unless each part was shown to be enforced.
func TestRequiredConfinementIsProven(t *testing.T) {
	const yes, ports, no = sandbox.Enforced, sandbox.PortsOnly, sandbox.Unenforced
	found := func(state networkcheck.State, err error) func(context.Context) networkcheck.Finding {
		return func(context.Context) networkcheck.Finding { return networkcheck.Finding{State: state, Err: err} }
	}
	closed, lost := found(networkcheck.Closed, nil), errors.New("dial tcp 10.0.0.1:20471: i/o timeout")
	for name, tc := range map[string]struct {
		is      sandbox.Confinement
		network func(context.Context) networkcheck.Finding
		reason  task.Reason // empty: it works
		message string
	}{
		"all is shown":             {sandbox.Confinement{Process: yes, Files: yes, Network: ports}, closed, "", ""},
		"the port is open":         {sandbox.Confinement{Process: yes, Files: yes, Network: ports}, found(networkcheck.Open, nil), task.ReasonMisconfigured, "network is PortsOnly: this pod connected to a port of the operator"},
		"the operator is away":     {sandbox.Confinement{Process: yes, Files: yes, Network: ports}, found(networkcheck.Unknown, lost), task.ReasonToolUnavailable, lost.Error()},
		"there are no policies":    {sandbox.Confinement{Process: yes, Files: yes, Network: ports}, nil, task.ReasonMisconfigured, "networkPolicies.enabled"},
		"low ports are open":       {sandbox.Confinement{Process: yes, Files: yes, Network: no}, closed, task.ReasonMisconfigured, "network is Unenforced (Landlock ABI 0)"},
		"files can be changed":     {sandbox.Confinement{Process: yes, Files: no, Network: ports}, closed, task.ReasonMisconfigured, "files are Unenforced"},
		"the process is not alone": {sandbox.Confinement{Process: no, Files: yes, Network: ports}, closed, task.ReasonMisconfigured, "process is Unenforced"},
		"nothing is said":          {sandbox.Confinement{}, closed, task.ReasonMisconfigured, "sandbox.confinement is Required"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &builder{Parts: Parts{Sandbox: confinedBox{is: tc.is}, Network: tc.network}}
			b.Snapshot.Sandbox = &task.Sandbox{Image: "i", Required: true}
			h, err := b.openSandboxTools(t.Context())
			if tc.reason == "" {
				if err != nil || h.Sandbox.Confinement.Network != yes {
					t.Errorf("%v, %+v", err, h.Sandbox.Confinement)
				}
				return
			}
			end, is := errors.AsType[*task.EndError](err)
			if !is || end.Reason != tc.reason || !strings.Contains(end.Message, tc.message) || !strings.HasPrefix(end.Message, "sandbox.confinement is Required") {
				t.Errorf("%v, want %s with %q", err, tc.reason, tc.message)
			}
		})
	}
}

// Without it nothing waits for policies.
func TestBestEffortDoesNotWait(t *testing.T) {
	b := &builder{Parts: Parts{Sandbox: confinedBox{is: sandbox.Confinement{Network: sandbox.PortsOnly}}}}
	b.Network = func(context.Context) networkcheck.Finding {
		t.Error("it waits")
		return networkcheck.Finding{State: networkcheck.Closed}
	}
	b.Snapshot.Sandbox = &task.Sandbox{Image: "i"}
	if h, err := b.openSandboxTools(t.Context()); err != nil || h.Sandbox.Confinement.Network != sandbox.PortsOnly {
		t.Errorf("%v, %+v", err, h.Sandbox.Confinement)
	}
}
